"""The SDK's own TrainingQueue and TrainingQueuedJob on a scripted queue: real HTTP, no patching."""

import copy
import logging
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from client_docs import blocks, replaced, run
from client_stage import BUCKET, Stage, meanwhile
from client_world import ROLE
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.utils.utils import SageMakerClient
from sagemaker.train import ModelTrainer
from sagemaker.train.aws_batch.boto_client import get_batch_boto_client
from sagemaker.train.aws_batch.exception import MissingRequiredArgument, NoTrainingJob
from sagemaker.train.aws_batch.training_queue import TrainingQueue
from sagemaker.train.aws_batch.training_queued_job import TrainingQueuedJob
from sagemaker.train.configs import Compute, OutputDataConfig, SourceCode, StoppingCondition, Tag

import trainmaster
from trainmaster import route_batch
from trainmaster.client.batch.hook import unroute_batch

QUEUE, ENVIRONMENT, POLICY = "my-queue", "my-environment", "my-policy"
STATUSES = ("SUBMITTED", "PENDING", "RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")


@pytest.fixture(autouse=True)
def _no_default_client() -> Iterator[None]:
    """Leave none of the clients that the SDK keeps to other tests."""
    yield
    SageMakerClient.reset()


@pytest.fixture
def queue(stage: Stage) -> Iterator[TrainingQueue]:
    boto3.setup_default_session()
    SageMakerClient.reset()  # it keeps the client of its first use for the process, and so its address
    route_batch(queues=[QUEUE], environments=[ENVIRONMENT], policies=[POLICY])
    yield TrainingQueue(QUEUE)
    unroute_batch()


def a_trainer(**changes: Any) -> ModelTrainer:
    arguments = {
        "training_image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/image:1",
        "source_code": SourceCode(command="echo hello"),
        "role": ROLE,
        "base_job_name": "hello",
        "compute": Compute(instance_type="ml.m5.large", instance_count=1),
        "stopping_condition": StoppingCondition(max_runtime_in_seconds=300),
        "output_data_config": OutputDataConfig(s3_output_path="s3://bucket/out"),
        "sagemaker_session": Session(default_bucket=BUCKET),
    }
    return ModelTrainer(**arguments | changes)


def test_a_job_is_submitted_followed_and_has_a_trainer(queue: TrainingQueue, stage: Stage) -> None:
    trainer = a_trainer(tags=[Tag(key="team", value="vision")])
    job = queue.submit(trainer, inputs=None, job_name="my_job", priority=3, share_identifier="vision")
    (name,) = stage.world.jobs
    assert job.job_name == "my_job"
    assert stage.world.jobs[name]["priority"] == 3
    assert stage.world.jobs[name]["share"] == "vision"
    assert {"Key": "team", "Value": "vision"} in stage.world.jobs[name]["jobDetails"]["Tags"]
    with pytest.raises(NoTrainingJob):
        job.get_model_trainer()
    attempt = stage.world.start(name)
    assert queue.get_job("my_job").job_arn == job.job_arn
    assert job.get_model_trainer()._latest_training_job.training_job_name == attempt
    stage.world.end(name)
    assert job.result()["status"] == "SUCCEEDED"


@pytest.mark.slow
def test_map_over_equal_inputs_gives_as_many_jobs(queue: TrainingQueue, stage: Stage) -> None:
    jobs = queue.map(a_trainer(), inputs=[None] * 6)
    assert len(stage.world.jobs) == len({job.job_arn for job in jobs}) == 6
    assert len(queue.list_jobs(status="RUNNABLE")) == 6
    assert queue.list_jobs() == []


@pytest.mark.slow
def test_an_updated_priority_is_the_jobs(queue: TrainingQueue, stage: Stage) -> None:
    job = queue.submit(a_trainer(), inputs=None, job_name="job1")
    assert job.update(scheduling_priority=4)["jobArn"] == job.job_arn
    assert stage.world.jobs["job1"]["priority"] == job.describe()["schedulingPriority"] == 4


@pytest.mark.slow
def test_a_failed_job_raises_its_reason(queue: TrainingQueue, stage: Stage) -> None:
    failed, terminated = (queue.submit(a_trainer(), inputs=None, job_name=name) for name in ("job1", "job2"))
    stage.world.start("job1")
    stage.world.end("job1", "Failed", "AlgorithmError: exit 1")
    terminated.terminate("wrong data")
    with pytest.raises(RuntimeError, match="AlgorithmError: exit 1"):
        failed.result()
    with pytest.raises(RuntimeError, match="wrong data"):
        terminated.result()


