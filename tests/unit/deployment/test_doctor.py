"""`trainmaster doctor`: each fault is found, has an action, and decides the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from cli_terminal import NOW, Terminal
from fake_account import ACCOUNT, REGION, FakeAccount
from fake_api import G5, P5, FakeApi, Refusal, a_pool
from trainmaster.domain.release import VERSION

ROLE = f"arn:aws:iam::{ACCOUNT}:role/trainer"
NAMES = [
    *("address", "credentials", "clock", "region", "permissions", "schema", "version", "manager", "pools"),
    *("quotas", "stack", "alarms"),
]


def absent() -> ClientError:
    message = "Stack with id trainmaster does not exist"
    return ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")


def denied(operation: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)


@pytest.fixture
def aws(run: Terminal) -> FakeAccount:
    return run.aws


@pytest.fixture(autouse=True)
def _served(world: FakeApi) -> None:
    world.headers = [("x-trainmaster-version", VERSION)]


def levels(run: Terminal) -> dict[str, str]:
    return {each["check"]: each["level"] for each in json.loads(run("doctor", "--json").stdout)}


def test_a_sound_queue_passes_every_check(run: Terminal, aws: FakeAccount) -> None:
    assert levels(run) == dict.fromkeys(NAMES, "ok")
    assert run("doctor").exit_code == 0


def pause(world: FakeApi, aws: FakeAccount) -> None:
    world.manager["pause"] = {"reason": "upgrade", "at": "2026-11-20T12:00:00Z", "by": "ann"}


def skew(seconds: int) -> Callable[[FakeApi, FakeAccount], None]:
    return lambda world, aws: setattr(aws, "date", NOW - timedelta(seconds=seconds))


def refusing(verb: str, *refusal: Any) -> Callable[[FakeApi, FakeAccount], None]:
    """Return the fault of an API that refuses a call."""

    def refuse(*_: Any) -> Any:
        raise Refusal(*refusal)

    return lambda world, aws: setattr(world, verb, refuse)


FAULTS: dict[str, tuple[Callable[[FakeApi, FakeAccount], object], str, str, str]] = {
    "clock ahead": (skew(90), "clock", "warning", "90 seconds ahead of"),
    "clock far behind": (skew(-299), "clock", "error", "299 seconds behind"),
    "service not in the Region": (lambda world, aws: aws.without.add("scheduler"), "region", "warning", "scheduler"),
    "no permission for the queue": (
        refusing("get_pools", 403, "AccessDenied", "You may not read the queue.", None, "Ask a queue admin."),
        "permissions", "error", "may not read",
    ),
    "newer table": (
        refusing("get_manager", 503, "UnsupportedSchema", "The table has schema 9.", None, "Upgrade the service."),
        "schema", "error", "schema 9",
    ),
    "paused": (pause, "manager", "warning", "upgrade"),
    "no pool": (lambda world, aws: world.pools["pools"].clear(), "pools", "error", "No pool"),
    "quota below the cap": (
        lambda world, aws: aws.quotas.update({f"{P5} for training job usage": 1.0}), "quotas", "warning", "add up to",
    ),
    "no quota": (lambda world, aws: aws.quotas.update({f"{P5} for training job usage": 0.0}), "quotas", "error", "0"),
    "unlisted quota": (lambda world, aws: aws.quotas.clear(), "quotas", "unknown", P5),
    "failed update": (lambda world, aws: setattr(aws, "status", "UPDATE_ROLLBACK_FAILED"), "stack", "error", "FAILED"),
    "update in progress": (
        lambda world, aws: setattr(aws, "status", "UPDATE_IN_PROGRESS"), "stack", "warning", "IN_PROGRESS",
    ),
    "no such stack": (
        lambda world, aws: aws.errors.update({"cloudformation": absent()}),
        "stack", "unknown", "no stack trainmaster in us-east-1",
    ),
    "alarm": (
        lambda world, aws: aws.alarms[0].update(StateValue="ALARM", AlarmDescription="the manager fails"),
        "alarms", "error", "the manager fails",
    ),
    "silent alarms": (lambda world, aws: aws.alarms[0].update(AlarmActions=[]), "alarms", "warning", "notifies"),
    "other stack": (lambda world, aws: aws.alarms.clear(), "alarms", "unknown", "No alarm"),
    "no permission for quotas": (
        lambda world, aws: aws.errors.update({"service-quotas": denied("ListServiceQuotas")}),
        "quotas", "unknown", "may not call ListServiceQuotas",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_with_what_to_do(name: str, run: Terminal, world: FakeApi, aws: FakeAccount) -> None:
    fault, check, level, words = FAULTS[name]
    fault(world, aws)
    result = run("doctor", "--json")
    (found,) = [each for each in json.loads(result.stdout) if each["check"] == check]
    assert found["level"] == level
    assert words in found["message"]
    assert found["action"]
    assert result.exit_code == (1 if level == "error" else 0)
    assert found["action"] in run("doctor").stdout


def test_without_credentials_nothing_that_needs_them_is_checked(run: Terminal, aws: FakeAccount) -> None:
    aws.errors["sts"] = NoCredentialsError()
    found = levels(run)
    assert found["credentials"] == "error"
    assert {name: found[name] for name in ("address", "region")} == {"address": "ok", "region": "ok"}
    assert {level for name, level in found.items() if name not in ("address", "region", "credentials")} == {"unknown"}


# -- --try


def priced(world: FakeApi) -> None:
    world.pools["pools"][:] = [a_pool(P5, 2, price=55.0), a_pool(G5, 8, price=1.2), a_pool("ml.m5.large", 0, price=0.1)]


def test_the_trial_states_its_price_runs_on_the_cheapest_pool_and_is_followed(
    run: Terminal, world: FakeApi, aws: FakeAccount
) -> None:
    priced(world)
    run.meanwhile = [lambda: world.end(next(iter(world.jobs)), "completed")]
    result = run("doctor", "--try", "--yes", "--role", ROLE)
    assert result.exit_code == 0, result.output
    (job,) = world.jobs.values()
    request = job["jobDetails"]
    assert request["ResourceConfig"]["InstanceType"] == G5
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 900}
    assert request["OutputDataConfig"]["S3OutputPath"] == f"s3://sagemaker-{REGION}-{ACCOUNT}/trainmaster-doctor"
    assert "$0.30 at most" in result.stderr
    assert "completed: jobs start and end" in result.stderr


def test_a_trial_that_fails_fails_the_command(run: Terminal, world: FakeApi, aws: FakeAccount) -> None:
    priced(world)
    run.meanwhile = [lambda: world.end(next(iter(world.jobs)), "failed", "no image")]
    result = run("doctor", "--try", "--yes", "--role", ROLE)
    assert result.exit_code == 1
    assert "did not complete" in result.stderr


@pytest.mark.parametrize("arguments", [("--role", ROLE), ("--yes",), ("--yes", "--role", ROLE, "--instance-type", "x")])
def test_nothing_is_submitted_without_role_confirmation_or_pool(
    arguments: tuple[str, ...], run: Terminal, world: FakeApi, aws: FakeAccount
) -> None:
    result = run("doctor", "--try", *arguments)
    assert result.exit_code == 2
    assert world.jobs == {}


def test_a_queue_with_an_error_gets_no_trial(run: Terminal, world: FakeApi, aws: FakeAccount) -> None:
    aws.status = "UPDATE_ROLLBACK_FAILED"
    assert run("doctor", "--try", "--yes", "--role", ROLE).exit_code == 1
    assert world.jobs == {}
