"""Service jobs of AWS Batch on the queue: real botocore clients, and the queue as a scripted API."""

import gc
import json
import weakref
from typing import Any

import boto3
import pytest
from batch_client import QUEUE, Batch, a_payload, a_service_job
from botocore.exceptions import ClientError, ParamValidationError
from client_world import ACCOUNT, REGION, ROLE, a_session

from fake_api import ANN, FakeApi, a_view, an_attempt
from trainmaster import ApiClient, QueueBypassWarning
from trainmaster.client.batch.hook import route_batch, route_of, unroute_batch

ARN = f"arn:aws:batch:{REGION}:{ACCOUNT}:service-job/tm."
OTHER = "4f2d7f5e-9d2b-4c35-8f0e-2a7e5a3a8a11"
ALL = ("SUBMITTED", "PENDING", "RUNNABLE", "SCHEDULED", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")


def the_request(fake: FakeApi, name: str = "job1") -> dict[str, Any]:
    request: dict[str, Any] = fake.jobs[name]["jobDetails"]
    return request


def tags_of(fake: FakeApi, name: str = "job1") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in the_request(fake, name)["Tags"]}


def retries_of(fake: FakeApi, name: str) -> dict[str, str]:
    return {key.partition("retry-")[2]: value for key, value in tags_of(fake, name).items() if "retry-" in key}


def names_of(answer: dict[str, Any]) -> list[str]:
    return [job["jobName"] for job in answer["jobSummaryList"]]


def test_a_submitted_job_goes_to_the_queue_under_its_name(batch: Batch, fake: FakeApi) -> None:
    answer = batch.submit("job1", schedulingPriority=5, tags={"team": "vision"})

    assert (answer["jobId"], answer["jobArn"], answer["jobName"]) == ("tm.job1", f"{ARN}job1", "job1")
    assert fake.jobs["job1"]["priority"] == 5
    assert {"team": "vision", "priority": "5"}.items() <= tags_of(fake).items()
    request = {key: value for key, value in the_request(fake).items() if key != "Tags"}
    assert request == a_payload(TrainingJobName="job1")
    assert batch.real == []


def test_equal_requests_are_as_many_jobs_as_calls(batch: Batch, fake: FakeApi) -> None:
    answers = [batch.submit("job1") for _ in range(20)]
    assert len(fake.jobs) == len({answer["jobArn"] for answer in answers}) == 20
    assert {answer["jobName"] for answer in answers} == {"job1"}
    assert len(names_of(batch("list_service_jobs", jobQueue=QUEUE, jobStatus="RUNNABLE"))) == 20


def test_the_same_client_token_is_the_same_job(batch: Batch, fake: FakeApi) -> None:
    batch.submit("job1", token="first")
    second = batch.submit("job1", token="second")
    assert batch.submit("job1", token="first")["jobId"] == "tm.job1"
    assert batch.submit("job1", token="second")["jobId"] == second["jobId"]
    assert len(fake.jobs) == 2


@pytest.mark.parametrize("name", ["Nice_Name", "x" * 128, "-", "a-qstamp-2", "job-b0123456789", "y" * 63, "z" * 64])
def test_names_that_sagemaker_does_not_take_are_kept_beside_the_queues(batch: Batch, fake: FakeApi, name: str) -> None:
    ids = [batch.submit(name)["jobId"], batch.submit(name)["jobId"]]
    assert len(fake.jobs) == 2
    assert all(len(each) <= 63 and "_" not in each for each in fake.jobs)
    assert [batch("describe_service_job", jobId=each)["jobName"] for each in ids] == [name, name]
    assert names_of(batch("list_service_jobs", jobQueue=QUEUE, jobStatus="RUNNABLE")) == [name, name]
    found = batch("list_service_jobs", jobQueue=QUEUE, filters=[{"name": "JOB_NAME", "values": [name.upper()]}])
    assert names_of(found) == [name, name]


