"""The real template, deployed into ministack, with the real handlers: over HTTP, signed, as clients meet it."""

import sys
from pathlib import Path

import httpx
import pytest

from deployed_stack import eventually
from trainmaster.client.api.errors import Conflict, Forbidden, Refused

SOME_TICKS = 420.0
"""Seconds: ministack ticks every 60 to 70 seconds, and a starting job is looked at every other minute."""
EXAMPLES = Path(__file__).parents[2] / "examples"


def a_request(name, instance_type, *, priority=0, seconds=2, steps=None, **changes):
    """A training job that trains for so many seconds at the simulator's speed, or counts so many real steps."""
    algorithm = {"TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/x:1", "TrainingInputMode": "File"}
    if steps:
        algorithm["ContainerEntrypoint"] = [sys.executable, str(EXAMPLES / "count_steps.py")]
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/trainer",
        "AlgorithmSpecification": algorithm,
        "HyperParameters": {"steps": str(steps or 0)},
        "Environment": {"SIMULATOR_TRAINING_SECONDS": str(seconds * 40)},
        "OutputDataConfig": {"S3OutputPath": "s3://training/output"},
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "CheckpointConfig": {"S3Uri": f"s3://training/checkpoints/{name}"},
        "Tags": [{"Key": "priority", "Value": str(priority)}],
        **changes,
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/add-job"),
        ("GET", "/jobs"),
        ("GET", "/jobs/x"),
        ("DELETE", "/jobs/x"),
        ("PATCH", "/jobs/x"),
        ("GET", "/queue"),
        ("GET", "/pools"),
        ("PUT", "/pools"),
        ("PUT", "/pools/x"),
        ("PATCH", "/pools/x"),
        ("DELETE", "/pools/x"),
        ("POST", "/plan"),
        ("GET", "/openapi.json"),
    ],
)
def test_no_route_answers_without_a_signature(deployed, method, path):
    answer = httpx.request(method, deployed.address.api_url + path, json={})
    assert (answer.status_code, answer.json()) == (403, {"message": "Missing Authentication Token"})


def test_a_job_is_submitted_runs_and_completes(deployed, instance_type):
    submitted = deployed.api.submit(a_request("simple", instance_type, priority=7))
    assert (submitted["jobState"], submitted["priority"], submitted["position"]) == ("pending", 7, 1)
    done = deployed.state("simple", "completed")
    (attempt,) = done["attempts"]
    assert (attempt["trainingJobName"], attempt["outcome"]) == ("simple", "completed")
    assert [step["to"] for step in done["history"]] == ["pending", "starting", "running", "completed"]


def test_submitting_again_is_idempotent_and_another_body_is_refused(deployed, instance_type):
    request = a_request("twice", instance_type)
    first = deployed.api.submit(request)
    assert deployed.api.submit(request)["entryTime"] == first["entryTime"]
    with pytest.raises(Conflict) as refused:
        deployed.api.submit({**request, "Environment": {}})
    assert refused.value.type == "NameTaken"
    deployed.state("twice", "completed")


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"StoppingCondition": {"MaxRuntimeInSeconds": "long"}}, "InvalidRequest", "StoppingCondition"),
        ({"TrainingJobName": "no_underscores"}, "InvalidRequest", "TrainingJobName"),
        ({"ResourceConfig": {"InstanceType": "ml.p3.2xlarge", "InstanceCount": 1}}, "NeverFits", "ResourceConfig"),
        ({"Tags": [{"Key": "trainmaster:fast", "Value": "true"}]}, "UnknownOption", "Tags"),
    ],
)
def test_wrong_input_is_refused_by_field_and_nothing_is_stored(deployed, changes, error, field):
    request = a_request("wrong", "ml.g5.xlarge", **changes)
    with pytest.raises(Refused) as refused:
        deployed.api.submit(request)
    assert refused.value.type == error
    assert refused.value.field.startswith(field)
    assert not [job for job in deployed.api.all_jobs() if job["jobName"] in ("wrong", "no_underscores")]


def test_a_role_that_the_queue_may_not_pass_is_refused(deployed, instance_type):
    with pytest.raises(Forbidden) as refused:
        deployed.api.submit(a_request("role", instance_type, RoleArn="arn:aws:iam::111111111111:role/admin"))
    assert refused.value.type == "RoleNotAllowed"


