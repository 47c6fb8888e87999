"""Questions to IAM's simulator, and the reading of its answers.

moto has GetRole but no SimulatePrincipalPolicy; that answer comes from a Stubber, which checks it, and the question,
against botocore's model of IAM.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from aws_clients import aws_client
from builders import NOW
from trainmaster.adapters.iam import IamPermissions

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/service-role/training"
ALICE = f"arn:aws:iam::{ACCOUNT}:user/team/alice"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/TeamA/alice"
OWNER = f"arn:aws:iam::{ACCOUNT}:role/people/TeamA"


class ManagerContext:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Checker:
    """IAM's answers on passing a role to SageMaker."""

    def __init__(self, iam: Any, clock: Any) -> None:
        self.permissions = IamPermissions(iam, clock)

    def may_pass(self, caller: str, role: str) -> bool | None:
        context = {"iam:PassedToService": ["sagemaker.amazonaws.com"]}
        return self.permissions.allows(caller, "iam:PassRole", role, context)


class World:
    """A checker whose IAM gives the answers that a test lines up."""

    def __init__(self) -> None:
        self.clock = ManagerContext()
        iam: Any = aws_client("iam")
        self.stub = Stubber(iam)
        self.checker = Checker(iam, self.clock)

    def answers(self, decision: str = "allowed", *, principal: str = ALICE, role: str = ROLE, **more: Any) -> None:
        self.stub.add_response(
            "simulate_principal_policy",
            {"EvaluationResults": [{"EvalActionName": "iam:PassRole", "EvalDecision": decision} | more]},
            self.question(principal, role),
        )

    def refuses(self, code: str, operation: str = "simulate_principal_policy") -> None:
        self.stub.add_client_error(operation, code, "no", 403)

    def has_role(self, arn: str = OWNER) -> None:
        role = {"Path": "/people/", "RoleName": "TeamA", "RoleId": "A" * 16, "Arn": arn, "CreateDate": NOW}
        self.stub.add_response("get_role", {"Role": role}, {"RoleName": "TeamA"})

    @staticmethod
    def question(principal: str, role: str) -> dict[str, Any]:
        return {
            "PolicySourceArn": principal,
            "ActionNames": ["iam:PassRole"],
            "ResourceArns": [role],
            "ContextEntries": [
                {
                    "ContextKeyName": "iam:PassedToService",
                    "ContextKeyType": "string",
                    "ContextKeyValues": ["sagemaker.amazonaws.com"],
                }
            ],
        }


@pytest.fixture
def world() -> Iterator[World]:
    here = World()
    with here.stub:
        yield here
    # Every answer that was lined up was asked for.
    here.stub.assert_no_pending_responses()


@pytest.mark.parametrize(("decision", "passes"), [("allowed", True), ("implicitDeny", False), ("explicitDeny", False)])
def test_a_user_is_asked_about_by_his_own_arn(world: World, decision: str, passes: bool) -> None:
    world.answers(decision)
    assert world.checker.may_pass(ALICE, ROLE) is passes


def test_a_session_is_asked_about_by_its_roles_arn(world: World) -> None:
    world.has_role()
    world.answers(principal=OWNER)
    assert world.checker.may_pass(SESSION, ROLE) is True


def test_a_role_without_a_session_is_asked_about_like_its_sessions(world: World) -> None:
    world.has_role()
    world.answers(principal=OWNER)
    assert world.checker.may_pass(SESSION.removesuffix("/alice"), ROLE) is True
    assert world.checker.may_pass(SESSION, ROLE) is True