@pytest.mark.parametrize("member", ["shareIdentifier", "quotaShareName"])
def test_a_share_of_batch_is_a_share_of_the_queue(batch: Batch, fake: FakeApi, member: str) -> None:
    batch.submit("job1", **{member: "vision"})
    batch.submit("job2")
    assert fake.jobs["job1"]["share"] == "vision"
    assert batch("describe_service_job", jobId="tm.job1")[member] == "vision"
    assert batch("describe_service_job", jobId="tm.job2")[member] == "default"
    filters = [{"name": {"shareIdentifier": "SHARE_IDENTIFIER"}.get(member, "QUOTA_SHARE_NAME"), "values": ["vision"]}]
    assert names_of(batch("list_service_jobs", jobQueue=QUEUE, jobStatus="RUNNABLE", filters=filters)) == ["job1"]
    assert names_of(batch("list_service_jobs", jobQueue=QUEUE, filters=filters)) == []


@pytest.mark.parametrize(
    ("limit", "timeout", "result"),
    [(3600, 60, 60), (60, 3600, 60), (432_000, 86_400, 432_000), (None, 86_400, 86_400), (None, None, None)],
)
def test_the_smaller_limit_of_the_run_time_counts(
    batch: Batch, fake: FakeApi, limit: int | None, timeout: int | None, result: int | None
) -> None:
    payload = a_payload(StoppingCondition={"MaxRuntimeInSeconds": limit} if limit else {})
    given = {} if timeout is None else {"timeoutConfig": {"attemptDurationSeconds": timeout}}
    batch.submit("job1", payload=payload, **given)
    assert the_request(fake).get("StoppingCondition", {}).get("MaxRuntimeInSeconds") == result


SDK_RULES = [
    {"action": "RETRY", "onStatusReason": "Received status from SageMaker:InternalServerError: We encountered"},
    {"action": "EXIT", "onStatusReason": "*"},
]
NO_RETRY = {"action": "exit", "onStatusReason": "*AlgorithmError*"}
NONE_OF_SAGEMAKER = {"action": "EXIT", "onStatusReason": "Received status from SageMaker*"}


@pytest.mark.parametrize(
    ("strategy", "retries"),
    [
        ({"attempts": 1, "evaluateOnExit": SDK_RULES}, {}),
        ({"attempts": 3, "evaluateOnExit": SDK_RULES}, {"service": "2"}),
        ({"attempts": 3}, {"service": "2", "capacity": "2", "algorithm": "2"}),
        ({"attempts": 2, "evaluateOnExit": [NO_RETRY]}, {"service": "1", "capacity": "1"}),
        ({"attempts": 2, "evaluateOnExit": [NONE_OF_SAGEMAKER]}, {}),
        ({"attempts": 2, "evaluateOnExit": [SDK_RULES[0], NONE_OF_SAGEMAKER]}, {"service": "1"}),
    ],
)
def test_retries_are_those_of_the_failures_that_the_rules_name(
    batch: Batch, fake: FakeApi, strategy: dict[str, Any], retries: dict[str, str]
) -> None:
    batch.submit("job1", retryStrategy=strategy)
    assert retries_of(fake, "job1") == retries
    described = batch("describe_service_job", jobId="tm.job1")
    assert described["retryStrategy"]["attempts"] == max([1, *(int(value) + 1 for value in retries.values())])
    batch.submit("again", **{member: described[member] for member in ("retryStrategy", "tags")})
    assert retries_of(fake, "again") == retries


