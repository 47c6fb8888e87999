"""Airflow's own operators, sensors and triggers against a scripted queue: real HTTP, no patching."""

import asyncio
import gc
import warnings
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.hooks.sagemaker import SageMakerHook
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTuningOperator
from airflow.providers.amazon.aws.sensors.sagemaker import SageMakerTrainingSensor
from airflow.sdk.exceptions import AirflowException, TaskDeferred
from airflow_stage import connect, event_of, queue_of_the_stage, run, sent, training
from botocore.exceptions import ClientError
from client_stage import BUCKET, Stage, meanwhile
from client_world import request_for
from structlog.testing import capture_logs

from trainmaster import QueueBypassWarning

REASON = "AlgorithmError: exit code 1"
BOTH = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])


@pytest.fixture(autouse=True)
def connection(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)


def tags(stage: Stage, name: str = "job1") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in stage.world.jobs[name]["jobDetails"].get("Tags", [])}


def asked(stage: Stage, times: int, name: str = "job1") -> None:
    """Block until a job in the queue has been asked for so often since now."""
    stage.world.await_calls("POST", "/add-job", 1)
    stage.asked(name, times)


@BOTH
def test_a_task_waits_through_the_queue_and_a_preemption(stage: Stage, deferrable: bool) -> None:
    def script() -> None:
        asked(stage, 5)
        stage.world.start("job1")
        stage.asked("job1", 2)
        stage.preempted("job1")
        stage.asked("job1", 5)
        stage.world.start("job1")
        stage.asked("job1", 2)
        stage.world.end("job1")

    with meanwhile(script):
        described = run(training(deferrable=deferrable))["Training"]

    assert (described["TrainingJobName"], described["TrainingJobStatus"]) == ("job1", "Completed")
    assert described["ModelArtifacts"]["S3ModelArtifacts"].endswith("/job1-qstamp-2/output/model.tar.gz")


@BOTH
def test_the_xcom_has_the_members_that_it_has_without_the_queue(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, deferrable: bool
) -> None:
    def end_both() -> None:
        asked(stage, 2, "queued")
        stage.world.start("queued")
        stage.asked("queued", 2)
        stage.world.end("queued")
        stage.world.await_calls("POST", "CreateTrainingJob", 1)
        stage.world.tell("plain", "Completed", "Completed", "Training job completed")

    connect(monkeypatch, "direct", extra={"region_name": "us-east-1", "trainmaster": False})
    with meanwhile(end_both):
        queued = run(training("queued", deferrable=deferrable))
        plain = run(training("plain", deferrable=deferrable, aws_conn_id="direct"))

    assert list(stage.world.jobs) == ["queued"]
    assert queued.keys() == plain.keys() == {"Training"}
    assert queued["Training"].keys() == plain["Training"].keys()


@BOTH
def test_a_failure_ends_the_task_with_its_reason(stage: Stage, deferrable: bool) -> None:
    def script() -> None:
        asked(stage, 2)
        stage.world.start("job1")
        stage.world.end("job1", "Failed", REASON)

    with meanwhile(script), pytest.raises(AirflowException, match=REASON):
        run(training(deferrable=deferrable))


@BOTH
def test_a_request_that_the_queue_refuses_fails_the_task_with_its_hint(stage: Stage, deferrable: bool) -> None:
    resources = request_for("job1")["ResourceConfig"] | {"InstanceCount": 100}
    operator = training(config=request_for("job1", ResourceConfig=resources), deferrable=deferrable)
    with pytest.raises(ClientError, match=r"the pool has 99.*Ask for fewer") as raised:
        run(operator)
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    assert stage.world.trainings == {}


def test_a_deferred_task_counts_the_polls_of_a_job_that_runs_and_not_its_wait(stage: Stage) -> None:
    """By default, an operator that defers polls 60 times, and fails then."""
    operator = training(deferrable=True, max_attempts=3)
    with pytest.raises(TaskDeferred) as raised:
        operator.execute({})
    described = stage.world.count("POST", "DescribeTrainingJob")

    def script() -> None:
        stage.asked("job1", 20)
        stage.world.start("job1")

    with meanwhile(script):
        event = event_of(raised.value.trigger)
    assert event["status"] == "timeout"
    polls_of_the_run = stage.world.count("POST", "DescribeTrainingJob") - described
    assert polls_of_the_run == 3 - 1, "the queue answers the first poll"