def test_a_request_as_large_as_sagemaker_takes_is_taken_and_reaches_it_whole(deployed, instance_type):
    parameters = {f"parameter-{number:03}": "é" * 2500 for number in range(100)}
    environment = {f"VARIABLE_{number:03}": "v" * 512 for number in range(100)}
    deployed.api.submit(a_request("large", instance_type, HyperParameters=parameters, Environment=environment))
    deployed.state("large", "running", "completed")
    described = deployed.aws("sagemaker").describe_training_job(TrainingJobName="large")
    assert (described["HyperParameters"], described["Environment"]) == (parameters, environment)
    deployed.api.cancel("large")


def test_a_higher_job_preempts_and_the_lower_resumes_from_its_checkpoint(deployed, instance_type):
    deployed.api.submit(a_request("lower", instance_type, priority=1, steps=30))
    deployed.state("lower", "running")
    eventually(lambda: len(deployed.lines("lower")) > 3)
    answer = deployed.api.submit(a_request("higher", instance_type, priority=2, steps=5))
    assert answer["wouldPreempt"] == ["lower"]
    deployed.state("higher", "completed")
    done = deployed.state("lower", "completed")
    assert [attempt["outcome"] for attempt in done["attempts"]] == ["preempted", "completed"]
    before, after = (deployed.lines(attempt["trainingJobName"]) for attempt in done["attempts"])
    reached = int(before[-2].split()[1])
    assert before[-1].startswith("stopped")
    assert after[:2] == [f"resumed after step {reached}", f"step {reached + 1} of 30"]
    assert after[-1] == "step 30 of 30"


def test_a_job_that_its_user_stops_at_sagemaker_is_not_resumed(deployed, instance_type):
    deployed.api.submit(a_request("by-hand", instance_type, seconds=600))
    deployed.state("by-hand", "running")
    deployed.aws("sagemaker").stop_training_job(TrainingJobName="by-hand")
    stopped = deployed.state("by-hand", "stopped")
    assert [attempt["outcome"] for attempt in stopped["attempts"]] == ["stopped"]


def test_a_message_without_meaning_is_set_aside_and_blocks_no_other(deployed, instance_type):
    sqs = deployed.aws("sqs")
    sqs.send_message(
        QueueUrl=deployed.address.outputs["WakeQueueUrl"],
        MessageBody="no JSON",
        MessageGroupId="manager",
        MessageDeduplicationId="poison",
    )
    deployed.api.submit(a_request("behind", instance_type))
    deployed.state("behind", "completed")
    dead = deployed.address.outputs["WakeDeadLetterQueueUrl"]
    aside = eventually(lambda: sqs.receive_message(QueueUrl=dead).get("Messages"))
    assert "no JSON" in aside[0]["Body"]


def raise_cap(api, instance_type, cap):
    shown = api.pools()
    pools = [{"instanceType": pool["instanceType"], "cap": pool["cap"]} for pool in shown["pools"]]
    changed = [{**pool, "cap": cap} if pool["instanceType"] == instance_type else pool for pool in pools]
    api.set_pools(changed, version=shown["version"])


def test_raising_a_cap_starts_waiting_jobs(deployed, instance_type):
    for name in ("first", "second"):
        deployed.api.submit(a_request(name, instance_type, seconds=600))
    deployed.state("first", "running")
    waiting = deployed.state("second", "pending")
    assert waiting["position"] == 1
    raise_cap(deployed.api, instance_type, 2)
    deployed.state("second", "running")
    for name in ("first", "second"):
        deployed.api.cancel(name)
        deployed.state(name, "stopped")


def test_a_cap_above_the_accounts_limit_puts_the_job_back_without_burning_an_attempt(deployed, instance_type):
    raise_cap(deployed.api, instance_type, 3)
    names = ("within-1", "within-2", "beyond")
    for name in names:
        deployed.api.submit(a_request(name, instance_type, seconds=600))
    deployed.state("within-2", "running")
    returned = eventually(
        lambda: [step for step in deployed.api.job("beyond")["history"] if step["from"] == "starting"]
    )
    assert returned[0]["to"] == "pending"
    assert "ResourceLimitExceeded" in returned[0]["reason"]
    for name in names:
        deployed.api.cancel(name)


@pytest.mark.slow
def test_the_tick_finds_out_what_no_event_told(deployed, instance_type):
    events, rule = deployed.aws("events"), deployed.address.outputs["TrainingJobRuleName"]
    events.disable_rule(Name=rule)
    try:
        deployed.api.submit(a_request("unheard", instance_type))
        deployed.state("unheard", "starting")
        deployed.state("unheard", "completed", seconds=SOME_TICKS)
    finally:
        events.enable_rule(Name=rule)
