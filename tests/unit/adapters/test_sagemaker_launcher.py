"""Every verb of the SageMaker launcher against scripted answers: what is asked, and what each answer means."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import StubResponseError
from botocore.stub import Stubber

from aws_clients import impatient_client
from builders import G5, NOW, P5, a_job, a_request, an_attempt, at
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.adapters.sagemaker.request import attempt_request
from trainmaster.domain.errors import (
    AccountLimitReached,
    CapacityExhausted,
    InvalidRequest,
    NotPermitted,
    RequestRefused,
    Throttled,
    Unavailable,
)
from trainmaster.domain.jobs.observation import Status
from trainmaster.ports.sagemaker import CreateResult, OpenJobsPage, StopResult, Unconfirmed

QUEUE = "research"
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/job1"
NAMED = {"TrainingJobName": "job1"}
OURS = {
    "trainmaster:queue": QUEUE,
    "trainmaster:job": "job1",
    "trainmaster:attempt": "1",
    "trainmaster:start": an_attempt().start_id,
}
NOT_THERE = ("ValidationException", "Requested resource not found.")
FULL = (
    "The account-level service limit 'ml.p5.48xlarge for training job usage' is 2 Instances, with current "
    "utilization of 2 Instances and a request delta of 1 Instances. Please contact AWS support."
)
PASSING = [
    ("ThrottlingException", "Rate exceeded", 400, Throttled),
    ("TooManyRequestsException", "", 429, Throttled),
    ("ValidationException", "Rate exceeded", 400, Throttled),
    ("Unheard", "slow down", 429, Throttled),
    ("AccessDeniedException", "no identity-based policy allows it", 400, NotPermitted),
    ("UnrecognizedClientException", "The security token is invalid.", 400, NotPermitted),
    ("Unheard", "no", 403, NotPermitted),
    ("InternalFailure", "We encountered an internal error.", 500, Unavailable),
    ("ServiceUnavailable", "", 503, Unavailable),
    ("Unheard", "", 502, Unavailable),
    ("ConflictException", "", 409, Unavailable),
    ("ExpiredTokenException", "The security token is expired.", 400, Unavailable),
]


class Strict:
    """A client whose departures from the script are no errors of botocore, which the launcher would translate."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        verb = getattr(self._client, name)

        def call(**members):
            try:
                return verb(**members)
            except StubResponseError as error:
                raise AssertionError(str(error)) from error

        return call


