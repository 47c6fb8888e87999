"""The managed policies for callers of the API: each opens the routes of its role, and no others."""

from __future__ import annotations

import re

import pytest
from scripts.render_template import ACCOUNT

from policy_evaluator import Request
from rendered import core_stack
from trainmaster.domain.access.rules import MAY, Action, Role
from trainmaster.handlers.api.app import OPERATIONS

STACK = core_stack()
VIEWER = frozenset({Role.ANYONE, Role.VIEWER})
SUBMITTER = VIEWER | {Role.SUBMITTER, Role.OWNER, Role.RESIZER}
ROLES = {
    "ViewerPolicy": VIEWER,
    "SubmitterPolicy": SUBMITTER,
    "ShareAdminPolicy": SUBMITTER | {Role.SHARE_ADMIN},
    "QueueAdminPolicy": frozenset(Role),
}
"""Roles that callers with each policy may have: a share admin has it in some shares, an owner for some jobs."""
READERS = ("TrainingJobReaderPolicy", "QueueAdminPolicy")
"""Policies that let a caller follow training jobs: what jobs print may be secret, as their environments are."""
LOGS = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs"
QUEUE = STACK.reference("QueueName")
ROUTES = [(each.method, each.rule, each.action) for _, each in OPERATIONS.values()]


def invoke(method: str, path: str, api: str = STACK.reference("QueueApi"), stage: str = "prod") -> Request:
    arn = f"arn:aws:execute-api:us-east-1:{ACCOUNT}:{api}/{stage}/{method}{path}"
    return Request("execute-api:Invoke", arn)


def policy(name: str) -> list[dict]:
    return [STACK.resources[name]["Properties"]["PolicyDocument"]]


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize(("method", "rule", "action"), ROUTES)
def test_a_policy_opens_a_route_if_its_role_may_take_the_routes_action(evaluator, name, method, rule, action):
    """A new route is denied to all but queue admins until a policy names it, which fails here where others may."""
    path = re.sub("<.*?>", "job-1", rule)
    assert evaluator.allows(invoke(method, path), policy(name)) == bool(MAY[action] & ROLES[name])


def test_there_is_a_role_for_every_action_and_only_admins_administer():
    opened = {name: {action for action in Action if MAY[action] & roles} for name, roles in ROLES.items()}
    assert opened["QueueAdminPolicy"] == set(Action)
    assert Action.ADMINISTER not in opened["ViewerPolicy"] | opened["SubmitterPolicy"] | opened["ShareAdminPolicy"]
    assert opened["ViewerPolicy"] == {Action.DESCRIBE, Action.READ, Action.READ_JOB}


@pytest.mark.parametrize("name", ["SubmitterPolicy", "ShareAdminPolicy", "QueueAdminPolicy"])
def test_submitters_reach_the_routes_of_further_kinds_of_jobs(evaluator, name):
    assert evaluator.allows(invoke("POST", "/other-jobs"), policy(name))
    assert not evaluator.allows(invoke("POST", "/other-jobs"), policy("ViewerPolicy"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_viewers_change_nothing(evaluator, method):
    for path in ("/jobs", "/jobs/a", "/add-job", "/plan", "/pools", "/pools/a", "/settings", "/other-jobs"):
        assert not evaluator.allows(invoke(method, path), policy("ViewerPolicy"))


@pytest.mark.parametrize("name", ROLES)
def test_no_policy_opens_another_api_or_stage_or_another_service(evaluator, name):
    assert not evaluator.allows(invoke("GET", "/jobs", api="another"), policy(name))
    assert not evaluator.allows(invoke("GET", "/jobs", stage="test"), policy(name))
    assert not evaluator.allows(Request("sqs:SendMessage", STACK.attribute("WakeQueue")), policy(name))
    table = Request("dynamodb:GetItem", STACK.attribute("QueueTable"), {"dynamodb:LeadingKeys": ["JOB#a"]})
    assert not evaluator.allows(table, policy(name))


def training_job(action: str = "DescribeTrainingJob", queue: str = QUEUE, name: str = "job-1") -> Request:
    arn = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/{name}"
    return Request(f"sagemaker:{action}", arn, {"aws:ResourceTag/trainmaster:queue": queue})


FOLLOWING = [
    Request("logs:DescribeLogStreams", LOGS),
    Request("logs:DescribeLogStreams", f"{LOGS}:*"),
    Request("logs:GetLogEvents", f"{LOGS}:log-stream:job-1/algo-1-1700000000"),
    training_job(),
]
"""Requests of `trainmaster logs` and of the SDKs' `fit()` and `train()`."""
BEYOND_FOLLOWING = [
    Request("logs:DescribeLogStreams", f"{LOGS}Other"),
    Request("logs:DescribeLogStreams", f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/lambda/trainmaster-api"),
    Request("logs:GetLogEvents", f"{LOGS}Other:log-stream:job-1/algo-1-1700000000"),
    Request("logs:GetLogEvents", f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/lambda/{QUEUE}-api:log-stream:a"),
    Request("logs:PutLogEvents", f"{LOGS}:log-stream:job-1/algo-1-1700000000"),
    Request("logs:CreateLogStream", f"{LOGS}:log-stream:job-1/algo-1-1700000000"),
    Request("logs:DeleteLogStream", f"{LOGS}:log-stream:job-1/algo-1-1700000000"),
    Request("logs:DeleteLogGroup", LOGS),
    Request("logs:StartQuery", LOGS),
    training_job(queue="another"),
    *(training_job(action) for action in ("StopTrainingJob", "UpdateTrainingJob", "AddTags", "DeleteTags")),
]
"""Requests that following a job does not need."""


@pytest.mark.parametrize("name", [*ROLES, "TrainingJobReaderPolicy"])
@pytest.mark.parametrize("request_", FOLLOWING)
def test_only_readers_of_training_jobs_and_queue_admins_follow_them(evaluator, name, request_):
    assert evaluator.allows(request_, policy(name)) is (name in READERS)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("request_", BEYOND_FOLLOWING)
def test_readers_of_training_jobs_change_nothing_and_read_no_other_logs(evaluator, name, request_):
    assert not evaluator.allows(request_, policy(name))


@pytest.mark.parametrize(("method", "rule", "_action"), ROUTES)
def test_readers_of_training_jobs_reach_no_route(evaluator, method, rule, _action):
    assert not evaluator.allows(invoke(method, re.sub("<.*?>", "job-1", rule)), policy("TrainingJobReaderPolicy"))


@pytest.mark.parametrize("name", [*ROLES, "TrainingJobReaderPolicy"])
def test_policies_are_attached_to_no_one_and_are_outputs(name):
    properties = STACK.document["Resources"][name]["Properties"]
    assert not {"Groups", "Roles", "Users"} & properties.keys()
    assert STACK.document["Outputs"][f"{name}Arn"]["Value"] == {"Ref": name}