WAITING, ENDED = ("pending", "preempted", "held"), ("completed", "failed", "stopped", "cancelled")


@pytest.mark.slow
def test_every_state_satisfies_the_sdk(queue: TrainingQueue, stage: Stage) -> None:
    """The SDK finds a training job exactly if SageMaker has one, and each failure has a reason."""
    world = stage.world
    submitted = queue.submit(a_trainer(), inputs=None, job_name="job1")
    for state in (*WAITING, "starting", "running", "preempting", "resizing", *ENDED):
        for launched in {state not in (*WAITING, "starting", *ENDED), True}:
            name = f"{state}-{launched}".lower()
            world.jobs[name] = copy.deepcopy(world.jobs["job1"]) | {"jobName": name}
            if state not in ("pending", "held"):
                world.start(name, heard_by_sagemaker=launched)
            if not launched and state not in ("pending", "held"):
                world.jobs[name]["attempts"][-1]["startedAt"] = None
            world.jobs[name] |= {"jobState": state, "reason": None}
            job = TrainingQueuedJob(submitted.job_arn.replace("job1", name), name)
            check_state(job, state, name in world.trainings)


def check_state(job: TrainingQueuedJob, state: str, has_training_job: bool) -> None:
    status = job.describe()["status"]
    if state in WAITING or (state == "starting" and not has_training_job):
        with pytest.raises(NoTrainingJob):
            job.get_model_trainer()
    elif has_training_job:
        assert job.get_model_trainer()._latest_training_job.training_job_name == job.job_name
    else:
        assert state in ENDED
        with pytest.raises(MissingRequiredArgument):
            job.get_model_trainer()
    if status == "FAILED":
        with pytest.raises(RuntimeError, match=r"\w"):
            job.result()