def test_a_deferred_task_that_waits_can_be_cancelled(stage: Stage) -> None:
    with pytest.raises(TaskDeferred) as raised:
        training(deferrable=True).execute({})

    async def cancel() -> None:
        trigger = asyncio.ensure_future(anext(sent(raised.value.trigger).run()))
        await asyncio.sleep(0.5)
        trigger.cancel()
        await trigger

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert stage.world.jobs["job1"]["jobState"] == "pending"


def test_many_deferred_tasks_share_one_loop_and_one_client_of_the_queue(stage: Stage) -> None:
    names = [f"job{number}" for number in range(1, 9)]
    for name in names:
        training(name, wait_for_completion=False).execute({})

    def script() -> None:
        for name in reversed(names):
            stage.asked(name, 2)
            stage.world.start(name)
            stage.world.end(name)

    async def events() -> list[str]:
        triggers = [sent(deferral(name).trigger) for name in names]
        found = await asyncio.gather(*(anext(trigger.run()) for trigger in triggers))
        return [event.payload["job_name"] for event in found if event.payload["status"] == "success"]

    def deferral(name: str) -> TaskDeferred:
        with pytest.raises(TaskDeferred) as raised:
            training(name, deferrable=True, check_if_job_exists=False).execute({})
        return raised.value

    with meanwhile(script):
        assert asyncio.run(events()) == names


@BOTH
def test_a_job_cancelled_in_the_queue_ends_the_task(stage: Stage, deferrable: bool) -> None:
    def script() -> None:
        asked(stage, 3)
        stage.world.jobs["job1"]["jobState"] = "cancelled"

    with meanwhile(script), pytest.raises((AirflowException, KeyError)):
        run(training(deferrable=deferrable))


def test_stopping_a_job_by_the_hook_cancels_it_in_the_queue(stage: Stage) -> None:
    operator = training(wait_for_completion=False)
    operator.execute({})
    operator.hook.get_conn().stop_training_job(TrainingJobName="job1")
    assert stage.world.jobs["job1"]["jobState"] == "cancelled"


def test_stopping_a_job_by_the_asynchronous_hook_cancels_it_in_the_queue(stage: Stage) -> None:
    training(wait_for_completion=False).execute({})

    async def stop() -> None:
        async with await SageMakerHook().get_async_conn() as client:
            await client.stop_training_job(TrainingJobName="job1")

    asyncio.run(stop())
    assert stage.world.jobs["job1"]["jobState"] == "cancelled"


# -- names


def test_a_name_that_the_queue_has_is_changed_as_one_that_sagemaker_has(stage: Stage) -> None:
    training(wait_for_completion=False).execute({})
    training(wait_for_completion=False).execute({})
    first, second = stage.world.jobs
    assert first == "job1"
    assert second.startswith("job1-")
    with pytest.raises(AirflowException, match="already exists"):
        training(wait_for_completion=False, action_if_job_exists="fail").execute({})


def test_a_retry_without_the_check_waits_for_the_job_of_the_earlier_try(stage: Stage) -> None:
    training(check_if_job_exists=False, wait_for_completion=False).execute({})

    def script() -> None:
        stage.asked("job1", 2)
        stage.world.start("job1")
        stage.world.end("job1")

    with meanwhile(script):
        described = run(training(check_if_job_exists=False, deferrable=True))
    assert described["Training"]["TrainingJobStatus"] == "Completed"
    assert list(stage.world.jobs) == ["job1"]


# -- sensors and hooks