def test_what_the_queue_does_otherwise_is_a_warning(
    hooked: Batch, fake: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    rule = {"action": "RETRY", "onStatusReason": "Spot*"}
    hooked.submit(
        "warned",
        retryStrategy={"attempts": 2, "evaluateOnExit": [rule]},
        preemptionConfiguration={"preemptionRetriesBeforeTermination": 2},
    )
    hooked.submit("never", preemptionConfiguration={"preemptionRetriesBeforeTermination": 0})
    told = caplog.text
    assert "'spot*'; this rule of evaluateOnExit has no effect" in told
    assert "After 2 preemptions, Batch ends a job; the queue does not preempt it any more." in told
    assert tags_of(fake, "warned")["trainmaster:max-preemptions"] == "2"
    assert tags_of(fake, "never")["trainmaster:preemptible"] == "false"
    for name, limit in (("warned", 2), ("never", 0)):
        described = hooked("describe_service_job", jobId=f"tm.{name}")
        assert described["preemptionConfiguration"] == {"preemptionRetriesBeforeTermination": limit}


def test_a_job_is_described_with_its_request_and_without_tags_of_the_route(batch: Batch) -> None:
    payload = a_payload(Tags=[{"Key": "team", "Value": "of the payload"}])
    batch.submit("job1", payload=payload, tags={"team": "of the call", "priority": "3"})
    described = batch("describe_service_job", jobId=f"{ARN}job1")
    assert described["tags"] == {"team": "of the payload", "priority": "3"}
    assert json.loads(described["serviceRequestPayload"]) == a_payload(TrainingJobName="job1")
    assert described["jobQueue"] == f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/{QUEUE}"
    assert (described["schedulingPriority"], described["timeoutConfig"]) == (3, {"attemptDurationSeconds": 3600})
    assert described["capacityUsage"] == [{"capacityUnit": "ml.p5.48xlarge", "quantity": 1.0}]
    assert described["createdAt"] == 1_795_176_000_000
    assert batch("list_tags_for_resource", resourceArn=f"{ARN}job1")["tags"] == described["tags"]


def test_a_payload_larger_than_batchs_ten_kibibytes_is_taken(batch: Batch, fake: FakeApi) -> None:
    batch.submit("job1", payload=a_payload(HyperParameters={"config": "x" * 100_000}))
    assert len(the_request(fake)["HyperParameters"]["config"]) == 100_000


def test_a_job_has_the_arn_of_its_newest_attempt_and_its_preemptions(batch: Batch, fake: FakeApi) -> None:
    batch.submit("job1")
    fake.start("job1")
    fake.preempt("job1")
    waiting = batch("describe_service_job", jobId="tm.job1")
    assert waiting["status"] == "RUNNABLE"
    assert [attempt["statusReason"] for attempt in waiting["attempts"]] == ["preempted for job4"]
    fake.start("job1")
    running = batch("describe_service_job", jobId="tm.job1")
    assert running["status"] == "RUNNING"
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job1-qstamp-2"
    assert running["latestAttempt"]["serviceResourceId"] == {"name": "TrainingJobArn", "value": arn}
    assert running["preemptionSummary"]["preemptedAttemptCount"] == 1
    assert running["capacityUsage"] == [{"capacityUnit": "ml.p5.48xlarge", "quantity": 1.0}]


def test_the_name_at_sagemaker_may_be_another_than_the_attempts(batch: Batch, fake: FakeApi) -> None:
    batch.submit("job1")
    fake.start("job1")
    fake.jobs["job1"]["trainingJobName"] = "job1-qstamp-1-m2"
    (job,) = batch("list_service_jobs", jobQueue=QUEUE)["jobSummaryList"]
    assert job["latestAttempt"]["serviceResourceId"]["value"].endswith(":training-job/job1-qstamp-1-m2")


def test_a_waiting_job_that_is_terminated_has_failed_at_once_with_the_reason(batch: Batch) -> None:
    batch.submit("job1")
    batch("describe_service_job", jobId="tm.job1")
    assert set(batch("terminate_service_job", jobId="tm.job1", reason="wrong data")) == {"ResponseMetadata"}
    described = batch("describe_service_job", jobId="tm.job1")
    assert (described["status"], described["statusReason"]) == ("FAILED", "wrong data")
    assert described["isTerminated"]
    assert "latestAttempt" not in described
    batch("terminate_service_job", jobId="tm.job1", reason="again")


def test_a_running_job_is_stopped_and_a_failed_one_says_why(batch: Batch, fake: FakeApi) -> None:
    for name in ("job1", "job2"):
        batch.submit(name)
        fake.start(name)
    batch("terminate_service_job", jobId="tm.job1", reason="enough")
    fake.end("job1", "stopped")
    fake.end("job2", "failed", "AlgorithmError: exit 1")
    stopped, failed = (batch("describe_service_job", jobId=f"tm.{name}") for name in ("job1", "job2"))
    assert (stopped["statusReason"], stopped["isTerminated"]) == ("enough", True)
    assert (failed["statusReason"], failed["isTerminated"]) == ("AlgorithmError: exit 1", False)
    assert failed["stoppedAt"] > failed["startedAt"]


def test_many_jobs_are_terminated_in_one_call_and_batchs_own_by_batch(batch: Batch, fake: FakeApi) -> None:
    for name in ("job1", "job2"):
        batch.submit(name)
    fake.others.add("job2")
    batch.answers = [(200, {"successful": [OTHER], "errors": []})]
    answer = batch("terminate_service_jobs", jobs=["tm.job1", "tm.job2", "tm.gone", OTHER], reason="enough")
    assert answer["successful"] == ["tm.job1", "tm.gone", OTHER]
    assert [(error["job"], error["code"]) for error in answer["errors"]] == [("tm.job2", "ClientException")]
    assert batch.real == [("terminateservicejobs", {"jobs": [OTHER], "reason": "enough"})]
    assert batch("terminate_service_jobs", jobs=["tm.job1"], reason="again")["successful"] == ["tm.job1"]
    assert len(batch.real) == 1


def test_a_priority_changes(batch: Batch, fake: FakeApi) -> None:
    batch.submit("my_job", schedulingPriority=1)
    (name,) = fake.jobs
    before = batch("describe_service_job", jobId=f"tm.{name}")
    answer = batch("update_service_job", jobId=before["jobArn"], schedulingPriority=4)
    assert (answer["jobId"], answer["jobName"]) == (f"tm.{name}", "my_job")
    described = batch("describe_service_job", jobId=f"tm.{name}")
    assert (described["schedulingPriority"], described["tags"]["priority"]) == (4, "4")


# -- lists


def test_jobs_are_listed_by_status_and_running_ones_by_default(batch: Batch, fake: FakeApi) -> None:
    fake.add("waits")
    fake.add("parents", "held", reason={"type": "WaitsForJobs", "message": "waits for job1", "jobs": ["job1"]})
    fake.add("paused", "held", reason={"type": "Held", "message": "held by ann", "by": "ann"})
    fake.add("unknown", "starting", attempts=[an_attempt("unknown", launched=False, startedAt=None)])
    fake.add("scheduled", "starting", attempts=[an_attempt("scheduled", startedAt=None)])
    fake.add("begins", "starting", attempts=[an_attempt("begins")])
    for state in ("running", "resizing", "preempting", "completed", "failed", "stopped"):
        fake.add(state, state, attempts=[an_attempt(state)], trainingJobName=state)
    fake.add("cancelled", "cancelled")
    fake.add("another", "running", kind="other")
    found = {status: set(names_of(batch("list_service_jobs", jobQueue=QUEUE, jobStatus=status))) for status in ALL}
    assert found == {
        "SUBMITTED": set(),
        "PENDING": {"parents"},
        "RUNNABLE": {"waits", "paused", "unknown"},
        "SCHEDULED": {"scheduled"},
        "STARTING": {"begins"},
        "RUNNING": {"running", "resizing", "preempting"},
        "SUCCEEDED": {"completed"},
        "FAILED": {"failed", "stopped", "cancelled"},
    }
    assert set(names_of(batch("list_service_jobs", jobQueue=QUEUE))) == found["RUNNING"]
    for status, names in found.items():
        assert all(batch("describe_service_job", jobId=f"tm.{name}")["status"] == status for name in names)


def test_a_list_has_pages_with_the_newest_first(batch: Batch, fake: FakeApi) -> None:
    for number in range(7):
        fake.add(f"job{number}", entryTime=f"2026-11-20T12:0{number}:00Z")
    first = batch("list_service_jobs", jobQueue=QUEUE, jobStatus="RUNNABLE", maxResults=3)
    assert names_of(first) == ["job6", "job5", "job4"]
    pages = batch.client.get_paginator("list_service_jobs").paginate(
        jobQueue=QUEUE, jobStatus="RUNNABLE", PaginationConfig={"PageSize": 3}
    )
    assert [names_of(page) for page in pages] == [["job6", "job5", "job4"], ["job3", "job2", "job1"], ["job0"]]


def test_names_are_found_in_any_status_without_case_and_by_a_prefix(batch: Batch, fake: FakeApi) -> None:
    fake.add("Train-1", "completed", attempts=[an_attempt("Train-1")])
    fake.add("train-2")
    fake.add("other", "running", attempts=[an_attempt("other")])

    def found(value: str, kind: str = "JOB_NAME") -> set[str]:
        filters = [{"name": kind, "values": [value]}]
        return set(names_of(batch("list_service_jobs", jobQueue=QUEUE, filters=filters)))

    assert found("TRAIN-1") == {"Train-1"}
    assert found("Train-*") == {"Train-1", "train-2"}
    assert found("*") == {"Train-1", "train-2", "other"}
    assert found("train") == set()
    assert found("1795176000000", "AFTER_CREATED_AT") == set()
    assert found("1795176000001", "BEFORE_CREATED_AT") == {"Train-1", "train-2", "other"}


@pytest.mark.parametrize(
    "request_",
    [
        {"filters": [{"name": "OWNER", "values": ["ann"]}]},
        {"filters": [{"name": "AFTER_CREATED_AT", "values": ["yesterday"]}]},
        {"filters": [{"name": "JOB_NAME", "values": ["a"]}, {"name": "SHARE_IDENTIFIER", "values": ["b"]}]},
        {"filters": [{"values": ["a"]}]},
        {"jobStatus": "WAITING"},
        {"nextToken": "tm.broken"},
        {"nextToken": "of-batch"},
    ],
)
def test_a_list_refuses_what_batch_refuses(batch: Batch, request_: dict[str, Any]) -> None:
    with pytest.raises(batch.client.exceptions.ClientException):
        batch("list_service_jobs", jobQueue=QUEUE, **request_)


def test_a_queue_may_stand_for_a_share(session: boto3.session.Session, fake_client: ApiClient, fake: FakeApi) -> None:
    route_batch(session, fake_client, queues={"vision-queue": "vision", "queue": None})
    batch = Batch.of(session)
    arn = f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/vision-queue"
    batch("submit_service_job", **a_service_job("job1", jobQueue=arn))
    batch("submit_service_job", **a_service_job("job2", jobQueue="queue"))
    assert [job["share"] for job in fake.jobs.values()] == ["vision", "default"]
    assert names_of(batch("list_service_jobs", jobQueue=arn, jobStatus="RUNNABLE")) == ["job1"]
    assert set(names_of(batch("list_service_jobs", jobQueue="queue", jobStatus="RUNNABLE"))) == {"job1", "job2"}
    assert batch("describe_service_job", jobId="tm.job1")["jobQueue"] == arn


# -- polling


def test_polling_many_jobs_takes_a_page_and_not_a_request_each(hooked: Batch, fake: FakeApi) -> None:
    fake.page_length = 100
    for number in range(200):
        hooked.submit(f"job{number}")
    before = len(fake.calls)
    for _ in range(3):
        statuses = {hooked("describe_service_job", jobId=f"tm.job{number}")["status"] for number in range(200)}
    assert statuses == {"RUNNABLE"}
    assert len(fake.calls) - before <= 30


def test_few_jobs_are_answered_as_of_now(batch: Batch, fake: FakeApi) -> None:
    batch.submit("job1")
    assert batch("describe_service_job", jobId="tm.job1")["status"] == "RUNNABLE"
    fake.start("job1")
    assert batch("describe_service_job", jobId="tm.job1")["status"] == "RUNNING"
    fake.end("job1")
    assert batch("describe_service_job", jobId="tm.job1")["status"] == "SUCCEEDED"


def test_a_job_is_described_from_memory_during_an_outage(batch: Batch, fake: FakeApi) -> None:
    batch.submit("job1")
    fake.outage = [503] * 3
    assert batch("describe_service_job", jobId="tm.job1")["status"] == "RUNNABLE"
    fake.outage = [503] * 3
    with pytest.raises(batch.client.exceptions.ServerException) as raised:
        batch("describe_service_job", jobId="tm.job2")
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500


# -- errors, and what passes through


def test_errors_are_those_of_batch_with_their_members(batch: Batch) -> None:
    payload = a_payload(ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 9, "VolumeSizeInGB": 1})
    with pytest.raises(batch.client.exceptions.ClientException) as raised:
        batch.submit("job1", payload=payload)
    message = "NeverFits: The pool's cap is 2. (field ResourceConfig.InstanceCount) Ask for fewer instances."
    assert raised.value.response["Error"] == {"Code": "ClientException", "Message": message}
    assert raised.value.response["message"] == message  # type: ignore[typeddict-item]
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_role_that_may_not_be_used_is_denied(batch: Batch) -> None:
    with pytest.raises(ClientError) as raised:
        batch.submit("job1", payload=a_payload(RoleArn=ROLE + "2"))
    assert raised.value.response["Error"]["Code"] == "AccessDeniedException"


