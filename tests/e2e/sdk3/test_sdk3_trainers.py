"""Real ModelTrainers of the SageMaker SDK 3 against a scripted queue: real HTTP, no patching."""

import logging
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from client_docs import blocks, example, run
from client_stage import BUCKET, Stage, meanwhile
from client_world import ROLE
from sagemaker.core.analytics import TrainingJobAnalytics
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.parameter import ContinuousParameter
from sagemaker.core.resources import TrainingJob
from sagemaker.core.utils.exceptions import FailedStatusError
from sagemaker.core.workflow.pipeline_context import PipelineSession
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import CheckpointConfig, Compute, InputData, OutputDataConfig, Tag
from sagemaker.train.tuner import HyperparameterTuner

from trainmaster import ElasticOptions, QueueBypassWarning, QueueSession

PAGES_ROLE = "arn:aws:iam::111122223333:role/training"


@pytest.fixture
def session(stage: Stage) -> Any:
    return QueueSession(default_bucket=BUCKET)


def a_trainer(session: Any, name: str = "job1", **changes: Any) -> ModelTrainer:
    arguments = {
        "training_image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/image:1",
        "role": ROLE,
        "base_job_name": name,
        "compute": Compute(instance_type="ml.m5.large", instance_count=1),
        "tags": [Tag(key="priority", value="100")],
        "checkpoint_config": CheckpointConfig(s3_uri=f"s3://{BUCKET}/checkpoints"),
        "input_data_config": [InputData(channel_name="training", data_source="s3://bucket/data")],
        "output_data_config": OutputDataConfig(s3_output_path="s3://bucket/out"),
        "sagemaker_session": session,
    }
    return ModelTrainer(**arguments | changes)


def test_the_example_of_the_how_to_page(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "train.py").write_text("print('hello')\n")
    monkeypatch.chdir(tmp_path)

    def script() -> None:
        name = the_queued(stage)
        stage.asked(name)
        stage.world.start(name)
        stage.world.end(name)

    with meanwhile(script):
        trainer = run(example("SDK 3: ModelTrainer", BUCKET))["trainer"]

    (job,) = stage.world.jobs.values()
    assert job["priority"] == 100
    assert trainer._latest_training_job.training_job_name == job["jobName"]
    assert trainer._latest_training_job.training_job_status == "Completed"


def test_train_without_waiting_returns_at_once(session: Any, stage: Stage) -> None:
    trainer = a_trainer(session)
    trainer.train(wait=False)
    assert stage.world.trainings == {}
    assert trainer._latest_training_job.secondary_status == "Pending"


def test_a_session_can_ask_for_resources_in_the_place_of_the_trainers_type(stage: Stage) -> None:
    session = QueueSession(default_bucket=BUCKET, resources="accelerators=8,vcpus=96")
    a_trainer(session).train(wait=False)
    (job,) = stage.world.jobs.values()
    config, tags = job["jobDetails"]["ResourceConfig"], job["jobDetails"]["Tags"]
    assert (config.get("InstanceType"), config["InstanceCount"]) == (None, 1)
    assert {"Key": "trainmaster:resources", "Value": "accelerators=8,vcpus=96"} in tags


def test_a_session_can_make_all_trainers_elastic(stage: Stage) -> None:
    session = QueueSession(default_bucket=BUCKET, elastic=ElasticOptions(max_instances=4))
    a_trainer(session).train(wait=False)
    (job,) = stage.world.jobs.values()
    assert {"Key": "trainmaster:max-instances", "Value": "4"} in job["jobDetails"]["Tags"]


def the_queued(stage: Stage) -> str:
    """Block until a job is in the queue; its name."""
    stage.world.await_calls("POST", "/add-job", 1)
    (name,) = stage.world.jobs
    return name