class Bench:
    """A launcher over a client that answers from a script."""

    def __init__(self):
        client = impatient_client("sagemaker")
        self.set_profile = Stubber(client)
        self.launcher = SageMakerLauncher(Strict(client), QUEUE)

    def says(self, operation, answer, asked):
        self.set_profile.add_response(operation, answer, asked)

    def refuses(self, operation, code, message="", status=400):
        self.set_profile.add_client_error(operation, code, message, status)

    def describes(self, status="InProgress", created=NOW, **members):
        answer = {
            **NAMED,
            "TrainingJobArn": ARN,
            "ModelArtifacts": {"S3ModelArtifacts": ""},
            "TrainingJobStatus": status,
            "SecondaryStatus": "Training",
            "StoppingCondition": {},
            "CreationTime": created,
            **members,
        }
        self.says("describe_training_job", answer, NAMED)

    def has_tags(self, tags, asked=None, token=None):
        answer = {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        if token:
            answer["NextToken"] = token
        self.says("list_tags", answer, {"ResourceArn": ARN, **(asked or {})})

    def create(self, *, retry=False, **fields):
        return self.launcher.create(a_job("job1", **fields), an_attempt(), a_request("job1"), retry=retry)


@pytest.fixture
def bench():
    bench = Bench()
    with bench.set_profile:
        yield bench
        bench.set_profile.assert_no_pending_responses()


# ------------------------------------------------------------------ create


def test_create_sends_the_attempts_request(bench):
    made = attempt_request(a_job("job1"), an_attempt(), a_request("job1"), QUEUE)
    bench.says("create_training_job", {"TrainingJobArn": ARN}, made)
    assert bench.create() is CreateResult.NEW


def test_a_training_job_with_our_tags_is_already_there(bench):
    bench.refuses("create_training_job", "ResourceInUse", "names must be unique")
    bench.describes()
    bench.has_tags({**OURS, "team": "a"})
    assert bench.create() is CreateResult.ALREADY_THERE


def test_tags_are_read_to_their_last_page(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.has_tags({"team": "a"}, token="more")
    bench.has_tags(OURS, asked={"NextToken": "more"})
    assert bench.create() is CreateResult.ALREADY_THERE


def test_tags_without_end_are_no_answer(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    for page in range(10):
        bench.has_tags({}, asked={"NextToken": "more"} if page else None, token="more")
    with pytest.raises(Unavailable):
        bench.create()


@pytest.mark.parametrize(
    "tags",
    [
        {**OURS, "trainmaster:queue": "another"},
        {**OURS, "trainmaster:job": "another"},
        {**OURS, "trainmaster:attempt": "2"},
    ],
)
def test_a_training_job_with_other_tags_has_taken_the_name(bench, tags):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.has_tags(tags)
    assert bench.create() is CreateResult.NAME_TAKEN


def test_a_training_job_of_an_earlier_start_with_the_same_number_is_not_adopted(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.has_tags({**OURS, "trainmaster:start": "earlier"})
    assert bench.create() is CreateResult.EARLIER_START


@pytest.mark.parametrize("tags", [{}, {"team": "a"}])
def test_a_training_job_without_visible_tags_is_not_taken_for_a_strangers(bench, tags):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.has_tags(tags)
    with pytest.raises(Unconfirmed):
        bench.create()


def test_tags_of_a_training_job_that_list_tags_does_not_find_are_not_visible(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.refuses("list_tags", *NOT_THERE)
    with pytest.raises(Unconfirmed):
        bench.create()


def test_a_training_job_older_than_the_attempt_is_not_the_attempts(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes(created=NOW - timedelta(minutes=6))
    bench.has_tags({})
    assert bench.create() is CreateResult.NAME_TAKEN


def test_a_training_job_that_is_gone_again_is_no_answer(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.refuses("describe_training_job", *NOT_THERE)
    with pytest.raises(Unavailable):
        bench.create()


@pytest.mark.parametrize(("code", "message", "status", "kind"), PASSING)
def test_whose_it_is_is_never_guessed(bench, code, message, status, kind):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.refuses("list_tags", code, message, status)
    with pytest.raises(kind):
        bench.create()


def test_a_refusal_to_list_tags_is_not_a_refusal_of_the_request(bench):
    bench.refuses("create_training_job", "ResourceInUse")
    bench.describes()
    bench.refuses("list_tags", "ValidationException", "odd")
    with pytest.raises(Unavailable):
        bench.create()


def test_the_accounts_limit_is_told_with_its_figures(bench):
    bench.refuses("create_training_job", "ResourceLimitExceeded", FULL)
    with pytest.raises(CapacityExhausted) as caught:
        bench.create()
    assert str(caught.value) == f"ResourceLimitExceeded: {FULL}"
    assert isinstance(caught.value, AccountLimitReached)
    assert caught.value.quota == "ml.p5.48xlarge for training job usage"
    assert (caught.value.limit, caught.value.in_use, caught.value.asked) == (2, 2, 1)
    assert caught.value.__cause__.response["Error"]["Code"] == "ResourceLimitExceeded"


def test_a_limit_without_figures_is_told_too(bench):
    bench.refuses("create_training_job", "ResourceLimitExceeded", "full")
    with pytest.raises(AccountLimitReached) as caught:
        bench.create()
    assert (caught.value.quota, caught.value.limit) == (None, None)


REFUSALS = [
    ("ResourceLimitExceeded", FULL),
    ("ValidationException", "1 validation error detected"),
    ("AccessDeniedException", "no identity-based policy allows it"),
]


@pytest.mark.parametrize(("code", "message"), REFUSALS)
def test_a_refused_retry_finds_the_training_job_of_the_first_try(bench, code, message):
    bench.refuses("create_training_job", code, message)
    bench.describes()
    bench.has_tags(OURS)
    assert bench.create(retry=True) is CreateResult.ALREADY_THERE


@pytest.mark.parametrize(("code", "message"), REFUSALS)
def test_a_refused_retry_is_unconfirmed_while_nothing_is_described(bench, code, message):
    bench.refuses("create_training_job", code, message)
    bench.refuses("describe_training_job", *NOT_THERE)
    with pytest.raises(Unconfirmed) as caught:
        bench.create(retry=True)
    assert message in str(caught.value.refusal)


def test_a_call_that_botocore_retried_is_a_retry(bench):
    bench.set_profile.add_client_error(
        "create_training_job", "ResourceLimitExceeded", FULL, response_meta={"RetryAttempts": 1}
    )
    bench.refuses("describe_training_job", *NOT_THERE)
    with pytest.raises(Unconfirmed):
        bench.create()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ValidationException", "CapacityError: no room"),
        ("ValidationException", "Unable to provision requested ML compute capacity."),
        ("ValidationException", "InsufficientCapacityError"),
        ("CapacityError", "no room"),
        ("ServiceQuotaExceededException", "no room"),
    ],
)
def test_missing_ec2_capacity_at_creation_is_no_fault_of_the_request(bench, code, message):
    bench.refuses("create_training_job", code, message)
    with pytest.raises(CapacityExhausted):
        bench.create()


@pytest.mark.parametrize(
    ("code", "message", "status", "kind"),
    [
        *PASSING,
        ("ValidationException", "1 validation error detected", 400, RequestRefused),
        ("ValidationError", "1 validation error detected", 400, RequestRefused),
        ("ResourceNotFound", "Experiment not found", 400, RequestRefused),
        ("Unheard", "no", 400, RequestRefused),
        ("ValidationException", "Could not assume role arn:aws:iam::1:role/new.", 400, NotPermitted),
        ("ValidationException", "It is not authorized to perform iam:PassRole", 400, NotPermitted),
        ("ValidationException", "Please try again later.", 400, Unavailable),
    ],
)
def test_errors_of_create_by_meaning(bench, code, message, status, kind):
    bench.refuses("create_training_job", code, message, status)
    with pytest.raises(kind) as caught:
        bench.create()
    assert type(caught.value) is kind
    assert str(caught.value) == f"{code}: {message}" or not message
    assert caught.value.__cause__.response["Error"]["Code"] == code


def test_requests_that_botocore_itself_rejects_are_rejected():
    request = a_request("job1", StoppingCondition={"MaxRuntimeInSeconds": "long"})
    with pytest.raises(RequestRefused, match="ParamValidationError"):
        SageMakerLauncher(impatient_client("sagemaker"), QUEUE).create(a_job("job1"), an_attempt(), request)


def test_a_reason_is_never_longer_than_can_be_stored(bench):
    bench.refuses("create_training_job", "ValidationException", "x" * 5000)
    with pytest.raises(RequestRefused) as caught:
        bench.create()
    assert len(str(caught.value)) == 1024


# ------------------------------------------------------------------ stop, end_warm_pool

KEEP_NO_LONGER = {**NAMED, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}


def test_stop_asks_for_a_stop(bench):
    bench.says("stop_training_job", {}, NAMED)
    assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ACCEPTED


def test_a_warm_pool_is_ended_before_the_job(bench):
    bench.says("update_training_job", {"TrainingJobArn": ARN}, KEEP_NO_LONGER)
    bench.says("stop_training_job", {}, NAMED)
    assert bench.launcher.stop("job1", end_warm_pool=True) is StopResult.ACCEPTED


@pytest.mark.parametrize("code", ["ValidationException", "ResourceNotFound"])
def test_a_state_in_which_no_pool_can_be_ended_does_not_keep_the_job_from_stopping(bench, code):
    bench.refuses("update_training_job", code, "in this state")
    bench.says("stop_training_job", {}, NAMED)
    assert bench.launcher.stop("job1", end_warm_pool=True) is StopResult.ACCEPTED


def test_nor_does_a_missing_permission_to_end_the_pool(bench, caplog):
    bench.refuses("update_training_job", "AccessDeniedException", "no")
    bench.says("stop_training_job", {}, NAMED)
    with caplog.at_level(logging.WARNING):
        assert bench.launcher.stop("job1", end_warm_pool=True) is StopResult.ACCEPTED
    assert "could not end a warm pool" in caplog.text


def test_throttling_of_the_warm_pools_end_does_not_prevent_the_stop(bench):
    bench.refuses("update_training_job", "ThrottlingException", "Rate exceeded")
    bench.says("stop_training_job", {}, NAMED)
    assert bench.launcher.stop("job1", end_warm_pool=True) is StopResult.ACCEPTED


@pytest.mark.parametrize("status", ["Completed", "Failed", "Stopped", "Deleting"])
def test_a_job_that_has_ended_needs_no_stop(bench, status):
    bench.refuses("stop_training_job", "ValidationException", f"the training job is in status {status}.")
    bench.describes(status)
    assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ENDED


def test_a_job_that_is_stopping_already_is_stopping(bench):
    bench.refuses("stop_training_job", "ValidationException", "the training job is in status Stopping.")
    assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ALREADY_STOPPING


def test_a_stop_that_is_refused_without_the_status_is_explained_by_describe(bench):
    bench.refuses("stop_training_job", "ValidationException", "no")
    bench.describes("Stopping")
    assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.ALREADY_STOPPING


@pytest.mark.parametrize(("code", "message"), [NOT_THERE, ("ResourceNotFound", "")])
def test_a_job_that_is_not_there_needs_no_stop(bench, code, message):
    bench.refuses("stop_training_job", code, message)
    bench.refuses("describe_training_job", *NOT_THERE)
    assert bench.launcher.stop("job1", end_warm_pool=False) is StopResult.NOT_FOUND


def test_a_stop_that_is_refused_to_a_running_job_is_to_be_tried_again(bench):
    bench.refuses("stop_training_job", "ValidationException", "the training job is in status Completed.")
    bench.describes("InProgress")
    with pytest.raises(Unavailable, match="in status Completed"):
        bench.launcher.stop("job1", end_warm_pool=False)


# ------------------------------------------------------------------ describe, units_of


def test_describe_tells_all_that_the_queue_asks(bench):
    bench.describes(
        "Stopping",
        SecondaryStatus="Uploading",
        TrainingStartTime=at(60),
        SecondaryStatusTransitions=[
            {"Status": "Training", "StartTime": at(60)},
            {"Status": "Stopping", "StartTime": at(90)},
        ],
        ResourceConfig={"InstancePreferences": [{"InstanceType": G5}], "SelectedInstanceType": G5},
    )
    seen = bench.launcher.describe("job1")
    assert (seen.status, seen.secondary, seen.started_at) == (Status.STOPPING, "Uploading", at(60))
    assert (seen.stopping_since, seen.chosen_type, seen.warm_pool) == (at(90), G5, False)


def test_describe_tells_why_a_job_failed_and_what_it_left(bench):
    bench.describes("Failed", FailureReason="AlgorithmError: 1", WarmPoolStatus={"Status": "Available"})
    seen = bench.launcher.describe("job1")
    assert (seen.status, seen.failure_reason, seen.warm_pool) == (Status.FAILED, "AlgorithmError: 1", True)


@pytest.mark.parametrize(("code", "message"), [NOT_THERE, ("ResourceNotFound", ""), ("ResourceNotFoundException", "")])
def test_an_unknown_training_job_is_none(bench, code, message):
    bench.refuses("describe_training_job", code, message)
    bench.refuses("describe_training_job", code, message)
    assert bench.launcher.describe("job1") is None
    assert bench.launcher.units_of("job1") == {}


def test_another_refusal_is_not_taken_for_absence(bench):
    """None ends the job's attempt, so nothing else may read as it."""
    bench.refuses("describe_training_job", "ValidationException", "1 validation error detected")
    with pytest.raises(Unavailable):
        bench.launcher.describe("job1")


def test_a_status_that_sagemaker_may_invent_is_no_answer(bench):
    bench.describes("Hibernating")
    bench.describes("Hibernating")
    with pytest.raises(Unavailable, match="Hibernating"):
        bench.launcher.describe("job1")
    with pytest.raises(Unavailable, match="Hibernating"):
        bench.launcher.units_of("job1")


def test_units_of_are_what_it_holds(bench):
    bench.describes(ResourceConfig={"InstanceType": P5, "InstanceCount": 2})
    assert bench.launcher.units_of("job1") == {P5: 2}


# ------------------------------------------------------------------ open_jobs


def a_list(*names, token=None):
    rows = [
        {
            "TrainingJobName": name,
            "TrainingJobArn": ARN,
            "CreationTime": NOW,
            "TrainingJobStatus": "InProgress",
        }
        for name in names
    ]
    return {"TrainingJobSummaries": rows, **({"NextToken": token} if token else {})}


def asked(status, **members):
    return {
        "StatusEquals": status,
        "CreationTimeAfter": NOW,
        "MaxResults": 100,
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        **members,
    }


def test_open_jobs_walks_both_lists_one_call_a_page_through_empty_pages(bench):
    bench.says("list_training_jobs", a_list("a", token="x:1"), asked("InProgress"))
    bench.says("list_training_jobs", a_list(token="y"), asked("InProgress", NextToken="x:1"))
    bench.says("list_training_jobs", a_list("b"), asked("InProgress", NextToken="y"))
    bench.says("list_training_jobs", a_list(token="z"), asked("Stopping"))
    bench.says("list_training_jobs", a_list("c"), asked("Stopping", NextToken="z"))
    pages = [bench.launcher.list_open_jobs(NOW)]
    while pages[-1].token is not None:
        pages.append(bench.launcher.list_open_jobs(NOW, pages[-1].token))
    assert [page.names for page in pages] == [("a",), (), ("b",), (), ("c",)]


def test_an_account_without_training_jobs_takes_two_calls(bench):
    bench.says("list_training_jobs", a_list(), asked("InProgress"))
    bench.says("list_training_jobs", a_list(), asked("Stopping"))
    first = bench.launcher.list_open_jobs(NOW)
    assert bench.launcher.list_open_jobs(NOW, first.token) == OpenJobsPage(())


def test_a_token_of_another_list_is_rejected(bench):
    with pytest.raises(InvalidRequest):
        bench.launcher.list_open_jobs(NOW, "Completed:x")


# ------------------------------------------------------------------ trouble

VERBS = {
    "stop_training_job": lambda launcher: launcher.stop("job1", end_warm_pool=False),
    "update_training_job": lambda launcher: launcher.end_warm_pool("job1"),
    "describe_training_job": lambda launcher: launcher.describe("job1"),
    "list_training_jobs": lambda launcher: launcher.list_open_jobs(NOW),
}


@pytest.mark.parametrize("trouble", PASSING, ids=lambda trouble: f"{trouble[0]}-{trouble[2]}")
@pytest.mark.parametrize("operation", VERBS)
def test_trouble_is_one_of_three_whatever_the_verb(bench, operation, trouble):
    code, message, status, kind = trouble
    bench.refuses(operation, code, message, status)
    with pytest.raises(kind) as caught:
        VERBS[operation](bench.launcher)
    assert type(caught.value) is kind


@pytest.mark.parametrize("operation", ["list_training_jobs", "describe_training_job"])
def test_a_refusal_outside_create_never_reads_as_a_bad_request(bench, operation):
    bench.refuses(operation, "ValidationException", "odd")
    with pytest.raises(Unavailable):
        VERBS[operation](bench.launcher)


def test_ending_a_pool_that_is_not_there_is_nothing(bench):
    bench.refuses("update_training_job", "ValidationException", "not in a state")
    bench.launcher.end_warm_pool("job1")


@pytest.mark.parametrize("operation", ["describe_training_job", "list_training_jobs"])
def test_an_answer_that_is_no_answer_is_unavailable(operation):
    client = impatient_client("sagemaker")
    client.meta.events.register("before-send.sagemaker", lambda **_: AWSResponse("", 200, {}, Garbage()))
    with pytest.raises(Unavailable, match="cannot be read"):
        VERBS[operation](SageMakerLauncher(client, QUEUE))


class Garbage:
    """A body that is no JSON."""

    def stream(self, **_):
        yield b"<html>"
