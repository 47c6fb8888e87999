"""The hook, and the endpoint of `trainmaster exec`: what plain boto3 sees of a job that is in the queue.

Real boto3 clients; SageMaker over real HTTP.
"""

import gc
import logging
import weakref
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError, WaiterError
from botocore.stub import Stubber
from client_world import ACCOUNT, REGION, World, a_session, request_for, transport_to

from trainmaster import ApiClient, QueueBypassWarning, route_to_queue
from trainmaster.client.sdk.hook import unroute

TOO_LARGE = {"InstanceType": "ml.m5.large", "InstanceCount": 100, "VolumeSizeInGB": 1}
ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job1"


@pytest.fixture
def make_client(session: boto3.session.Session, sagemaker_url: str) -> Iterator[Callable[[], Any]]:
    made: list[Any] = []

    def make() -> Any:
        made.append(session.client("sagemaker", endpoint_url=sagemaker_url))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def hooked(session: boto3.session.Session, api: ApiClient, make_client: Callable[[], Any]) -> Any:
    route_to_queue(session, api)
    return make_client()


@pytest.fixture(params=["hook", "proxy"])
def sagemaker(request: pytest.FixtureRequest, make_routed: Callable[[str], Any]) -> Any:
    return make_routed(request.param)


def describe(sagemaker: Any, name: str = "job1") -> dict[str, Any]:
    """DescribeTrainingJob, with the answer checked against the service model as botocore's own Stubber does."""
    answer: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
    with Stubber(sagemaker) as stubber:
        stubber.add_response("describe_training_job", {k: v for k, v in answer.items() if k != "ResponseMetadata"})
    return answer


def test_a_created_job_goes_to_the_queue_and_not_to_sagemaker(sagemaker: Any, world: World) -> None:
    answer = sagemaker.create_training_job(**request_for("job1"))

    assert answer["TrainingJobArn"] == ARN
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert world.jobs["job1"]["jobDetails"] == request_for("job1")
    assert world.trainings == {}


def test_the_response_to_a_submission_is_logged(hooked: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="trainmaster"):
        hooked.create_training_job(**request_for("victim1"))
        hooked.create_training_job(**request_for("logged-once"))
        hooked.create_training_job(**request_for("logged-once"))
    assert [(record.levelname, record.getMessage()) for record in caplog.records[-5:]] == [
        ("INFO", "Submitted training job logged-once to the queue"),
        ("INFO", "Training job logged-once preempts victim1"),
        ("WARNING", "Training job logged-once: no CheckpointConfig"),
        ("INFO", "Submitted training job logged-once to the queue"),
        ("INFO", "Training job logged-once preempts victim1"),
    ]


