"""Estimators of the SageMaker SDK 2 against the deployed stack: the real service, jobs that are real processes.

The tests have one instance.
"""

import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from client_deployed import COUNT_STEPS, INSTANCE, ROLE
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException

from trainmaster import QueueSession, route_to_queue
from trainmaster.client.sdk.hook import unroute

pytestmark = pytest.mark.usefixtures("deployed")
NAME = f"sdk2-{int(time.time())}"
STEPS = 120
"""Of 0.2 s: long enough for a busy machine to have another job press in."""


def an_estimator(name: str, steps: int, priority: int, **changes: Any) -> Estimator:
    arguments = {
        "image_uri": "000000000000.dkr.ecr.us-east-1.amazonaws.com/count-steps:1",
        "role": ROLE,
        "instance_type": INSTANCE,
        "instance_count": 1,
        "container_entry_point": [sys.executable, str(COUNT_STEPS)],
        "hyperparameters": {"steps": steps},
        "output_path": "s3://training/output",
        "checkpoint_s3_uri": f"s3://training/checkpoints/{name}",
        "tags": [{"Key": "priority", "Value": str(priority)}],
        "sagemaker_session": QueueSession(default_bucket="training"),
    }
    return Estimator(**arguments | changes)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Poll until it is true, at most so long."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.25)


def test_fit_goes_on_through_a_preemption_to_the_real_end(capsys: pytest.CaptureFixture[str]) -> None:
    low, high = f"{NAME}-low", f"{NAME}-high"
    estimator, urgent = an_estimator(low, STEPS, 1), an_estimator(high, 5, 9)
    queue = estimator.sagemaker_session.queue

    def press_in() -> None:
        until(lambda: any(job["jobName"] == low for job in queue.all_jobs("running")))
        threading.Event().wait(2)
        urgent.fit(wait=False, job_name=high)

    presser = threading.Thread(target=press_in)
    presser.start()
    estimator.fit(job_name=low)
    presser.join()

    shown = capsys.readouterr().out
    steps = [int(step) for step in re.findall(rf"step (\d+) of {STEPS}", shown)]
    assert steps[0] == 1
    assert steps[-1] == STEPS
    assert steps == sorted(set(steps))
    assert "resumed after step" in shown
    until(lambda: queue.job(low)["jobState"] == "completed")  # SageMaker's event reaches the queue after its answer
    assert [attempt["outcome"] for attempt in queue.job(low)["attempts"]] == ["preempted", "completed"]
    assert estimator.model_data == f"s3://training/output/{low}-qstamp-2/output/model.tar.gz"
    until(lambda: queue.job(high)["jobState"] == "completed")


def test_stopping_and_failing_end_a_job_for_good() -> None:
    stopped, failed = f"{NAME}-stopped", f"{NAME}-failed"
    first = an_estimator(stopped, 500, 1)
    first.fit(wait=False, job_name=stopped)
    queue = first.sagemaker_session.queue
    until(lambda: queue.job(stopped)["jobState"] == "running")
    second = an_estimator(failed, 1, 1, hyperparameters={"steps": "none"})
    second.fit(wait=False, job_name=failed)
    assert second.latest_training_job.describe()["SecondaryStatus"] == "Pending"

    first.latest_training_job.stop()
    until(lambda: queue.job(stopped)["jobState"] == "stopped")
    assert first.sagemaker_session.wait_for_job(stopped, poll=1)["TrainingJobStatus"] == "Stopped"
    assert [attempt["outcome"] for attempt in queue.job(stopped)["attempts"]] == ["stopped"]
    with pytest.raises(UnexpectedStatusException, match="AlgorithmError"):
        second.sagemaker_session.wait_for_job(failed, poll=1)


def test_plain_boto3_is_served_as_well() -> None:
    session = boto3.session.Session()
    queue = route_to_queue(session).api
    sagemaker = session.client("sagemaker")
    name = f"{NAME}-boto"
    sagemaker.create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "000000000000.dkr.ecr.us-east-1.amazonaws.com/count-steps:1",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": [sys.executable, str(COUNT_STEPS)],
        },
        HyperParameters={"steps": "2"},
        OutputDataConfig={"S3OutputPath": "s3://training/output"},
        ResourceConfig={"InstanceType": INSTANCE, "InstanceCount": 1, "VolumeSizeInGB": 10},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
    )
    waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    until(lambda: queue.job(name)["jobState"] == "completed")  # SageMaker's event reaches the queue after its answer
    unroute(session)
    assert sagemaker.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] == "Completed"
