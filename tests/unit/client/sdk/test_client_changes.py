"""Tags, updates and deletion of jobs of the queue through boto3."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from client_world import ACCOUNT, REGION, World, request_for

ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job1"
TEAM = {"Key": "team", "Value": "red"}
PRIORITY = {"Key": "priority", "Value": "7"}


@pytest.fixture(params=["hook", pytest.param("proxy", marks=pytest.mark.slow)])
def sagemaker(request: pytest.FixtureRequest, make_routed: Callable[[str], Any]) -> Any:
    client = make_routed(request.param)
    client.create_training_job(**request_for("job1"))
    return client


def runs_again(world: World) -> None:
    world.start("job1")
    world.preempt("job1")
    world.settle("job1")
    world.start("job1")


def refusal(call: Any, **arguments: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_priority_tag_changes_the_priority_of_a_job_that_waits(sagemaker: Any, world: World) -> None:
    new = {"Key": "priority", "Value": "9"}
    assert sagemaker.add_tags(ResourceArn=ARN, Tags=[new])["Tags"] == [new]
    assert world.jobs["job1"]["priority"] == 9
    assert sagemaker.list_tags(ResourceArn=ARN)["Tags"] == [new]


@pytest.mark.parametrize("tags", [[TEAM], [PRIORITY, TEAM], [{"Key": "priority", "Value": "high"}]])
def test_other_tags_of_a_job_that_waits_cannot_change(sagemaker: Any, world: World, tags: list[dict[str, str]]) -> None:
    code, message = refusal(sagemaker.add_tags, ResourceArn=ARN, Tags=tags)
    assert code == "ValidationException"
    assert message.startswith("Training job job1 waits in the queue. Of its tags, only `priority` can change")
    assert world.jobs["job1"]["priority"] == 7


def test_tags_of_a_job_that_waits_cannot_be_deleted(sagemaker: Any) -> None:
    code, message = refusal(sagemaker.delete_tags, ResourceArn=ARN, TagKeys=["priority"])
    assert (code, message.partition(". ")[2]) == (
        "ValidationException",
        "Its tags cannot be deleted. Cancel it and submit it again under another name to change its request.",
    )


def test_tags_of_a_running_job_are_those_of_its_newest_attempt(sagemaker: Any, world: World) -> None:
    runs_again(world)
    sagemaker.add_tags(ResourceArn=ARN, Tags=[TEAM])
    assert world.trainings["job1-qstamp-2"]["Tags"] == [PRIORITY, TEAM]
    sagemaker.delete_tags(ResourceArn=ARN, TagKeys=["team"])
    assert world.trainings["job1-qstamp-2"]["Tags"] == [PRIORITY]
    assert PRIORITY in sagemaker.list_tags(ResourceArn=ARN)["Tags"]


@pytest.mark.parametrize("suffix", ["", "-qstamp-2"])
def test_tags_of_a_job_that_sagemaker_no_longer_has_are_those_of_its_request(
    sagemaker: Any, world: World, suffix: str
) -> None:
    runs_again(world)
    world.end("job1")
    world.trainings.clear()
    sagemaker.describe_training_job(TrainingJobName="job1")
    assert sagemaker.list_tags(ResourceArn=ARN + suffix)["Tags"] == [PRIORITY]


@pytest.mark.parametrize("call", ["list_tags", "add_tags", "delete_tags"])
def test_tags_of_other_resources_pass_through(sagemaker: Any, world: World, call: str) -> None:
    world.train(request_for("other"))
    arguments = {"list_tags": {}, "add_tags": {"Tags": [TEAM]}, "delete_tags": {"TagKeys": ["team"]}}[call]
    getattr(sagemaker, call)(ResourceArn=ARN.replace("job1", "other"), **arguments)
    assert refusal(getattr(sagemaker, call), ResourceArn=ARN.replace("job1", "none"), **arguments) == (
        "ValidationException",
        "Requested resource not found.",
    )


def test_a_job_that_has_not_ended_cannot_be_deleted(sagemaker: Any, world: World) -> None:
    code, message = refusal(sagemaker.delete_training_job, TrainingJobName="job1")
    assert (code, message) == (
        "ResourceInUse",
        "Training job job1 waits in the queue. You can delete it when it has ended.",
    )
    runs_again(world)
    assert refusal(sagemaker.delete_training_job, TrainingJobName="job1")[1].startswith("Training job job1 is running.")
    assert set(world.trainings) == {"job1", "job1-qstamp-2"}


@pytest.mark.parametrize("known_to_sagemaker", [True, False])
def test_deletion_deletes_all_attempts_and_the_job(sagemaker: Any, world: World, known_to_sagemaker: bool) -> None:
    runs_again(world)
    world.end("job1")
    if not known_to_sagemaker:
        world.trainings.clear()
    sagemaker.delete_training_job(TrainingJobName="job1")
    assert (world.jobs, world.trainings) == ({}, {})
    assert refusal(sagemaker.describe_training_job, TrainingJobName="job1")[1] == "Requested resource not found."


def test_attempts_that_are_no_longer_listed_are_deleted_too(sagemaker: Any, world: World) -> None:
    runs_again(world)
    world.end("job1")
    del world.jobs["job1"]["attempts"][0]
    sagemaker.delete_training_job(TrainingJobName="job1")
    assert world.trainings == {}


def test_a_job_that_ended_without_an_attempt_is_deleted_from_the_queue(sagemaker: Any, world: World) -> None:
    sagemaker.stop_training_job(TrainingJobName="job1")
    sagemaker.delete_training_job(TrainingJobName="job1")
    assert world.jobs == {}
    assert ("POST", "DeleteTrainingJob") not in world.calls


def test_what_sagemaker_does_not_delete_stays_in_the_queue(sagemaker: Any, world: World) -> None:
    world.start("job1")
    world.end("job1")
    world.trainings["job1"]["WarmPoolStatus"] = {"Status": "Available"}
    assert refusal(sagemaker.delete_training_job, TrainingJobName="job1")[0] == "ValidationException"
    assert set(world.jobs) == {"job1"}