def test_requests_to_the_queue_leave_no_records_of_httpx(sagemaker: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        sagemaker.create_training_job(**request_for("job1"))
        sagemaker.describe_training_job(TrainingJobName="job1")
        logging.getLogger("httpx").info("of the user's own client")
    assert [record.getMessage() for record in caplog.records if record.name == "httpx"] == ["of the user's own client"]


def test_a_waiting_job_is_described_from_its_request(sagemaker: Any) -> None:
    request = request_for("job1", HyperParameters={"lr": "0.1"}, Environment={"A": "b"})
    sagemaker.create_training_job(**request)

    job = describe(sagemaker)

    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("InProgress", "Pending")
    assert isinstance(job["CreationTime"], datetime)
    assert job["TrainingJobArn"] == ARN
    request["OutputDataConfig"] |= {"KmsKeyId": "", "CompressionType": "GZIP"}
    request["AlgorithmSpecification"] |= {"EnableSageMakerMetricsTimeSeries": False}
    assert {key: job[key] for key in request if key != "Tags"} == {k: v for k, v in request.items() if k != "Tags"}
    required = sagemaker.meta.service_model.operation_model("DescribeTrainingJob").output_shape.required_members
    assert set(required) <= set(job)
    (transition,) = job["SecondaryStatusTransitions"]
    assert transition["StatusMessage"] == (
        "Waiting in the queue; position 1; estimated start 2030-01-01 12:00:00 UTC; no free ml.m5.large."
    )


def test_omitted_members_are_described_with_sagemakers_defaults(sagemaker: Any) -> None:
    request = request_for("job1")
    del request["StoppingCondition"]
    sagemaker.create_training_job(**request)

    job = describe(sagemaker)

    assert job["StoppingCondition"] == {"MaxRuntimeInSeconds": 86_400}
    assert job["EnableManagedSpotTraining"] is False


@pytest.mark.parametrize(
    ("state", "status", "message"),
    [
        ("held", "InProgress", "Held in the queue"),
        ("preempted", "InProgress", "resume from its checkpoint"),
        ("cancelled", "Stopped", "Cancelled while waiting"),
        ("failed", "Failed", "ValidationException: no such image"),
    ],
)
def test_a_job_without_an_attempt_is_told_in_sagemakers_words(
    sagemaker: Any, world: World, state: str, status: str, message: str
) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.jobs["job1"] |= {"jobState": state, "failureReason": "ValidationException: no such image"}

    job = describe(sagemaker)

    assert job["TrainingJobStatus"] == status
    assert job["SecondaryStatus"] == ("Pending" if status == "InProgress" else status)
    assert message in job["SecondaryStatusTransitions"][0]["StatusMessage"]
    assert job.get("FailureReason") == ("ValidationException: no such image" if state == "failed" else None)


def test_a_job_whose_start_sagemaker_has_not_heard_of_yet_is_starting(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1", heard_by_sagemaker=False)

    job = describe(sagemaker)

    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("InProgress", "Starting")


def test_a_preempted_job_never_looks_ended_and_keeps_its_name(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1")
    assert describe(sagemaker)["SecondaryStatus"] == "Training"

    world.preempt("job1")
    stopping = describe(sagemaker)
    assert (stopping["TrainingJobStatus"], stopping["SecondaryStatus"]) == ("InProgress", "Interrupted")
    world.settle("job1", queue_noticed=False)
    stopped = describe(sagemaker)
    assert (stopped["TrainingJobStatus"], stopped["SecondaryStatus"]) == ("InProgress", "Interrupted")
    assert "Being preempted" in stopped["SecondaryStatusTransitions"][-1]["StatusMessage"]
    world.settle("job1")
    assert describe(sagemaker)["SecondaryStatus"] == "Pending"

    assert world.start("job1") == "job1-qstamp-2"
    second = describe(sagemaker)
    assert (second["TrainingJobName"], second["SecondaryStatus"]) == ("job1", "Training")
    assert second["TrainingJobArn"].endswith("job1-qstamp-2")
    world.end("job1")
    done = describe(sagemaker)
    assert done["ModelArtifacts"]["S3ModelArtifacts"].endswith("/job1-qstamp-2/output/model.tar.gz")
    transitions = done["SecondaryStatusTransitions"]
    assert [each["EndTime"] for each in transitions[:-1]] == [each["StartTime"] for each in transitions[1:]]
    statuses = [transition["Status"] for transition in transitions]
    assert statuses == ["Training", "Interrupted", "Pending", "Training", "Completed"]


def test_a_preemption_between_the_two_questions_is_noticed(sagemaker: Any, world: World) -> None:
    """The queue said `running`; SageMaker, asked a moment later, says Stopping; only the queue knows for which job."""
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1")
    tell = world.sagemaker_describe_training_job

    def preempted_meanwhile(request: dict[str, Any]) -> dict[str, Any]:
        if world.jobs["job1"]["jobState"] == "running":
            world.preempt("job1")
        return tell(request)

    world.sagemaker_describe_training_job = preempted_meanwhile  # type: ignore[method-assign]

    assert describe(sagemaker)["TrainingJobStatus"] == "InProgress"


def test_a_failed_attempt_ends_the_job_only_when_the_queue_says_so(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1")
    world.tell("job1", "Failed", "Failed", "failed", {"FailureReason": "CapacityError: no capacity"})

    job = describe(sagemaker)
    assert job["TrainingJobStatus"] == "InProgress"
    assert "FailureReason" not in job

    world.end("job1", "Failed", "AlgorithmError: exit 1")
    job = describe(sagemaker)
    assert (job["TrainingJobStatus"], job["FailureReason"]) == ("Failed", "AlgorithmError: exit 1")


def without_end(transition: dict[str, Any]) -> dict[str, Any]:
    return {member: value for member, value in transition.items() if member != "EndTime"}


def test_a_job_that_lost_its_base_is_described_as_the_member_that_took_its_place(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1")
    before = describe(sagemaker)["SecondaryStatusTransitions"]
    world.lose_base("job1", "job1-qstamp-1-m1")
    answer = describe(sagemaker)
    assert (answer["TrainingJobName"], answer["TrainingJobStatus"]) == ("job1", "InProgress")
    shown = [without_end(each) for each in answer["SecondaryStatusTransitions"][: len(before)]]
    assert shown == [without_end(each) for each in before], "what was printed is not printed again"
    assert len(answer["SecondaryStatusTransitions"]) > len(before)
    world.end("job1")
    answer = describe(sagemaker)
    assert (answer["TrainingJobName"], answer["TrainingJobStatus"]) == ("job1", "Completed")


def test_a_job_stopped_by_its_user_is_told_as_it_is(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1")

    sagemaker.stop_training_job(TrainingJobName="job1")
    assert describe(sagemaker)["TrainingJobStatus"] == "Stopping"
    assert world.count("DELETE", "/jobs/job1") == 1
    assert world.count("POST", "StopTrainingJob") == 0

    world.end("job1", "Stopped")
    assert describe(sagemaker)["TrainingJobStatus"] == "Stopped"
    assert_not_stopped(sagemaker, "Stopped")


def test_stopping_a_waiting_job_cancels_it(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    sagemaker.stop_training_job(TrainingJobName="job1")
    assert world.jobs["job1"]["jobState"] == "cancelled"
    job = describe(sagemaker)
    assert (job["TrainingJobStatus"], "EndTime" in job["SecondaryStatusTransitions"][-1]) == ("Stopped", True)
    assert_not_stopped(sagemaker, "Stopped")


def test_a_completed_job_is_not_stopped(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    world.start("job1")
    world.end("job1")
    assert_not_stopped(sagemaker, "Completed")


def assert_not_stopped(sagemaker: Any, status: str) -> None:
    """Programs tell a job that has ended by SageMaker's wording (amazon-sagemaker-jupyter-scheduler)."""
    with pytest.raises(ClientError) as caught:
        sagemaker.stop_training_job(TrainingJobName="job1")
    message = f"The request was rejected because the training job is in status {status}."
    assert caught.value.response["Error"] == {"Code": "ValidationException", "Message": message}


def test_botos_waiter_waits_across_attempts(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
    with pytest.raises(WaiterError, match="Max attempts"):
        waiter.wait(TrainingJobName="job1", WaiterConfig={"Delay": 0, "MaxAttempts": 3})
    world.start("job1")
    world.preempt("job1")
    world.settle("job1", queue_noticed=False)
    with pytest.raises(WaiterError, match="Max attempts"):
        waiter.wait(TrainingJobName="job1", WaiterConfig={"Delay": 0, "MaxAttempts": 3})
    world.settle("job1")
    world.start("job1")
    world.end("job1")
    waiter.wait(TrainingJobName="job1", WaiterConfig={"Delay": 0, "MaxAttempts": 1})


def test_tags_are_the_requests_until_an_attempt_has_its_own(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    assert sagemaker.list_tags(ResourceArn=ARN)["Tags"] == [{"Key": "priority", "Value": "7"}]
    world.start("job1")
    world.preempt("job1")
    world.settle("job1")
    world.start("job1")
    assert {tag["Key"] for tag in sagemaker.list_tags(ResourceArn=ARN)["Tags"]} == {"priority", "trainmaster:job"}


def test_an_update_reaches_the_newest_attempt(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    with pytest.raises(ClientError, match=r"ValidationException.* job1 waits in the queue\. It has no instances"):
        sagemaker.update_training_job(TrainingJobName="job1", RemoteDebugConfig={"EnableRemoteDebug": True})
    world.start("job1")
    world.preempt("job1")
    world.settle("job1")
    world.start("job1")
    updated = sagemaker.update_training_job(TrainingJobName="job1", RemoteDebugConfig={"EnableRemoteDebug": True})
    assert updated["TrainingJobArn"].endswith("job1-qstamp-2")


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        (
            {"TrainingJobName": "job2", "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/admin"},
            "AccessDeniedException",
            "RoleNotAllowed: not this role (field RoleArn) Use a role of the list.",
        ),
        (
            {"TrainingJobName": "job2", "ResourceConfig": TOO_LARGE},
            "ValidationException",
            "NeverFits: the pool has 99 (field ResourceConfig.InstanceCount) Ask for fewer.",
        ),
        ({"Environment": {"A": "b"}}, "ResourceInUse", "NameTaken: job1 was submitted with another request"),
    ],
)
def test_a_refusal_is_the_error_that_boto_users_expect(
    sagemaker: Any, changes: dict[str, Any], code: str, message: str
) -> None:
    sagemaker.create_training_job(**request_for("job1"))
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**request_for("job1", **changes))
    assert caught.value.response["Error"]["Code"] == code
    assert message in caught.value.response["Error"]["Message"]
    if code == "ResourceInUse":
        assert isinstance(caught.value, sagemaker.exceptions.ResourceInUse)


def test_an_unreachable_queue_is_an_error_and_not_a_start(sagemaker: Any, world: World) -> None:
    world.outage = [503] * 3
    with pytest.raises(ClientError) as caught:
        sagemaker.create_training_job(**request_for("job1"))
    assert caught.value.response["Error"]["Code"] == "ServiceUnavailable"
    assert world.trainings == {}


def test_a_waiter_bears_an_outage_of_the_queue_for_a_while(
    session: boto3.session.Session, api: ApiClient, make_client: Callable[[], Any], world: World
) -> None:
    now = [0.0]
    route = route_to_queue(session, api)
    route.cache.clock = lambda: now[0]
    sagemaker = make_client()
    sagemaker.create_training_job(**request_for("job1"))
    assert describe(sagemaker)["SecondaryStatus"] == "Pending"

    world.outage = [503] * 3
    now[0] = 899.0
    assert describe(sagemaker)["SecondaryStatus"] == "Pending"
    world.outage = [503] * 3
    now[0] = 901.0
    with pytest.raises(ClientError, match="ServiceUnavailable"):
        describe(sagemaker)


def test_calls_for_unknown_jobs_pass_through_unchanged(sagemaker: Any, world: World) -> None:
    world.train(request_for("other"))
    assert describe(sagemaker, "other")["TrainingJobName"] == "other"
    assert sagemaker.list_tags(ResourceArn=ARN.replace("job1", "other"))["Tags"][0]["Value"] == "7"
    sagemaker.stop_training_job(TrainingJobName="other")
    assert describe(sagemaker, "other")["TrainingJobStatus"] == "Stopped"
    with pytest.raises(ClientError, match="not found"):
        describe(sagemaker, "missing")


def test_a_job_of_another_kind_is_nothing_that_sagemaker_describes(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("batch-7"))
    world.jobs["batch-7"] |= {"kind": "batch", "details": {"service": "echo"}, "jobDetails": {"service": "echo"}}
    with pytest.raises(ClientError, match="not found"):
        sagemaker.describe_training_job(TrainingJobName="batch-7")


def test_stopping_a_training_job_never_cancels_a_job_of_another_kind_of_that_name(sagemaker: Any, world: World) -> None:
    sagemaker.create_training_job(**request_for("batch-7"))
    world.jobs["batch-7"] |= {"kind": "batch", "details": {"service": "echo"}, "jobDetails": {"service": "echo"}}
    with pytest.raises(ClientError, match="not found"):
        sagemaker.stop_training_job(TrainingJobName="batch-7")
    assert (world.jobs["batch-7"]["jobState"], world.count("DELETE", "/jobs/batch-7")) == ("pending", 0)


def test_a_serverless_customisation_job_takes_nothing_from_a_pool(sagemaker: Any, world: World) -> None:
    request = request_for("tune-llm", ServerlessJobConfig={"BaseModelArn": "arn:aws:m", "JobType": "FineTuning"})
    sagemaker.create_training_job(**{k: v for k, v in request.items() if k != "ResourceConfig"})
    assert set(world.trainings) == {"tune-llm"}
    assert world.jobs == {}


def test_other_operations_do_not_ask_the_queue(hooked: Any, world: World) -> None:
    with pytest.warns(QueueBypassWarning):
        hooked.create_hyper_parameter_tuning_job(
            HyperParameterTuningJobName="tuning",
            HyperParameterTuningJobConfig={"Strategy": "Random", "ResourceLimits": {"MaxParallelTrainingJobs": 1}},
        )
    arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/job1"
    with pytest.raises(ClientError, match="not found"):
        hooked.list_tags(ResourceArn=arn)
    assert world.calls == [("POST", "CreateHyperParameterTuningJob"), ("POST", "ListTags")]


def test_clients_made_before_are_reached_when_named(
    session: boto3.session.Session, api: ApiClient, make_client: Callable[[], Any], world: World
) -> None:
    before, forgotten = make_client(), make_client()
    route_to_queue(session, api, clients=[before])
    before.create_training_job(**request_for("queued"))
    forgotten.create_training_job(**request_for("at-once"))
    assert (set(world.jobs), set(world.trainings)) == ({"queued"}, {"at-once"})


def test_routing_twice_is_routing_once_and_the_last_api_counts(
    session: boto3.session.Session, api: ApiClient, make_client: Callable[[], Any], client_on: Callable[..., ApiClient]
) -> None:
    first = route_to_queue(session, api)
    sagemaker = make_client()
    other = World()
    second = route_to_queue(session, client_on(transport_to(other)), clients=[sagemaker])

    sagemaker.create_training_job(**request_for("job1"))

    assert second is first
    assert other.calls == [("POST", "/add-job")]
    assert route_to_queue(session).api is second.api


def test_unrouting_reaches_clients_already_made_and_can_be_undone(
    session: boto3.session.Session, api: ApiClient, hooked: Any, make_client: Callable[[], Any], world: World
) -> None:
    unroute(session)
    hooked.create_training_job(**request_for("a"))
    make_client().create_training_job(**request_for("b"))
    assert set(world.trainings) == {"a", "b"}

    route_to_queue(session, api)
    hooked.create_training_job(**request_for("c"))
    assert set(world.jobs) == {"c"}
    unroute(a_session())


def test_another_session_is_not_touched(hooked: Any, sagemaker_url: str, world: World) -> None:
    other = a_session().client("sagemaker", endpoint_url=sagemaker_url)
    other.create_training_job(**request_for("job1"))
    other.close()
    assert set(world.trainings) == {"job1"}


def test_a_route_does_not_outlive_its_session(api: ApiClient) -> None:
    session = a_session()
    route = weakref.ref(route_to_queue(session, api))
    assert route() is not None
    del session
    gc.collect()
    assert route() is None


def test_sagemakers_protocol_is_the_one_that_the_hook_reads() -> None:
    for service in ("sagemaker", "logs"):
        model = botocore.session.get_session().get_service_model(service)
        assert model.resolved_protocol == "json"