@pytest.mark.parametrize("payload", ["{", "[]", "{}"])
def test_a_payload_that_is_no_training_job_is_refused(batch: Batch, payload: str) -> None:
    with pytest.raises(batch.client.exceptions.ClientException, match="serviceRequestPayload"):
        batch("submit_service_job", **a_service_job() | {"serviceRequestPayload": payload})


@pytest.mark.parametrize("tags", [[{"key": "team", "value": "vision"}], {"team": "vision"}, ["team"], 7])
def test_tags_of_a_payload_that_are_none_are_refused(batch: Batch, tags: Any) -> None:
    with pytest.raises(batch.client.exceptions.ClientException, match="Tags of serviceRequestPayload is invalid"):
        batch.submit("job1", payload=a_payload(Tags=tags))


def test_null_members_of_a_payload_are_absent(batch: Batch, fake: FakeApi) -> None:
    payload = a_payload()
    config = {**payload["ResourceConfig"], "VolumeKmsKeyId": None}
    batch.submit("job1", payload=payload | {"ResourceConfig": config, "VpcConfig": None, "Tags": None})
    request = {key: value for key, value in the_request(fake).items() if key != "Tags"}
    assert request == a_payload(TrainingJobName="job1")


@pytest.mark.parametrize("condition", ["60", {"MaxRuntimeInSeconds": "60"}, [60]])
def test_an_invalid_limit_of_the_run_time_stays_for_the_api_to_name_it(
    batch: Batch, fake: FakeApi, condition: Any
) -> None:
    batch.submit("job1", payload=a_payload(StoppingCondition=condition), timeoutConfig={"attemptDurationSeconds": 9})
    assert the_request(fake)["StoppingCondition"] == condition


