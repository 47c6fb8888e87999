"""ModelTrainers of the SageMaker SDK 3 against the deployed stack: the real service and the SageMaker simulator.

The tests have one instance.
"""

import logging
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from client_deployed import COUNT_STEPS, INSTANCE, ROLE, SPEED
from sagemaker.core.resources import TrainingJob
from sagemaker.core.shapes import (
    AlgorithmSpecification,
    CheckpointConfig,
    OutputDataConfig,
    ResourceConfig,
    StoppingCondition,
)
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData, Tag

from trainmaster import QueueSession

pytestmark = pytest.mark.usefixtures("deployed")
NAME = f"sdk3-{int(time.time())}"
STEPS = 120
"""Of 0.2 s: long enough for a busy machine to have another job press in."""
IMAGE = "000000000000.dkr.ecr.us-east-1.amazonaws.com/count-steps:1"


@pytest.fixture
def session(deployed: None) -> Any:
    return QueueSession(default_bucket="training")


def a_trainer(session: Any, name: str, seconds: int, priority: int) -> ModelTrainer:
    """A job whose training is only simulated: ModelTrainer lets no script run outside a container."""
    return ModelTrainer(
        training_image=IMAGE,
        role=ROLE,
        base_job_name=name,
        compute=Compute(instance_type=INSTANCE, instance_count=1),
        tags=[Tag(key="priority", value=str(priority))],
        environment={"SIMULATOR_TRAINING_SECONDS": str(seconds * SPEED)},
        checkpoint_config=CheckpointConfig(s3_uri=f"s3://training/checkpoints/{name}"),
        input_data_config=[InputData(channel_name="training", data_source="s3://training/data")],
        output_data_config=OutputDataConfig(s3_output_path="s3://training/output"),
        sagemaker_session=session,
    )


def a_process(session: Any, name: str, steps: int, priority: int) -> TrainingJob:
    """Create a job by ModelTrainer's call, with an entry point that runs on this machine."""
    job: TrainingJob = TrainingJob.create(
        training_job_name=name,
        role_arn=ROLE,
        algorithm_specification=AlgorithmSpecification(
            training_image=IMAGE,
            training_input_mode="File",
            container_entrypoint=[sys.executable, str(COUNT_STEPS)],
        ),
        hyper_parameters={"steps": str(steps)},
        output_data_config=OutputDataConfig(s3_output_path="s3://training/output"),
        resource_config=ResourceConfig(instance_type=INSTANCE, instance_count=1, volume_size_in_gb=10),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=600),
        checkpoint_config=CheckpointConfig(s3_uri=f"s3://training/checkpoints/{name}"),
        tags=[{"key": "priority", "value": str(priority)}],
        session=session.boto_session,
    )
    return job


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Poll until it is true, at most so long."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.25)


def beside(session: Any, name: str, then: Callable[[], Any]) -> threading.Thread:
    """Do something once a job of this name, or beginning with it, has run for three seconds."""

    def run() -> None:
        until(lambda: any(job["jobName"].startswith(name) for job in session.queue.all_jobs("running")))
        threading.Event().wait(3)
        then()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_train_goes_on_through_a_preemption_to_the_real_end(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = a_trainer(session, f"{NAME}-low", 30, 1)
    presser = beside(session, f"{NAME}-low", lambda: a_trainer(session, f"{NAME}-high", 3, 9).train(wait=False))

    trainer.train(wait=True, logs=True)
    presser.join()

    job = trainer._latest_training_job
    assert job.training_job_status == "Completed"
    # SageMaker's event reaches the queue after its answer.
    until(lambda: session.queue.job(job.training_job_name)["jobState"] == "completed")
    attempts = session.queue.job(job.training_job_name)["attempts"]
    assert [attempt["outcome"] for attempt in attempts] == ["preempted", "completed"]
    assert job.model_artifacts.s3_model_artifacts.endswith("-qstamp-2/output/model.tar.gz")
    assert "Preempted, waiting in the queue to resume" in capsys.readouterr().out


def test_the_logs_of_all_attempts_are_shown(session: Any, caplog: pytest.LogCaptureFixture) -> None:
    job = a_process(session, f"{NAME}-logs", STEPS, 1)
    presser = beside(session, f"{NAME}-logs", lambda: a_process(session, f"{NAME}-first", 5, 9))

    with caplog.at_level(logging.INFO, logger="sagemaker.core"):
        job.wait(poll=1, logs=True)
    presser.join()

    shown = "\n".join(record.getMessage() for record in caplog.records)
    steps = [int(step) for step in re.findall(rf"step (\d+) of {STEPS}", shown)]
    assert steps[0] == 1
    assert steps[-1] >= STEPS - 10
    assert steps == sorted(set(steps))
    assert "resumed after step" in shown


def test_stopping_ends_a_job_for_good(session: Any) -> None:
    job = a_process(session, f"{NAME}-stop", 500, 1)
    until(lambda: session.queue.job(job.training_job_name)["jobState"] == "running")
    job.stop()
    job.wait(poll=1)
    until(lambda: session.queue.job(job.training_job_name)["jobState"] == "stopped")
    assert job.training_job_status == "Stopped"
    assert [attempt["outcome"] for attempt in session.queue.job(job.training_job_name)["attempts"]] == ["stopped"]
