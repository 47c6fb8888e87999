"""The rules on what the queue does for a caller, with IAM's answers in memory."""

from __future__ import annotations

import pytest

from builders import P5, ROLE, a_request
from policy_evaluator import EVERYTHING, Request
from trainmaster.domain.access.create_context import create_contexts
from trainmaster.domain.access.request_policy import RequestPolicy
from trainmaster.domain.errors import RequestNotAllowed, RoleNotAllowed
from trainmaster.local.memory.permissions import Grant, MemoryPermissions
from trainmaster.service.admission.caller_rules import MAX_QUESTIONS, CallerRules

ADA = "arn:aws:iam::111122223333:user/ada"
JOBS = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"
PASS, CREATE = "iam:PassRole", "sagemaker:CreateTrainingJob"
REQUEST = a_request("a")
LISTS = (
    "aws:CalledVia", "aws:TagKeys", "sagemaker:InstanceTypes", "sagemaker:VpcSecurityGroupIds", "sagemaker:VpcSubnets",
)  # fmt: skip
REPLACED = {f"sagemaker:{name}KmsKey": f"sagemaker:{name}KmsKeyArn" for name in ("Output", "Volume")}
"""Condition keys that IAM has replaced, and their new names (service authorization reference)."""


def as_sent(key, values):
    return values if key in LISTS else values[0]


def rules(*grants: Grant, **options) -> CallerRules:
    options = {"allowed_roles": ("*",), "training_jobs": JOBS, **options}
    return CallerRules(permissions=MemoryPermissions(grants), **options)


def check(rules, request=REQUEST, caller=ADA, sent=None):
    rules.check(request, caller, [request] if sent is None else sent)


def test_a_caller_who_could_do_it_directly_may():
    checked = rules(Grant(action=PASS, resource=ROLE), Grant(action=CREATE, resource=f"{JOBS}a"))
    check(checked)
    assert [(action, resource) for _, action, resource, _ in checked.permissions.asked] == [
        (PASS, ROLE),
        (CREATE, f"{JOBS}a"),
    ]


@pytest.mark.parametrize(
    ("grants", "error", "text"),
    [
        ([Grant(action=CREATE)], RoleNotAllowed, "may not pass the role"),
        ([Grant(action=PASS, answer=None), Grant()], RoleNotAllowed, "could not be confirmed"),
        ([Grant(action=PASS)], RequestNotAllowed, f"may not use {CREATE}"),
        ([Grant(action=PASS), Grant(answer=None)], RequestNotAllowed, "could not be confirmed"),
    ],
)
def test_others_are_refused_with_the_action(grants, error, text):
    with pytest.raises(error, match=text):
        check(rules(*grants))


def test_a_refusal_names_the_keys():
    with pytest.raises(RequestNotAllowed, match=rf"sagemaker:InstanceTypes={P5}.*sagemaker:NetworkIsolation=false"):
        check(rules(Grant(action=PASS)))


def test_every_instance_type_that_the_queue_may_choose_counts():
    sent = [a_request("a", instance_type=kind) for kind in (P5, "ml.g5.2xlarge")]
    allowed = Grant(action=CREATE, context={"sagemaker:InstanceTypes": [P5]})
    check(rules(Grant(action=PASS), allowed), sent=sent[:1])
    with pytest.raises(RequestNotAllowed, match=r"ml\.g5\.2xlarge"):
        check(rules(Grant(action=PASS), allowed), sent=sent)


PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"


def test_a_training_plan_needs_the_permission_too():
    planned = a_request("a")
    planned["ResourceConfig"] = planned["ResourceConfig"] | {"TrainingPlanArn": PLAN}
    job, plan = Grant(action=CREATE, resource=f"{JOBS}a"), Grant(action=CREATE, resource=PLAN)
    check(rules(Grant(action=PASS), job, plan), sent=[planned])
    check(rules(Grant(action=PASS), job))
    with pytest.raises(RequestNotAllowed, match=rf"on {PLAN} with"):
        check(rules(Grant(action=PASS), job), sent=[planned])


KEYS = {
    "ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeKmsKeyId": "v", "KeepAlivePeriodInSeconds": 60},
    "OutputDataConfig": {"S3OutputPath": "s3://a", "KmsKeyId": "o"},
    "VpcConfig": {"Subnets": ["s"], "SecurityGroupIds": ["g"]},
    "Tags": [{"Key": "team", "Value": "vision"}],
}


@pytest.mark.parametrize("key", [*REPLACED, *REPLACED.values()])
def test_policies_on_keys_see_them_by_the_old_and_by_the_new_name(key):
    (context,) = create_contexts(REQUEST | KEYS, "us-east-1")
    assert context[key] == ["v" if "Volume" in key else "o"]


def test_iam_has_every_key_for_this_action(evaluator):
    (context,) = create_contexts(REQUEST | KEYS, "us-east-1")
    known = {key: as_sent(key, values) for key, values in context.items() if key not in REPLACED}
    assert evaluator.allows(Request(CREATE, f"{JOBS}a", known), [EVERYTHING])
    for key in REPLACED:
        with pytest.raises(ValueError, match=key):
            evaluator.allows(
                Request(CREATE, f"{JOBS}a", {key: "arn:aws:kms:us-east-1:111122223333:key/k"}), [EVERYTHING]
            )


def test_the_questions_are_bounded_and_none_is_asked_twice():
    asked = rules(Grant())
    check(asked, sent=[a_request("a", instance_type=f"ml.type{number}.xlarge") for number in range(100)] * 2)
    assert len(asked.permissions.asked) == 1 + MAX_QUESTIONS


def test_only_what_the_deployment_wants_is_asked():
    for options, actions in (
        ({"training_jobs": ""}, [PASS]),
        ({"checks_pass_role": False}, [CREATE]),
    ):
        checked = rules(Grant(), **options)
        check(checked)
        assert [action for _, action, _, _ in checked.permissions.asked] == actions


def test_the_deployments_own_rules_come_first_and_ask_nothing():
    policy = RequestPolicy(network_isolation=True)
    for options, error in (
        ({"allowed_roles": ()}, RoleNotAllowed),
        ({"request_policy": policy}, RequestNotAllowed),
    ):
        checked = rules(Grant(), **options)
        with pytest.raises(error):
            check(checked)
        assert not checked.permissions.asked


@pytest.mark.parametrize("through_the_queue", [True, False])
def test_a_policy_can_allow_training_jobs_of_the_queue_alone(evaluator, through_the_queue):
    """The key is part of each question; a direct call of a person has no such value."""
    policy = {
        "Version": "2012-10-17",
        "Statement": {
            "Effect": "Allow",
            "Action": CREATE,
            "Resource": "*",
            "Condition": {"ForAnyValue:StringEquals": {"aws:CalledVia": "trainmaster"}},
        },
    }
    (context,) = create_contexts(REQUEST, "us-east-1")
    context = {key: as_sent(key, values) for key, values in context.items()}
    if not through_the_queue:
        del context["aws:CalledVia"]
    assert evaluator.allows(Request(CREATE, f"{JOBS}a", context), [policy]) is through_the_queue