@pytest.mark.parametrize(
    "more",
    [
        {"PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False}},
        {"OrganizationsDecisionDetail": {"AllowedByOrganizations": False}},
    ],
)
def test_boundary_and_organization_have_a_veto(world: World, more: dict[str, Any]) -> None:
    world.answers("allowed", **more)
    assert world.checker.may_pass(ALICE, ROLE) is False


def test_all_pages_count(world: World) -> None:
    result = {"EvalActionName": "iam:PassRole", "EvalDecision": "allowed"}
    question = world.question(ALICE, ROLE)
    first = {"EvaluationResults": [result], "IsTruncated": True, "Marker": "m"}
    world.stub.add_response("simulate_principal_policy", first, question)
    second = {"EvaluationResults": [result | {"EvalDecision": "explicitDeny"}]}
    world.stub.add_response("simulate_principal_policy", second, question | {"Marker": "m"})
    assert world.checker.may_pass(ALICE, ROLE) is False


@pytest.mark.parametrize("code", ["AccessDenied", "Throttling", "InvalidInput", "ServiceFailure"])
@pytest.mark.parametrize("operation", ["simulate_principal_policy", "get_role"])
def test_trouble_means_cannot_tell_and_is_logged(
    world: World, caplog: pytest.LogCaptureFixture, code: str, operation: str
) -> None:
    world.refuses(code, operation)
    with caplog.at_level(logging.WARNING):
        assert world.checker.may_pass(SESSION if operation == "get_role" else ALICE, ROLE) is None
    assert code in caplog.text


@pytest.mark.parametrize("operation", ["simulate_principal_policy", "get_role"])
def test_a_deleted_principal_may_nothing_and_the_answer_is_not_cached(world: World, operation: str) -> None:
    caller = SESSION if operation == "get_role" else ALICE
    world.refuses("NoSuchEntity", operation)
    assert world.checker.may_pass(caller, ROLE) is False
    if operation == "get_role":
        world.has_role()
    world.answers(principal=OWNER if operation == "get_role" else ALICE)
    assert world.checker.may_pass(caller, ROLE) is True


def test_no_result_means_cannot_tell(world: World) -> None:
    world.stub.add_response("simulate_principal_policy", {"EvaluationResults": []})
    assert world.checker.may_pass(ALICE, ROLE) is None


def test_no_connection_means_cannot_tell() -> None:
    iam = aws_client("iam", endpoint_url="http://127.0.0.1:1", config=Config(retries={"total_max_attempts": 1}))
    assert Checker(iam, ManagerContext()).may_pass(ALICE, ROLE) is None


def test_after_a_failed_connection_iam_is_not_called_for_half_a_minute() -> None:
    iam = aws_client("iam", endpoint_url="http://127.0.0.1:1", config=Config(retries={"total_max_attempts": 1}))
    calls: list[str] = []
    iam.meta.events.register("before-call.iam.*", lambda model, **_: calls.append(model.name))
    clock = ManagerContext()
    checker = Checker(iam, clock)
    for seconds in (0, 29, 1, 0):
        clock.sleep(seconds)
        assert checker.may_pass(ALICE, ROLE) is None
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("caller", "role"),
    [
        (f"arn:aws:iam::{ACCOUNT}:root", ROLE),
        (f"arn:aws:sts::{ACCOUNT}:federated-user/bob", ROLE),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/", ROLE),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/TeamA/x/y", ROLE),
        ("", ROLE),
        (f"{ALICE}\n", ROLE),
        (ALICE, f"arn:aws:iam::{ACCOUNT}:role/*"),
        (ALICE, "*"),
        (ALICE, ""),
    ],
)
def test_others_cannot_be_told_and_are_not_asked_about(world: World, caller: str, role: str) -> None:
    assert world.checker.may_pass(caller, role) is None


def test_no_role_passes_between_accounts(world: World) -> None:
    assert world.checker.may_pass(ALICE, ROLE.replace(ACCOUNT, "999999999999")) is False


def test_another_accounts_session_is_not_taken_for_our_role_of_that_name(world: World) -> None:
    """Both the caller and the role are the other account's, but IAM here knows only our TeamA."""
    other = "999999999999"
    world.has_role(OWNER)
    assert world.checker.may_pass(SESSION.replace(ACCOUNT, other), ROLE.replace(ACCOUNT, other)) is None