def test_a_sensor_waits_through_the_queue_and_a_preemption(stage: Stage) -> None:
    training(wait_for_completion=False).execute({})
    sensor = SageMakerTrainingSensor(task_id="wait", job_name="job1", print_log=False)
    assert sensor.poke({}) is False
    stage.world.start("job1")
    assert sensor.poke({}) is False
    stage.world.preempt("job1")
    assert sensor.poke({}) is False
    stage.world.settle("job1")
    assert sensor.poke({}) is False
    stage.world.start("job1")
    stage.world.end("job1")
    assert sensor.poke({}) is True


def test_a_sensor_reports_why_a_job_failed(stage: Stage) -> None:
    training(wait_for_completion=False).execute({})
    stage.world.start("job1")
    stage.world.end("job1", "Failed", REASON)
    with pytest.raises(AirflowException, match=REASON):
        SageMakerTrainingSensor(task_id="wait", job_name="job1", print_log=False).poke({})


def test_lists_and_waiters_of_the_hook_know_the_jobs_of_the_queue(stage: Stage) -> None:
    training(wait_for_completion=False).execute({})
    (listed,) = SageMakerHook().list_training_jobs(name_contains="job1")
    assert (listed["TrainingJobName"], listed["TrainingJobStatus"]) == ("job1", "InProgress")
    stage.world.start("job1")
    stage.world.end("job1")
    waiter = SageMakerHook().get_conn().get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName="job1", WaiterConfig={"MaxAttempts": 1})


def test_logs_of_all_attempts_are_read_as_those_of_one_job(stage: Stage) -> None:
    """A sensor reads the logs at each look, from where it was; it describes the job each 30 seconds."""
    training(wait_for_completion=False).execute({})
    stage.write(stage.world.start("job1"), "step 1", "saved")
    sensor = SageMakerTrainingSensor(task_id="wait", job_name="job1")
    with capture_logs() as logs:
        sensor.poke({})
        stage.world.preempt("job1")
        stage.world.settle("job1")
        stage.write(stage.world.start("job1"), "resumed", "step 2")
        sensor.hook.describe_training_job("job1")
        gc.collect()  # a hook keeps its client, and not its session
        sensor.poke({})
    lines = ("step 1", "saved", "resumed", "step 2")
    assert [line["event"] for line in logs if line["event"] in lines] == list(lines)


@pytest.mark.slow
def test_an_operator_that_prints_logs_shows_the_queue_and_all_attempts(stage: Stage) -> None:
    """It describes the job every 30 seconds."""

    def script() -> None:
        asked(stage, 2)
        stage.write(stage.world.start("job1"), "step 1")
        stage.asked("job1")
        stage.world.preempt("job1")
        stage.world.settle("job1")
        stage.asked("job1")
        stage.write(stage.world.start("job1"), "step 2")
        stage.world.end("job1")

    with meanwhile(script), capture_logs() as logs:
        described = run(training(print_log=True, check_interval=1))["Training"]
    shown = "\n".join(str(line["event"]) for line in logs)
    assert described["TrainingJobStatus"] == "Completed"
    lines = ("position 1", "step 1", "Preempted, waiting in the queue to resume", "step 2")
    assert [line for line in lines if line not in shown] == [], shown


# -- all else


def test_other_services_are_not_touched(stage: Stage) -> None:
    hook = S3Hook()
    hook.load_string("hello", "a/key", BUCKET)
    assert hook.read_key("a/key", BUCKET) == "hello"
    assert [path for _, path in stage.world.calls if path.startswith("/")] == []


