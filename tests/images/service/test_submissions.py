"""From the intake, which opens images, to the manager, which stores their jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from image_world import API_ROLE, ImageWorld, a_record, an_image_request
from trainmaster.adapters.sqs import MAX_MESSAGE_SIZE
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import InvalidRequest, TooLarge, Unavailable
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.images.adapters.sqs_submissions import SqsSubmissions
from trainmaster.images.service.submissions import SubmissionEntry, submission_of
from trainmaster.service.access import Access

ALICE = "arn:aws:sts::111122223333:assumed-role/research/alice"
POLICY = Policy(shares={"vision": Share(name="vision", submitters=("arn:aws:iam::111122223333:role/research",))})


class Sqs:
    """A FIFO queue's client."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send_message(self, **asked: Any) -> None:
        self.sent.append(asked)


class Apart:
    """An intake that sends, and a manager that stores; both know the same table."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.sqs, self.world = Sqs(), ImageWorld(policy=policy)
        sends: Any = SqsSubmissions(self.sqs, "https://progress")  # type: ignore[arg-type]
        self.world.intake = replace(self.world.intake, submissions=sends)
        world = self.world
        self.entry = SubmissionEntry(
            store=world.store,
            access=Access(),
            clock=world.clock,
            queue=world.image_queue,
            refusals=world.refusals,
            retention=timedelta(days=1),
        )

    def take_in(self, *bodies: Any) -> list[dict[str, Any]]:
        assert self.world.deliver(*bodies) == []
        return [json.loads(asked["MessageBody"]) for asked in self.sqs.sent]

    def job(self, name: str) -> Job | None:
        return self.world.store.find(name)


def test_the_intake_stores_no_job_and_the_manager_stores_the_one_that_it_would_have_stored() -> None:
    request, vouched = an_image_request(), f"{API_ROLE}:sagemaker-queue-api"
    together = ImageWorld()
    together.deliver(a_record(0, request, vouched, Caller=ALICE))
    apart = Apart()
    (message,) = apart.take_in(a_record(0, request, vouched, Caller=ALICE))
    assert (message["kind"], apart.job("harbour-7")) == ("image", None)
    apart.entry.enter(message)
    assert apart.job("harbour-7") == together.store.find("harbour-7")
    assert apart.job("harbour-7").submitted_by == Caller(ALICE).principal
    assert apart.world.store.request_of("harbour-7") == request
    apart.entry.enter(message)
    assert apart.world.reasons() == []


def test_a_message_that_comes_again_is_sent_with_the_same_identifier_and_another_with_its_own() -> None:
    apart = Apart()
    apart.take_in(a_record(1, an_image_request()))
    apart.take_in(a_record(1, an_image_request()))
    apart.take_in(a_record(2, an_image_request()))
    first, again, other = (asked["MessageDeduplicationId"] for asked in apart.sqs.sent)
    assert first == again != other
    assert {asked["MessageGroupId"] for asked in apart.sqs.sent} == {"manager"}


def test_a_name_that_another_request_has_taken_meanwhile_is_set_aside_with_the_reason() -> None:
    apart = Apart()
    first, second = an_image_request(), an_image_request(imageProcessorTileSize=512)
    messages = apart.take_in(a_record(1, first), a_record(2, second))
    for message in messages:
        apart.entry.enter(message)
    assert apart.world.store.request_of("harbour-7") == first
    ((body, reason, told),) = apart.world.image_queue.aside
    assert (json.loads(body), told) == (second, {"Field": "jobId"})
    assert "belongs to a job with another request" in reason


def test_the_manager_asks_again_who_may_submit_to_a_share() -> None:
    apart = Apart(POLICY)
    request = an_image_request(trainmaster={"share": "vision"})
    (message,) = apart.take_in(a_record(0, request, f"{API_ROLE}:x", Caller=ALICE))
    message["submission"]["caller"] = "arn:aws:sts::111122223333:assumed-role/other/bob"
    apart.entry.enter(message)
    assert apart.job("harbour-7") is None
    assert [field for _, field in apart.world.reasons()] == ["trainmaster.share"]
    assert "may not use the share vision" in apart.world.refusals.of("harbour-7").message()


TRAINING = {"TrainingJobName": "harbour-7", "RoleArn": "arn:aws:iam::111122223333:role/admin"}


@pytest.mark.parametrize(
    "changes",
    [
        {"body": TRAINING},
        {"body": TRAINING | {"jobId": "harbour-7", "imageUrls": []}},
        {"body": "none"},
        {"name": "other"},
        {"name": "../x", "body": an_image_request("../x")},
        {"priority": 10**9},
        {"priority": True},
        {"priority": "5"},
        {"share": 5},
        {"caller": 5},
        {"work": []},
        {"work": ["ships"]},
        {"work": "ships"},
        {"since": "yesterday"},
        {"since": 5},
    ],
)
def test_a_forged_submission_is_refused_and_stores_nothing(changes: dict[str, Any]) -> None:
    apart = Apart()
    (message,) = apart.take_in(an_image_request())
    with pytest.raises(InvalidRequest) as caught:
        apart.entry.enter({**message, "submission": message["submission"] | changes})
    assert (caught.value.field, apart.job("harbour-7")) == ("submission", None)


@pytest.mark.parametrize("message", [{}, {"submission": None}, {"submission": []}, {"submission": {"name": "a"}}])
def test_a_message_without_a_submission_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        submission_of(message)


def test_the_counts_of_a_submission_are_computed_again() -> None:
    apart = Apart()
    (message,) = apart.take_in(an_image_request())
    honest = submission_of(message).work
    message["submission"]["work"][4:] = [1, 1, honest.workers, 1, 1, 1, 1]
    assert submission_of(message).work == honest


def test_a_job_does_not_enter_the_queue_before_its_time() -> None:
    apart = Apart()
    (message,) = apart.take_in(an_image_request())
    message["submission"]["since"] = datetime(2999, 1, 1, tzinfo=UTC).isoformat()
    apart.entry.enter(message)
    assert apart.job("harbour-7").entry_time == apart.world.clock.now()


def test_a_store_that_is_away_lets_sqs_deliver_the_submission_again() -> None:
    apart = Apart()
    (message,) = apart.take_in(an_image_request())

    def away(*_: Any, **__: Any) -> Any:
        raise Unavailable("away")

    apart.world.store.submit = away  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        apart.entry.enter(message)
    assert apart.world.reasons() == []


def test_a_submission_is_sent_whatever_characters_it_has_and_refused_if_it_is_too_large() -> None:
    sqs = Sqs()
    submissions = SqsSubmissions(sqs, "https://progress")  # type: ignore[arg-type]
    odd = {"body": {"text": "\x00\ud800\ufffe é \u202e"}}
    submissions.send(odd, "m1")
    text = sqs.sent[0]["MessageBody"]
    assert json.loads(text) == {"kind": "image", "submission": odd}
    assert not {"\x00", "\ud800", "\ufffe"} & {*text}
    submissions.send({"body": "x" * (MAX_MESSAGE_SIZE - 100)}, "m2")
    with pytest.raises(TooLarge):
        submissions.send({"body": "x" * MAX_MESSAGE_SIZE}, "m3")