def test_other_types_of_service_jobs_are_refused(batch: Batch) -> None:
    with pytest.raises(batch.client.exceptions.ClientException, match="'SAGEMAKER_PROCESSING'"):
        batch.submit("job1", serviceJobType="SAGEMAKER_PROCESSING")


def test_an_unknown_job_of_the_queue_is_an_error(batch: Batch) -> None:
    for operation, more in (
        ("describe_service_job", {}),
        ("terminate_service_job", {"reason": "r"}),
        ("update_service_job", {"schedulingPriority": 1}),
    ):
        with pytest.raises(batch.client.exceptions.ClientException, match="There is no job gone"):
            batch(operation, jobId="tm.gone", **more)


def test_botocore_validates_requests_as_ever(batch: Batch) -> None:
    with pytest.raises(ParamValidationError):
        batch.submit("job1", priority=3)


def test_other_queues_and_ids_are_batchs(batch: Batch, fake: FakeApi) -> None:
    ids = {"jobName": "job1", "jobId": OTHER}
    batch.answers = [(200, ids), (200, {"jobSummaryList": []}), (400, {"message": "no such job"})]
    assert batch("submit_service_job", **a_service_job(jobQueue="of-batch"))["jobId"] == OTHER
    batch("list_service_jobs", jobQueue="of-batch")
    with pytest.raises(ClientError):
        batch("describe_service_job", jobId=f"arn:aws:batch:{REGION}:{ACCOUNT}:service-job/{OTHER}")
    batch("terminate_service_job", jobId=OTHER, reason="r")
    batch("update_service_job", jobId="unknown-to-the-queue", schedulingPriority=1)
    assert [path for path, _ in batch.real] == [
        *("submitservicejob", "listservicejobs", "describeservicejob", "terminateservicejob", "updateservicejob")
    ]
    assert [call[1] for call in fake.calls] == ["/jobs/unknown-to-the-queue"]


