"""Real estimators of the SageMaker SDK 2 against a scripted queue: real HTTP, no patching."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from client_docs import blocks, example, replaced, run
from client_stage import BUCKET, Stage, meanwhile
from client_world import ROLE
from sagemaker.analytics import TrainingJobAnalytics
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch
from sagemaker.tuner import ContinuousParameter, HyperparameterTuner

from trainmaster import ElasticOptions, QueueBypassWarning, QueueSession


@pytest.fixture
def session(stage: Stage) -> Any:
    return QueueSession(default_bucket=BUCKET)


def an_estimator(session: Any, **changes: Any) -> Estimator:
    arguments = {
        "image_uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/image:1",
        "role": ROLE,
        "instance_type": "ml.m5.large",
        "instance_count": 1,
        "tags": [{"Key": "priority", "Value": "100"}],
        "checkpoint_s3_uri": f"s3://{BUCKET}/checkpoints",
        "sagemaker_session": session,
    }
    return Estimator(**arguments | changes)


def test_the_example_of_the_how_to_page(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    monkeypatch.chdir(tmp_path)

    def script() -> None:
        stage.world.await_calls("POST", "/add-job", 1)
        (name,) = stage.world.jobs
        stage.asked(name)
        stage.write(stage.world.start(name), "hello from the container")
        stage.world.end(name)

    with meanwhile(script):
        estimator = run(example("SDK 2: estimators", BUCKET))["estimator"]

    (job,) = stage.world.jobs.values()
    assert job["priority"] == 100
    assert job["jobName"] == estimator.latest_training_job.name
    assert job["jobDetails"]["HyperParameters"]["sagemaker_program"] == '"train.py"'
    assert "hello from the container" in capsys.readouterr().out


def test_a_session_can_ask_for_resources_in_the_place_of_the_estimators_type(stage: Stage) -> None:
    session = QueueSession(default_bucket=BUCKET, resources="accelerators=8,vcpus=96")
    an_estimator(session, instance_count=2).fit(wait=False)
    (job,) = stage.world.jobs.values()
    config, tags = job["jobDetails"]["ResourceConfig"], job["jobDetails"]["Tags"]
    assert (config.get("InstanceType"), config["InstanceCount"]) == (None, 2)
    assert {"Key": "trainmaster:resources", "Value": "accelerators=8,vcpus=96"} in tags


def test_a_session_of_another_region_starts_its_jobs_there_with_a_warning(stage: Stage) -> None:
    boto_session = boto3.session.Session(region_name="eu-west-1")
    api = "https://a1.execute-api.us-east-1.amazonaws.com/prod"
    session = QueueSession(boto_session, default_bucket=BUCKET, api=api)
    with pytest.warns(QueueBypassWarning, match="Jobs in eu-west-1 bypass the queue, which is in us-east-1"):
        an_estimator(session).fit(wait=False)
    assert (len(stage.world.trainings), stage.world.jobs) == (1, {})


def test_a_session_can_make_all_estimators_elastic(stage: Stage) -> None:
    session = QueueSession(default_bucket=BUCKET, elastic=ElasticOptions(instance_values=(2, 4)))
    an_estimator(session, instance_count=2).fit(wait=False)
    (job,) = stage.world.jobs.values()
    assert {"Key": "trainmaster:instance-values", "Value": "2+4"} in job["jobDetails"]["Tags"]


def test_the_session_of_the_page_on_elastic_jobs(stage: Stage) -> None:
    (code,) = blocks("docs/how-to/elastic-jobs.md")
    an_estimator(run(code)["session"], instance_count=2, output_path=f"s3://{BUCKET}/output").fit(wait=False)
    (job,) = stage.world.jobs.values()
    tags = {each["Key"]: each["Value"] for each in job["jobDetails"]["Tags"]}
    assert (tags["trainmaster:min-instances"], tags["trainmaster:instance-values"]) == ("2", "2+4+8")


def test_the_estimator_of_the_page_on_resources(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    monkeypatch.chdir(tmp_path)
    (code,) = [each for each in blocks("docs/how-to/ask-for-resources.md") if "PyTorch" in each]
    run(replaced(code, BUCKET))
    (job,) = stage.world.jobs.values()
    assert {"Key": "trainmaster:resources", "Value": "accelerators=8,accelerator=nvidia"} in job["jobDetails"]["Tags"]
    assert job["jobDetails"]["ResourceConfig"]["InstanceCount"] == 2


def test_the_articles_estimator_is_queued_at_once(session: Any, stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    estimator = PyTorch(
        role=ROLE,
        entry_point="train.py",
        source_dir=str(tmp_path),
        instance_type="ml.p5.48xlarge",
        instance_count=1,
        framework_version="2.0.1",
        py_version="py310",
        tags=[{"Key": "priority", "Value": "100"}],
        keep_alive_period_in_seconds=60,
        sagemaker_session=session,
    )

    estimator.fit(wait=False)

    (job,) = stage.world.jobs.values()
    assert job["jobDetails"]["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 60
    assert stage.world.trainings == {}
    assert session.describe_training_job(job["jobName"])["SecondaryStatus"] == "Pending"


def test_fit_waits_through_the_queue_and_shows_the_logs_of_all_attempts(
    session: Any, stage: Stage, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    estimator = an_estimator(session)

    def script() -> None:
        stage.asked("long-job")
        stage.write(stage.world.start("long-job"), "step 1", "step 2", "saved a checkpoint")
        stage.asked("long-job", 2)
        stage.world.preempt("long-job")
        stage.world.settle("long-job")
        stage.asked("long-job")
        stage.write(stage.world.start("long-job"), "resumed at step 2", "step 3")
        stage.world.end("long-job")

    with caplog.at_level(logging.INFO), meanwhile(script):
        estimator.fit(job_name="long-job")

    shown = capsys.readouterr().out
    assert "long-job: Waiting in the queue; position 1; estimated start 2030-01-01 12:00:00 UTC" in shown
    assert "Preempted, waiting in the queue to resume" in shown
    assert [shown.count(state) for state in ("Waiting in the queue", "Preempted, waiting", "\x1b")] == [1, 1, 0]
    assert [record.name for record in caplog.records if record.name.startswith("http")] == []
    assert [record.getMessage() for record in caplog.records].count("Training job long-job: no CheckpointConfig") == 1
    places = [shown.index(line) for line in ("step 1", "step 2", "saved", "resumed at step 2", "step 3")]
    assert places == sorted(places)
    assert [shown.count(line) for line in ("step 1", "resumed at", "step 3")] == [1, 1, 1]
    assert estimator.model_data == "s3://bucket/out/long-job-qstamp-2/output/model.tar.gz"


@pytest.mark.slow
def test_fit_without_logs_waits_for_the_real_end(session: Any, stage: Stage) -> None:
    estimator = an_estimator(session)

    def script() -> None:
        stage.asked("job1")
        stage.world.start("job1")
        stage.asked("job1")
        stage.preempted("job1")
        stage.world.start("job1")
        stage.asked("job1")
        stage.world.end("job1")

    with meanwhile(script):
        estimator.fit(job_name="job1", logs=False)
    assert estimator.model_data.endswith("/job1-qstamp-2/output/model.tar.gz")


def test_a_failure_is_raised_as_the_sdk_does(session: Any, stage: Stage) -> None:
    an_estimator(session).fit(job_name="job1", wait=False)

    def script() -> None:
        stage.asked("job1")
        stage.world.start("job1")
        stage.asked("job1")
        stage.world.end("job1", "Failed", "AlgorithmError: exit code 1")

    with meanwhile(script), pytest.raises(UnexpectedStatusException, match="AlgorithmError: exit code 1"):
        session.wait_for_job("job1", poll=1)


def test_a_job_cancelled_while_it_waits_ends_the_wait(
    session: Any, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    estimator = an_estimator(session)
    estimator.fit(job_name="job1", wait=False)

    def script() -> None:
        stage.asked("job1")
        estimator.latest_training_job.stop()

    with meanwhile(script):
        session.logs_for_job("job1", wait=True, poll=1)
    assert stage.world.jobs["job1"]["jobState"] == "cancelled"
    assert "Cancelled while waiting in the queue" in capsys.readouterr().out


def test_stopping_a_running_job_ends_it_for_good(session: Any, stage: Stage) -> None:
    estimator = an_estimator(session)
    estimator.fit(job_name="job1", wait=False)
    stage.world.start("job1")
    session.stop_training_job("job1")
    assert stage.world.count("DELETE", "/jobs/job1") == 1
    assert stage.world.count("POST", "StopTrainingJob") == 0
    stage.world.end("job1", "Stopped")
    assert session.wait_for_job("job1", poll=1)["TrainingJobStatus"] == "Stopped"


def test_the_wait_has_the_sdks_timeout(session: Any, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    an_estimator(session).fit(job_name="job1", wait=False)
    with pytest.raises(UnexpectedStatusException, match="InProgress"):
        session.logs_for_job("job1", wait=True, poll=1, timeout=2)
    assert "Timeout Exceeded" in capsys.readouterr().out


def test_attach_finds_a_waiting_job_and_waits_for_it(session: Any, stage: Stage) -> None:
    an_estimator(session, hyperparameters={"lr": 0.1}).fit(job_name="job1", wait=False)

    def script() -> None:
        stage.asked("job1", 2)
        stage.world.start("job1")
        stage.world.end("job1")

    with meanwhile(script):
        attached = Estimator.attach("job1", sagemaker_session=session)
    assert attached.hyperparameters() == {"lr": "0.1"}
    assert attached.tags == [{"Key": "priority", "Value": "100"}]
    assert attached.model_data == "s3://bucket/out/job1/output/model.tar.gz"


def completed(stage: Stage) -> None:
    stage.world.start("job1")
    stage.world.end("job1")


def completed_after_a_preemption(stage: Stage) -> None:
    stage.world.start("job1")
    stage.world.preempt("job1")
    stage.world.settle("job1")
    completed(stage)


def completed_and_deleted(stage: Stage) -> None:
    completed_after_a_preemption(stage)
    stage.world.trainings.clear()


def stopped(stage: Stage) -> None:
    stage.world.start("job1")
    stage.world.end("job1", "Stopped")


def cancelled(stage: Stage) -> None:
    stage.world.jobs["job1"]["jobState"] = "cancelled"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(completed, marks=pytest.mark.slow),
        pytest.param(completed_after_a_preemption, marks=pytest.mark.slow),
        completed_and_deleted,
        pytest.param(stopped, marks=pytest.mark.slow),
        cancelled,
    ],
)
def test_attach_to_a_job_that_has_ended(session: Any, stage: Stage, end: Callable[[Stage], None]) -> None:
    metrics = [{"Name": "loss", "Regex": "loss=(.*)"}]
    an_estimator(session, hyperparameters={"lr": 0.1}, metric_definitions=metrics).fit(
        {"train": f"s3://{BUCKET}/data"}, job_name="job1", wait=False
    )
    end(stage)
    attached = Estimator.attach("job1", sagemaker_session=session)
    assert attached.output_kms_key == ""
    assert attached.hyperparameters() == {"lr": "0.1"}
    assert attached.instance_type == "ml.m5.large"
    assert {"Key": "priority", "Value": "100"} in attached.tags
    assert session.describe_training_job("job1")["TrainingJobName"] == "job1"
    if end is completed_and_deleted:
        assert attached.model_data.endswith("/job1-qstamp-2/output/model.tar.gz")
    if end is not cancelled:
        assert TrainingJobAnalytics("job1", sagemaker_session=session)._metric_names == ["loss"]


def test_metrics_of_a_job_are_those_of_all_its_attempts(session: Any, stage: Stage) -> None:
    metrics = [{"Name": "loss", "Regex": "loss=(.*)"}]
    an_estimator(session, metric_definitions=metrics).fit(job_name="job1", wait=False)
    stage.measure("job1", 600, 3.0)
    stage.measure("job1", 300, 2.0)
    waiting = TrainingJobAnalytics("job1", sagemaker_session=session)
    assert list(waiting.dataframe()["value"]) == [3.0, 2.0]
    stage.world.start("job1")
    stage.world.end("job1")
    assert list(waiting.dataframe(force_refresh=True)["value"]) == [3.0, 2.0]


@pytest.mark.parametrize("launched", [pytest.param(True, marks=pytest.mark.slow), False])
def test_attach_to_a_failed_job_raises_as_the_sdk_does(session: Any, stage: Stage, launched: bool) -> None:
    an_estimator(session).fit(job_name="job1", wait=False)
    if launched:
        stage.world.start("job1")
        stage.world.end("job1", "Failed", "AlgorithmError: exit code 1")
    else:
        stage.world.jobs["job1"] |= {"jobState": "failed", "failureReason": "AlgorithmError: exit code 1"}
    with pytest.raises(UnexpectedStatusException, match="AlgorithmError: exit code 1"):
        Estimator.attach("job1", sagemaker_session=session)


def test_a_framework_attaches_to_a_job_that_was_deleted(session: Any, stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    estimator = PyTorch(
        role=ROLE,
        entry_point="train.py",
        source_dir=str(tmp_path),
        instance_type="ml.m5.large",
        instance_count=1,
        framework_version="2.0.1",
        py_version="py310",
        sagemaker_session=session,
    )
    estimator.fit(job_name="job1", wait=False)
    completed_and_deleted(stage)
    attached = PyTorch.attach("job1", sagemaker_session=session)
    assert (attached.entry_point, attached.framework_version) == ("train.py", "2.0.1")


def test_a_refused_job_is_a_client_error_with_our_hint(session: Any, stage: Stage) -> None:
    with pytest.raises(ClientError) as caught:
        an_estimator(session, instance_count=100).fit(wait=False)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert "Ask for fewer." in str(caught.value)
    assert stage.world.jobs == {}


def test_tuning_passes_through_untouched(session: Any, stage: Stage) -> None:
    estimator = an_estimator(session, metric_definitions=[{"Name": "loss", "Regex": "loss=(.*)"}])
    tuner = HyperparameterTuner(
        estimator, "loss", {"lr": ContinuousParameter(0, 1)}, estimator.metric_definitions, max_jobs=2
    )
    with pytest.warns(QueueBypassWarning, match="Submit each trial to the queue instead"):
        tuner.fit(job_name="tuning", wait=False)
    assert stage.world.jobs == {}
    assert ("POST", "CreateHyperParameterTuningJob") in stage.world.calls


def test_a_pipeline_of_the_session_works_and_says_that_it_bypasses_the_queue(session: Any, stage: Stage) -> None:
    from sagemaker.workflow.pipeline import Pipeline
    from sagemaker.workflow.steps import TrainingStep

    step = TrainingStep("train", estimator=an_estimator(session), inputs={"train": TrainingInput("s3://b/data")})
    pipeline = Pipeline("pipeline", steps=[step], sagemaker_session=session)
    with pytest.warns(QueueBypassWarning, match="training, tuning and AutoML steps of a pipeline"):
        pipeline.create(ROLE)
    assert '"Type": "Training"' in stage.world.pipelines["pipeline"]["PipelineDefinition"]
    with pytest.warns(QueueBypassWarning, match="training step by trainmaster.pipelines.QueueStep"):
        pipeline.start()
    assert stage.world.jobs == {}


def test_the_session_gives_the_queue_itself(session: Any, stage: Stage) -> None:
    an_estimator(session).fit(job_name="job1", wait=False)
    assert [job["jobName"] for job in session.queue.all_queued()] == ["job1"]
