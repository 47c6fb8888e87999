"""Descriptions of jobs that SageMaker does not have: they have the members of SageMaker's own responses."""

from collections.abc import Callable
from typing import Any

import pytest
from client_world import World, request_for

# Members of a response that the repository schematical/sc-terraform publishes, of an on-demand job with one channel.
# "/" separates a member's members; a list counts as its first item.
ALWAYS = [
    "TrainingJobName",
    "TrainingJobArn",
    "TrainingJobStatus",
    "SecondaryStatus",
    "RoleArn",
    "CreationTime",
    "LastModifiedTime",
    "AlgorithmSpecification/TrainingImage",
    "AlgorithmSpecification/TrainingInputMode",
    "AlgorithmSpecification/EnableSageMakerMetricsTimeSeries",
    "InputDataConfig/ChannelName",
    "InputDataConfig/DataSource",
    "InputDataConfig/CompressionType",
    "InputDataConfig/RecordWrapperType",
    "OutputDataConfig/KmsKeyId",
    "OutputDataConfig/S3OutputPath",
    "ResourceConfig/InstanceType",
    "ResourceConfig/InstanceCount",
    "ResourceConfig/VolumeSizeInGB",
    "StoppingCondition/MaxRuntimeInSeconds",
    "SecondaryStatusTransitions/Status",
    "SecondaryStatusTransitions/StartTime",
    "SecondaryStatusTransitions/StatusMessage",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "ProfilingStatus",
]
ENDED = [*ALWAYS, "ModelArtifacts/S3ModelArtifacts", "TrainingStartTime", "TrainingEndTime"]
CHANNEL = {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/d"}}}


@pytest.fixture(params=["hook", pytest.param("proxy", marks=pytest.mark.slow)])
def sagemaker(request: pytest.FixtureRequest, make_routed: Callable[[str], Any]) -> Any:
    return make_routed(request.param)


def has(description: Any, path: str) -> bool:
    for member in path.split("/"):
        description = description[0] if isinstance(description, list) else description
        if member not in description:
            return False
        description = description[member]
    return True


def ends(status: str) -> Callable[[World], None]:
    def script(world: World) -> None:
        world.start("job1")
        world.end("job1", status, "AlgorithmError: exit code 1" if status == "Failed" else None)
        del world.trainings["job1"]

    return script


def fails_before_launch(world: World) -> None:
    world.jobs["job1"] |= {"jobState": "failed", "failureReason": "ValidationException: no such image"}


def is_preempted(world: World) -> None:
    world.start("job1")
    world.preempt("job1")
    world.settle("job1")
    del world.trainings["job1"]


def is_cancelled(world: World) -> None:
    world.jobs["job1"]["jobState"] = "cancelled"


def waits(_: World) -> None:
    """Leave the job in the queue."""


@pytest.mark.parametrize(
    ("script", "status", "members"),
    [
        (waits, "InProgress", ALWAYS),
        (is_preempted, "InProgress", ALWAYS),
        (is_cancelled, "Stopped", ALWAYS),
        (fails_before_launch, "Failed", [*ALWAYS, "FailureReason"]),
        (ends("Completed"), "Completed", ENDED),
        (ends("Failed"), "Failed", [*ENDED, "FailureReason"]),
        (ends("Stopped"), "Stopped", ENDED),
    ],
)
def test_a_job_that_sagemaker_does_not_have_is_described_like_its_own(
    sagemaker: Any, world: World, script: Callable[[World], None], status: str, members: list[str]
) -> None:
    sagemaker.create_training_job(**request_for("job1", InputDataConfig=[CHANNEL]))
    script(world)
    job = sagemaker.describe_training_job(TrainingJobName="job1")
    assert [path for path in members if not has(job, path)] == []
    assert job["TrainingJobStatus"] == status


@pytest.mark.parametrize(("compression", "end"), [("GZIP", "model.tar.gz"), ("NONE", "model/")])
def test_a_completed_job_that_was_deleted_keeps_the_location_of_its_model(
    sagemaker: Any, world: World, compression: str, end: str
) -> None:
    output = {"S3OutputPath": "s3://bucket/out/", "CompressionType": compression}
    sagemaker.create_training_job(**request_for("job1", OutputDataConfig=output))
    world.start("job1")
    world.preempt("job1")
    world.settle("job1")
    world.start("job1")
    world.end("job1")
    world.trainings.clear()
    job = sagemaker.describe_training_job(TrainingJobName="job1")
    assert job["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://bucket/out/job1-qstamp-2/output/{end}"


@pytest.mark.parametrize("pool", ["ml.p5.48xlarge", "ml.p5.48xlarge.spot"])
def test_a_job_that_requests_resources_is_described_with_a_type_that_it_may_get(
    sagemaker: Any, world: World, pool: str
) -> None:
    config = {"InstanceCount": 1, "VolumeSizeInGB": 10}
    sagemaker.create_training_job(**request_for("job1", ResourceConfig=config))
    world.jobs["job1"] |= {"pools": ["cheap-one", pool], "resources": {"accelerators": 8}}
    assert sagemaker.describe_training_job(TrainingJobName="job1")["ResourceConfig"] == {
        "InstanceType": "ml.p5.48xlarge",
        **config,
    }