def test_tuning_passes_by_the_queue_with_a_warning(stage: Stage) -> None:
    members = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "StoppingCondition", "ResourceConfig")
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}"}}
    trial = {member: request_for("job1")[member] for member in members}
    config = {
        "HyperParameterTuningJobName": "tuning1",
        "HyperParameterTuningJobConfig": {"Strategy": "Random", "ResourceLimits": {"MaxParallelTrainingJobs": 1}},
        "TrainingJobDefinition": trial | {"InputDataConfig": [{"ChannelName": "training", "DataSource": source}]},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", QueueBypassWarning)
        with pytest.raises(QueueBypassWarning, match="SageMaker starts the training jobs of a tuning job itself"):
            SageMakerTuningOperator(task_id="tune", config=config, wait_for_completion=False).execute({})
    assert stage.world.jobs == {}


# -- connections


@BOTH
def test_the_extra_chooses_the_queue_and_the_options_of_jobs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, deferrable: bool
) -> None:
    queue = {"api_url": queue_of_the_stage(monkeypatch), "share": "research", "priority": 5, "max-instances": 4}
    connect(monkeypatch, extra={"region_name": "us-east-1", "trainmaster": queue})

    def script() -> None:
        asked(stage, 3)
        stage.world.start("job1")
        stage.world.end("job1")

    with meanwhile(script):
        run(training(config=request_for("job1", Tags=[{"Key": "team", "Value": "nlp"}]), deferrable=deferrable))
    assert tags(stage) == {
        "team": "nlp",
        "priority": "5",
        "trainmaster:share": "research",
        "trainmaster:max-instances": "4",
    }


@pytest.mark.parametrize(
    ("queue", "named_by_environment", "queued"),
    [(None, True, True), (None, False, False), (True, True, True), (False, True, False), ({}, True, True)],
)
def test_jobs_of_a_connection_go_to_the_queue_that_it_or_the_environment_names(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, queue: Any, named_by_environment: bool, queued: bool
) -> None:
    if not named_by_environment:
        queue_of_the_stage(monkeypatch)
    extra = {"region_name": "us-east-1"} | ({} if queue is None else {"trainmaster": queue})
    connect(monkeypatch, extra=extra)
    training(wait_for_completion=False).execute({})
    assert (list(stage.world.jobs), list(stage.world.trainings)) == ((["job1"], []) if queued else ([], ["job1"]))


def test_without_a_connection_the_environment_decides(stage: Stage) -> None:
    training(wait_for_completion=False, aws_conn_id=None, region_name="us-east-1").execute({})
    assert list(stage.world.jobs) == ["job1"]


@pytest.mark.parametrize("queue", [None, "https://host/prod", {"share": ["a"]}])
def test_an_extra_that_cannot_be_read_names_its_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, queue: Any
) -> None:
    connect(monkeypatch, extra={"trainmaster": queue})
    with pytest.raises(ValueError, match="Extra of connection aws_default: trainmaster is invalid"):
        training().execute({})


def signers(stage: Stage) -> set[tuple[str, str]]:
    """Access key and Region that signed the calls to the queue."""
    signed = [headers["authorization"] for headers in stage.world.headers if "execute-api" in headers["authorization"]]
    scopes = [each.partition("Credential=")[2].split("/") for each in signed]
    return {(scope[0], scope[2]) for scope in scopes}


@pytest.fixture
def profile(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile "team" with an access key, made after the stage, which hides all profiles."""
    (tmp_path / "credentials").write_text("[team]\naws_access_key_id = AKIDOFTHEPROFILE\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@BOTH
@pytest.mark.parametrize(
    ("connection", "key"),
    [
        ({"login": "AKIDOFTHECONNECTION", "password": "secret"}, "AKIDOFTHECONNECTION"),
        ({"extra": {"profile_name": "team"}}, "AKIDOFTHEPROFILE"),
        ({"extra": {"role_arn": "arn:aws:iam::123456789012:role/airflow"}}, "ASIA"),
    ],
    ids=["keys", "profile", "role"],
)
@pytest.mark.usefixtures("profile")
def test_calls_are_signed_with_the_credentials_and_region_of_the_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], key: str, deferrable: bool
) -> None:
    """A role gives temporary keys, which begin with ASIA."""
    connect(monkeypatch, **connection | {"extra": {"region_name": "eu-west-1", **connection.get("extra", {})}})

    def script() -> None:
        asked(stage, 4)
        stage.world.start("job1")
        stage.world.end("job1")

    with meanwhile(script):
        run(training(deferrable=deferrable))
    found = signers(stage)
    assert {region for _, region in found} == {"eu-west-1"}
    assert all(signer.startswith(key) for signer, _ in found)