class TestKeeping:
    @pytest.mark.parametrize("decision", ["allowed", "explicitDeny"])
    def test_an_answer_is_kept_for_minutes_and_no_longer(self, world: World, decision: str) -> None:
        world.answers(decision)
        expected = decision == "allowed"
        assert world.checker.may_pass(ALICE, ROLE) is expected
        world.clock.sleep(299)
        assert world.checker.may_pass(ALICE, ROLE) is expected
        world.clock.sleep(1)
        world.answers("implicitDeny")
        assert world.checker.may_pass(ALICE, ROLE) is False

    def test_cannot_tell_is_not_kept(self, world: World) -> None:
        world.refuses("Throttling")
        world.answers()
        assert world.checker.may_pass(ALICE, ROLE) is None
        assert world.checker.may_pass(ALICE, ROLE) is True

    def test_sessions_of_a_role_share_an_answer(self, world: World) -> None:
        world.has_role()
        world.answers(principal=OWNER)
        assert world.checker.may_pass(SESSION, ROLE) is True
        assert world.checker.may_pass(SESSION + "-again", ROLE) is True

    def test_users_and_roles_do_not(self, world: World) -> None:
        world.answers()
        world.answers("implicitDeny", role=f"{ROLE}2")
        world.answers("implicitDeny", principal=f"{ALICE}2")
        assert world.checker.may_pass(ALICE, ROLE) is True
        assert world.checker.may_pass(ALICE, f"{ROLE}2") is False
        assert world.checker.may_pass(f"{ALICE}2", ROLE) is False

    def test_the_oldest_makes_room(self, world: World) -> None:
        for number in range(1025):
            world.answers(role=f"{ROLE}{number}")
            assert world.checker.may_pass(ALICE, f"{ROLE}{number}") is True
        assert world.checker.may_pass(ALICE, f"{ROLE}1024") is True
        world.answers(role=f"{ROLE}0")
        assert world.checker.may_pass(ALICE, f"{ROLE}0") is True


def test_context_keys_are_sent_with_their_types(world: World) -> None:
    entries = [
        ("aws:RequestTag/team", "string", ["vision"]),
        ("aws:TagKeys", "stringList", ["team"]),
        ("sagemaker:InstanceTypes", "stringList", ["ml.g5.2xlarge", "ml.p5.48xlarge"]),
        ("sagemaker:MaxRuntimeInSeconds", "numeric", ["3600"]),
        ("sagemaker:NetworkIsolation", "boolean", ["true"]),
        ("sagemaker:VolumeKmsKey", "string", ["arn:aws:kms:eu-west-1:111122223333:key/k"]),
    ]
    job = f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:training-job/resnet"
    world.stub.add_response(
        "simulate_principal_policy",
        {"EvaluationResults": [{"EvalActionName": "sagemaker:CreateTrainingJob", "EvalDecision": "allowed"}]},
        {
            "PolicySourceArn": ALICE,
            "ActionNames": ["sagemaker:CreateTrainingJob"],
            "ResourceArns": [job],
            "ContextEntries": [
                {"ContextKeyName": key, "ContextKeyType": kind, "ContextKeyValues": values}
                for key, kind, values in entries
            ],
        },
    )
    context = {key: values for key, _, values in reversed(entries)}
    assert world.checker.permissions.allows(ALICE, "sagemaker:CreateTrainingJob", job, context) is True


def test_the_path_of_a_sessions_role_comes_from_iam() -> None:
    """Against moto's GetRole; only the simulation, which moto lacks, is answered before it is sent."""
    asked: list[str] = []

    def simulate(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        asked.append(params["body"]["PolicySourceArn"])
        result = {"EvalActionName": "iam:PassRole", "EvalDecision": "allowed"}
        return type("Answer", (), {"status_code": 200})(), {"EvaluationResults": [result]}

    with mock_aws():
        iam = aws_client("iam")
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        arn = iam.create_role(RoleName="TeamA", Path="/people/", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        account = arn.split(":")[4]
        iam.meta.events.register("before-call.iam.SimulatePrincipalPolicy", simulate)
        checker = Checker(iam, ManagerContext())
        assert checker.may_pass(SESSION.replace(ACCOUNT, account), ROLE.replace(ACCOUNT, account)) is True
    assert asked == [arn]
    assert arn.endswith(":role/people/TeamA")