def test_jobs_of_other_regions_are_batchs_with_a_warning(
    session: boto3.session.Session, hooked: Batch, fake: FakeApi
) -> None:
    elsewhere = Batch(session.client("batch", region_name="eu-west-1"))
    elsewhere.client.meta.events.register("before-send.batch", elsewhere.send)
    elsewhere.answers = [(200, {"jobName": "job1", "jobId": OTHER}), (200, {"jobSummaryList": []})]
    with pytest.warns(QueueBypassWarning, match=f"Jobs in eu-west-1 bypass the queue, which is in {REGION}"):
        assert elsewhere.submit("job1")["jobId"] == OTHER
    elsewhere("list_service_jobs", jobQueue=QUEUE)
    assert (len(elsewhere.real), hooked.real, fake.calls) == (2, [], [])


def test_a_call_that_is_batchs_needs_no_queue(session: boto3.session.Session) -> None:
    """The stack that has the queue's address need not exist for it."""
    route_batch(session, queues=[QUEUE])
    batch = Batch.of(session)
    batch("terminate_service_job", jobId=OTHER, reason="r")
    assert [path for path, _ in batch.real] == ["terminateservicejob"]


def test_a_job_is_found_by_its_bare_name(batch: Batch) -> None:
    batch.submit("job1")
    assert batch("describe_service_job", jobId="job1")["jobId"] == "tm.job1"