def test_train_waits_through_the_queue_and_shows_the_logs_of_all_attempts(
    session: Any, stage: Stage, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    trainer = a_trainer(session)

    def script() -> None:
        name = the_queued(stage)
        stage.asked(name)
        stage.write(stage.world.start(name), "step 1", "step 2")
        stage.asked(name, 2)
        stage.write(name, "saved a checkpoint")
        stage.preempted(name)
        stage.write(stage.world.start(name), "resumed at step 2", "step 3")
        stage.asked(name, 2)
        stage.write(f"{name}-qstamp-2", "step 4")
        stage.world.end(name)

    with caplog.at_level(logging.INFO), meanwhile(script):
        trainer.train(wait=True, logs=True)

    shown = capsys.readouterr().out
    assert "Waiting in the queue; position 1; estimated start 2030-01-01 12:00:00 UTC" in shown
    assert "Preempted, waiting in the queue to resume" in shown
    assert [shown.count(state) for state in ("Waiting in the queue", "Preempted, waiting")] == [1, 1]
    assert [record.name for record in caplog.records if record.name.startswith("http")] == []
    logged = "\n".join(record.getMessage() for record in caplog.records if "algo-1" in record.getMessage())
    lines = ("step 1", "step 2", "saved a checkpoint", "resumed at step 2", "step 3", "step 4")
    places = [logged.index(f":\n{line}") for line in lines]
    assert places == sorted(places)
    assert [logged.count(f":\n{line}") for line in lines] == [1] * len(lines)
    job = trainer._latest_training_job
    assert job.training_job_status == "Completed"
    assert job.model_artifacts.s3_model_artifacts.endswith("-qstamp-2/output/model.tar.gz")


def test_metrics_of_a_job_are_those_of_all_its_attempts(session: Any, stage: Stage) -> None:
    a_trainer(session).train(wait=False)
    name = the_queued(stage)
    stage.measure(name, 600, 3.0)
    stage.measure(name, 300, 2.0)
    waiting = TrainingJobAnalytics(name, ["loss"], sagemaker_session=session)
    assert list(waiting.dataframe()["value"]) == [3.0, 2.0]
    stage.world.start(name)
    stage.world.end(name)
    assert list(waiting.dataframe(force_refresh=True)["value"]) == [3.0, 2.0]


def test_a_failure_is_raised_as_the_sdk_does(session: Any, stage: Stage) -> None:
    def script() -> None:
        name = the_queued(stage)
        stage.asked(name)
        stage.world.start(name)
        stage.asked(name)
        stage.world.end(name, "Failed", "AlgorithmError: exit code 1")

    with meanwhile(script), pytest.raises(FailedStatusError, match="AlgorithmError: exit code 1"):
        a_trainer(session).train(wait=True, logs=False)


def test_a_waiting_job_is_stopped_through_the_queue(session: Any, stage: Stage) -> None:
    trainer = a_trainer(session)
    trainer.train(wait=False)
    job = trainer._latest_training_job

    job.stop()
    job.wait(poll=1)

    assert job.training_job_status == "Stopped"
    assert stage.world.jobs[job.training_job_name]["jobState"] == "cancelled"


def test_a_refused_job_is_a_client_error_with_our_hint(session: Any, stage: Stage) -> None:
    with pytest.raises(ClientError) as caught:
        a_trainer(session, compute=Compute(instance_type="ml.m5.large", instance_count=100)).train(wait=False)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert "Ask for fewer." in str(caught.value)
    assert stage.world.jobs == {}


def test_another_boto_session_starts_its_jobs_at_once(session: Any, stage: Stage) -> None:
    """The clients that sagemaker.core keeps are those of a boto session: another's are not routed."""
    a_trainer(session, "queued").train(wait=False)
    plain = Session(boto3.session.Session(), default_bucket=BUCKET)
    a_trainer(plain, "at-once").train(wait=False)
    assert [name.startswith("queued") for name in stage.world.jobs] == [True]
    assert [name.startswith("at-once") for name in stage.world.trainings] == [True]


def test_a_client_that_was_made_before_is_routed_as_well(stage: Stage) -> None:
    boto_session = boto3.session.Session()
    a_trainer(Session(boto_session, default_bucket=BUCKET), "before").train(wait=False)
    a_trainer(QueueSession(boto_session, default_bucket=BUCKET), "queued").train(wait=False)
    assert [name.startswith("queued") for name in stage.world.jobs] == [True]


def test_a_job_is_found_again_by_its_name(session: Any, stage: Stage) -> None:
    trainer = a_trainer(session)
    trainer.train(wait=False)
    name = trainer._latest_training_job.training_job_name
    stage.world.start(name)
    stage.world.preempt(name)
    stage.world.settle(name)
    stage.world.start(name)

    found = TrainingJob.get(name, session=session.boto_session, region="us-east-1")

    assert found.training_job_name == name
    assert found.secondary_status == "Training"
    assert [job["jobName"] for job in session.queue.all_jobs("running")] == [name]


def test_all_jobs_are_listed_once(session: Any, stage: Stage) -> None:
    for name in ("waiting", "resumed"):
        a_trainer(session, name).train(wait=False)
    waiting, resumed = sorted(stage.world.jobs, reverse=True)
    stage.world.start(resumed)
    stage.world.preempt(resumed)
    stage.world.settle(resumed)
    stage.world.start(resumed)
    listed = list(TrainingJob.get_all(session=session.boto_session))
    assert sorted(job.training_job_name for job in listed) == [resumed, waiting]


def test_a_tuner_says_that_it_bypasses_the_queue(session: Any, stage: Stage) -> None:
    tuner = HyperparameterTuner(
        a_trainer(session, hyperparameters={"lr": 0.1}, input_data_config=None),
        "loss",
        {"lr": ContinuousParameter(0, 1)},
        [{"Name": "loss", "Regex": "loss=(.*)"}],
        max_jobs=2,
    )
    with pytest.warns(QueueBypassWarning, match="Submit each trial to the queue instead"):
        tuner.tune(wait=False)
    assert stage.world.jobs == {}
    assert ("POST", "CreateHyperParameterTuningJob") in stage.world.calls


def test_a_pipeline_says_that_it_bypasses_the_queue(session: Any, stage: Stage) -> None:
    # These need a Region when they are imported.
    from sagemaker.mlops.workflow.pipeline import Pipeline
    from sagemaker.mlops.workflow.steps import TrainingStep

    captured = PipelineSession(session.boto_session, default_bucket=BUCKET)
    step = TrainingStep("train", step_args=a_trainer(captured).train())
    pipeline = Pipeline(name="pipeline", steps=[step], sagemaker_session=session)
    with pytest.warns(QueueBypassWarning, match="training, tuning and AutoML steps of a pipeline"):
        pipeline.create(ROLE)
    assert '"Type": "Training"' in stage.world.pipelines["pipeline"]["PipelineDefinition"]
    with pytest.warns(QueueBypassWarning, match="training step by trainmaster.pipelines.QueueStep"):
        pipeline.start()
    assert stage.world.jobs == {}


def completed(stage: Stage, name: str) -> None:
    stage.world.start(name)
    stage.world.end(name)


def completed_and_deleted(stage: Stage, name: str) -> None:
    stage.world.start(name)
    stage.world.preempt(name)
    stage.world.settle(name)
    completed(stage, name)
    stage.world.trainings.clear()


def failed_before_launch(stage: Stage, name: str) -> None:
    stage.world.jobs[name] |= {"jobState": "failed", "failureReason": "ValidationException: no such image"}


def cancelled(stage: Stage, name: str) -> None:
    stage.world.jobs[name]["jobState"] = "cancelled"


@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param(completed, "Completed", marks=pytest.mark.slow),
        (completed_and_deleted, "Completed"),
        (failed_before_launch, "Failed"),
        (cancelled, "Stopped"),
    ],
)
def test_a_job_that_has_ended_is_found_by_its_name(session: Any, stage: Stage, end: Any, status: str) -> None:
    trainer = a_trainer(session)
    trainer.train(wait=False)
    name = trainer._latest_training_job.training_job_name
    end(stage, name)

    found = TrainingJob.get(name, session=session.boto_session)

    assert (found.training_job_name, found.training_job_status) == (name, status)
    assert found.output_data_config.kms_key_id == ""
    if end is completed_and_deleted:
        assert found.model_artifacts.s3_model_artifacts.endswith("-qstamp-2/output/model.tar.gz")