@pytest.mark.slow
def test_the_calls_of_awss_first_notebook(queue: TrainingQueue, stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Resources that exist are skipped; two jobs, of which one is terminated; all statuses are listed; logs."""
    batch = get_batch_boto_client()
    with pytest.raises(ClientError) as raised:
        batch.create_service_environment(
            serviceEnvironmentName=ENVIRONMENT,
            serviceEnvironmentType="SAGEMAKER_TRAINING",
            state="ENABLED",
            capacityLimits=[{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
        )
    assert raised.value.response["message"] == "Object already exists"
    with pytest.raises(ClientError) as raised:
        batch.create_job_queue(jobQueueName=QUEUE, jobQueueType="SAGEMAKER_TRAINING", state="ENABLED", priority=1)
    assert raised.value.response["message"] == "Object already exists"
    (environment,) = batch.describe_service_environments(serviceEnvironments=[ENVIRONMENT])["serviceEnvironments"]
    (shown,) = batch.describe_job_queues(jobQueues=[QUEUE])["jobQueues"]
    assert {environment["status"], shown["status"]} == {"VALID"}

    trainer = a_trainer()
    first, second = (queue.submit(training_job=trainer, inputs=None) for _ in range(2))
    second.terminate()
    listed = [job for status in STATUSES for job in queue.list_jobs(status=status)]
    assert sorted(job.describe()["status"] for job in listed) == ["FAILED", "RUNNABLE"]

    name = first.job_arn.rpartition("tm.")[2]
    attempt = stage.world.start(name)
    stage.write(attempt, "hello world")
    stage.world.end(name)
    while first.describe()["status"] not in {"STARTING", "RUNNING", "SUCCEEDED", "FAILED"}:
        time.sleep(0.1)
    with caplog.at_level(logging.INFO):
        attached = first.get_model_trainer()
    assert attached._latest_training_job.training_job_name == attempt


@pytest.mark.slow
def test_the_calls_of_awss_second_notebook(queue: TrainingQueue, stage: Stage) -> None:
    """Quota shares that exist are skipped; jobs by share and priority; a preemption; a priority that rises."""
    batch = get_batch_boto_client()
    with pytest.raises(ClientError) as raised:
        batch.create_scheduling_policy(name=POLICY, quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"})
    assert raised.value.response["message"] == "Object already exists"
    policies = [each["arn"] for each in batch.list_scheduling_policies()["schedulingPolicies"]]
    assert [arn for arn in policies if POLICY in arn]
    for share in ("QS1", "QS2"):
        with pytest.raises(ClientError) as raised:
            batch.create_quota_share(
                quotaShareName=share,
                jobQueue=QUEUE,
                capacityLimits=[{"capacityUnit": "ml.m5.large", "maxCapacity": 1}],
                resourceSharingConfiguration={"strategy": "LEND_AND_BORROW", "borrowLimit": 200},
                preemptionConfiguration={"inSharePreemption": "ENABLED"},
                state="ENABLED",
            )
        assert "already exists" in raised.value.response["message"]
        arn = batch.describe_job_queues(jobQueues=[QUEUE])["jobQueues"][0]["jobQueueArn"]
        found = batch.describe_quota_share(quotaShareArn=f"{arn}/quota-share/{share}")
        assert (found["status"], found["state"]) == ("VALID", "ENABLED")

    trainer, world = a_trainer(), stage.world
    high, low = (
        queue.submit(job_name=name, training_job=trainer, quota_share_name="QS1", priority=priority, inputs=None)
        for name, priority in (("qs1_job_high", 3), ("qs1_job_low", 1))
    )
    names = {job.job_name: job.job_arn.rpartition("tm.")[2] for job in (high, low)}
    for name in names.values():
        world.start(name)
    world.preempt(names["qs1_job_low"])
    world.settle(names["qs1_job_low"])
    assert (high.describe()["status"], low.describe()["status"]) == ("RUNNING", "RUNNABLE")
    assert low.describe()["preemptionSummary"]["recentPreemptedAttempts"]
    low.update(scheduling_priority=4)
    jobs = [job for status in STATUSES for job in queue.list_jobs_by_share(quota_share_name="QS1", status=status)]
    shown = {(job.job_name, job.describe()["quotaShareName"], job.describe()["schedulingPriority"]) for job in jobs}
    assert shown == {("qs1_job_high", "QS1", 3), ("qs1_job_low", "QS1", 4)}
    assert queue.list_jobs_by_share(quota_share_name="QS2", status="RUNNING") == []


def test_jobs_of_other_queues_are_not_touched(queue: TrainingQueue, stage: Stage) -> None:
    with pytest.raises(ClientError):
        TrainingQueue("of-batch").submit(a_trainer(), inputs=None)
    assert stage.world.jobs == {}


def test_trainmasters_training_queue_shows_the_wait_and_the_logs(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    boto3.setup_default_session()
    queue = trainmaster.TrainingQueue(QUEUE)
    boto3.setup_default_session()  # drops the route; the next call attaches it again
    (job,) = queue.map(a_trainer(), [None], job_names=["job1"])
    assert isinstance(job, TrainingQueuedJob)

    def script() -> None:
        stage.asked("job1")
        stage.write(stage.world.start("job1"), "epoch 1")
        stage.asked("job1")
        stage.world.end("job1")

    with meanwhile(script):
        described = job.wait(poll=0.05)
    assert described["status"] == "SUCCEEDED"
    told = capsys.readouterr().out
    assert (
        "job1: Waiting in the queue; position 1; estimated start 2030-01-01 12:00:00 UTC; no free ml.m5.large." in told
    )
    assert "job1: Completed." in told
    assert told.count("[algo-1] epoch 1") == 1
    assert [each.job_name for each in queue.list_jobs(status="SUCCEEDED")] == ["job1"]
    assert isinstance(queue.get_job("job1"), type(job))
    assert queue.list_jobs_by_share("SUCCEEDED", share_identifier="vision") == []
    unroute_batch()


@pytest.mark.slow
def test_the_examples_of_the_page_on_aws_batch(stage: Stage, queue: TrainingQueue) -> None:
    """Its third example goes on with the trainer of the first; the second is a test of boto3 alone."""
    first, _, third = (replaced(code, BUCKET) for code in blocks("docs/how-to/coming-from-aws-batch.md"))

    def script() -> None:
        while "train-2" not in stage.world.jobs:
            time.sleep(0.05)
        stage.world.start("train-2")
        stage.world.end("train-2")

    with meanwhile(script):
        variables = run(first + third)
    assert len(variables["jobs"]) == 3
    assert {job["priority"] for job in stage.world.jobs.values()} == {0, 5}
    assert variables["job"].describe()["status"] == "SUCCEEDED"
