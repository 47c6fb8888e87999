"""TrainingQueue of the SDK 2 on a scripted queue, in releases that have it: real HTTP, no patching."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from client_stage import BUCKET, Stage, meanwhile
from client_world import ROLE
from sagemaker.estimator import Estimator
from sagemaker.session import Session

import trainmaster
from trainmaster import route_batch
from trainmaster.client.batch.hook import unroute_batch

queues = pytest.importorskip("sagemaker.aws_batch.training_queue", reason="this release has no AWS Batch")
QUEUE = "my-queue"


@pytest.fixture
def queue(stage: Stage) -> Iterator[Any]:
    boto3.setup_default_session()
    route_batch(queues=[QUEUE])
    yield queues.TrainingQueue(QUEUE)
    unroute_batch()


def an_estimator() -> Estimator:
    return Estimator(
        image_uri="123456789012.dkr.ecr.us-east-1.amazonaws.com/image:1",
        role=ROLE,
        instance_count=1,
        instance_type="ml.m5.large",
        output_path="s3://bucket/out",
        max_run=300,
        sagemaker_session=Session(default_bucket=BUCKET),
    )


def test_a_job_is_submitted_followed_and_attached(queue: Any, stage: Stage) -> None:
    from sagemaker.aws_batch.exception import NoTrainingJob

    job = queue.submit(an_estimator(), inputs=None, job_name="Nice_Name", priority=3, share_identifier="vision")
    (name,) = stage.world.jobs
    assert (job.job_name, stage.world.jobs[name]["priority"]) == ("Nice_Name", 3)
    with pytest.raises(NoTrainingJob):
        job.get_estimator()
    attempt = stage.world.start(name)
    stage.world.end(name)
    assert queue.get_job("Nice_Name").job_arn == job.job_arn
    assert job.result()["status"] == "SUCCEEDED"
    assert job.get_estimator().latest_training_job.name == attempt


def test_map_gives_as_many_jobs_as_inputs_and_a_terminated_one_has_its_reason(queue: Any, stage: Stage) -> None:
    jobs = queue.map(an_estimator(), inputs=[None] * 3, job_names=["job1"] * 3)
    assert len(stage.world.jobs) == len({job.job_arn for job in jobs}) == 3
    assert len(queue.list_jobs(status="RUNNABLE")) == len(queue.list_jobs("job1")) == 3
    jobs[0].terminate("wrong data")
    with pytest.raises(RuntimeError, match="wrong data"):
        jobs[0].result()


def test_trainmasters_training_queue_shows_the_wait(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    boto3.setup_default_session()
    job = trainmaster.TrainingQueue(QUEUE).submit(an_estimator(), inputs=None, job_name="job1")

    def script() -> None:
        stage.asked("job1")
        stage.world.start("job1")
        stage.world.end("job1")

    with meanwhile(script):
        assert job.wait(poll=0.05)["status"] == "SUCCEEDED"
    assert "job1: Waiting in the queue; position 1;" in capsys.readouterr().out
    unroute_batch()