NOTEBOOKS = "docs/how-to/notebooks.md"


@pytest.fixture
def interrupted(stage: Stage) -> tuple[dict[str, Any], str]:
    """Run the notebook's first cell, and interrupt it while the job waits, as Jupyter does; its variables and job.

    The SDK's telemetry (3.27) swallows the KeyboardInterrupt.
    """
    cell, found = blocks(NOTEBOOKS)[0].replace("my-bucket", BUCKET).replace(PAGES_ROLE, ROLE), dict[str, Any]()
    names: list[str] = []

    def interrupt() -> None:
        names.append(the_queued(stage))
        stage.asked(names[0], 2)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs without
    try:
        with meanwhile(interrupt), suppress(KeyboardInterrupt):
            exec(cell, found)
    finally:
        signal.signal(signal.SIGINT, before)
    return found, names[0]


def test_an_interrupted_cell_leaves_its_job_in_the_queue_and_the_next_one_cancels_it(
    interrupted: tuple[dict[str, Any], str], stage: Stage
) -> None:
    variables, name = interrupted
    assert stage.world.jobs[name]["jobState"] == "pending"
    exec(blocks(NOTEBOOKS)[1], variables)
    assert stage.world.jobs[name]["jobState"] == "cancelled"


def test_a_notebook_finds_its_job_again_after_the_kernel_has_restarted(
    interrupted: tuple[dict[str, Any], str], stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    _, name = interrupted

    def script() -> None:
        stage.asked(name)
        stage.world.start(name)
        stage.asked(name)
        stage.world.end(name)

    with meanwhile(script):
        after = run(blocks(NOTEBOOKS)[2].replace("my-bucket", BUCKET))

    assert f"{name} pending 1" in capsys.readouterr().out
    assert after["training_job"].training_job_status == "Completed"