# -- routes


def test_routing_again_serves_clients_already_made(
    session: boto3.session.Session, fake_client: ApiClient, fake: FakeApi
) -> None:
    route_batch(session, fake_client, queues=[QUEUE])
    batch = Batch.of(session)
    assert route_batch(session, queues=["second"]) is route_of(session)
    batch("submit_service_job", **a_service_job(jobQueue="second"))
    batch.answers = [(200, {"jobName": "job1", "jobId": OTHER})]
    batch.submit("job1")
    assert (len(fake.jobs), len(batch.real)) == (1, 1)


def test_an_unrouted_session_talks_to_batch(hooked: Batch, session: boto3.session.Session, fake: FakeApi) -> None:
    unroute_batch(session)
    assert route_of(session) is None
    hooked.answers = [(200, {"jobName": "job1", "jobId": OTHER})]
    hooked.submit("job1")
    assert (fake.jobs, len(hooked.real)) == ({}, 1)


def test_a_client_that_was_made_before_can_be_routed(session: boto3.session.Session, fake_client: ApiClient) -> None:
    batch = Batch.of(session)
    route_batch(session, fake_client, queues=[QUEUE], clients=[batch.client])
    assert batch.submit("job1")["jobId"] == "tm.job1"


def test_without_a_session_the_default_one_is_routed(
    fake_client: ApiClient, fake: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    boto3.setup_default_session()
    route = route_batch(api=fake_client)
    client = boto3.client("batch")
    client.submit_service_job(**a_service_job(jobQueue="sagemaker-queue"))
    assert list(fake.jobs) == ["job1"]
    assert route_of() is route
    unroute_batch()


def test_a_route_needs_a_queue(session: boto3.session.Session) -> None:
    with pytest.raises(ValueError, match="needs the name of a job queue"):
        route_batch(session, queues=[])


def test_a_session_is_not_kept_alive_by_its_route() -> None:
    session = a_session()
    route_batch(session, "https://a1b2c3.execute-api.us-east-1.amazonaws.com/prod")
    reference = weakref.ref(session)
    del session
    gc.collect()
    assert reference() is None


def test_a_job_of_the_queue_that_did_not_come_from_batch_is_described_as_well(batch: Batch, fake: FakeApi) -> None:
    fake.jobs["job1"] = a_view("job1", "cancelled")
    fake.jobs["job1"]["history"][-1] |= {"reason": f"cancelled by {ANN}"}
    described = batch("describe_service_job", jobId="tm.job1")
    assert (described["jobName"], described["statusReason"]) == ("job1", f"cancelled by {ANN}")
