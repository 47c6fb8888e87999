"""Entries on the event bus, and the handling of entries that it refuses."""

from __future__ import annotations

import json

import pytest
from botocore.stub import Stubber

from aws_clients import aws_client
from trainmaster.adapters.eventbridge import EventBus, EventResizeRequester
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable

QUESTION = {"token": "t", "job": "job1", "to": 2}


@pytest.fixture
def client():
    return aws_client("events")


def asked(client, answer):
    detail = json.dumps(QUESTION, separators=(",", ":"))
    entry = {"Source": "trainmaster", "DetailType": "Trainmaster Job Resize", "Detail": detail}
    with Stubber(client) as script:
        script.add_response("put_events", answer, {"Entries": [entry]})
        return EventResizeRequester(lambda: client).request_resize("event", QUESTION)


def test_the_request_is_the_detail_of_an_event_without_an_immediate_answer(client):
    assert asked(client, {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ThrottlingException", Throttled),
        ("AccessDeniedException", NotPermitted),
        ("NotAuthorizedForSourceException", NotPermitted),
        ("InternalFailure", Unavailable),
    ],
)
def test_an_entry_that_was_not_taken_is_no_event(client, code, kind):
    with pytest.raises(kind, match=code):
        asked(client, {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "no"}]})


def test_neither_is_a_refused_call(client):
    script = Stubber(client)
    script.add_client_error("put_events", "InternalException", http_status_code=500)
    with script, pytest.raises(Unavailable):
        EventResizeRequester(lambda: client).request_resize("event", QUESTION)


def detail_of(number, **members):
    return {
        "type": "ended",
        "at": "2026-11-22T08:00:00.000Z",
        "jobName": f"job{number}",
        "trainingJobName": f"job{number}-1",
        **members,
    }


class Bus:
    """A client that keeps the entries of each call, and rejects those of some jobs."""

    def __init__(self, rejected=(), fails_at=None):
        self.calls, self.rejected, self.fails_at = [], rejected, fails_at

    def put_events(self, Entries):  # noqa: N803 -- as boto3 names it
        if len(self.calls) + 1 == self.fails_at:
            raise Throttled("slow down")
        self.calls.append(Entries)
        names = [json.loads(entry["Detail"])["jobName"] for entry in Entries]
        answers = [{"ErrorCode": "InternalFailure"} if name in self.rejected else {"EventId": "1"} for name in names]
        return {"FailedEntryCount": sum("ErrorCode" in each for each in answers), "Entries": answers}


def test_events_are_put_ten_at_a_time_and_rejected_entries_are_told():
    bus = Bus(rejected={"job3"})
    accepted = EventBus(lambda: bus).deliver([detail_of(number) for number in range(12)])
    assert accepted == [number != 3 for number in range(12)]
    assert [len(call) for call in bus.calls] == [10, 2]


def test_a_call_that_fails_leaves_the_events_that_follow():
    bus = Bus(fails_at=2)
    assert EventBus(lambda: bus).deliver([detail_of(number) for number in range(12)]) == [True] * 10 + [False] * 2
    with pytest.raises(Throttled):
        EventBus(lambda: Bus(fails_at=1)).deliver([detail_of(1)])


def test_large_events_share_no_call_and_a_too_large_one_loses_its_largest_members():
    large = {"tags": {f"k{number}": "v" * 250 for number in range(700)}}
    bus = Bus()
    assert EventBus(lambda: bus).deliver([detail_of(1, **large), detail_of(2, **large)]) == [True, True]
    assert [len(call) for call in bus.calls] == [1, 1]
    EventBus(lambda: bus).deliver([detail_of(3, tags={"k": "v" * 240_000})])
    assert json.loads(bus.calls[-1][0]["Detail"]) == {**detail_of(3), "truncated": True}


def test_an_entry_has_the_source_the_bus_the_time_and_the_training_job():
    bus = Bus()
    EventBus(lambda: bus, "platform", "arn:aws:sagemaker:us-east-1:111122223333:training-job/").deliver([detail_of(1)])
    (entry,) = bus.calls[0]
    assert (entry["Source"], entry["DetailType"]) == ("trainmaster", "Trainmaster Job State Change")
    assert (entry["EventBusName"], entry["Time"].isoformat()) == ("platform", "2026-11-22T08:00:00+00:00")
    assert entry["Resources"] == ["arn:aws:sagemaker:us-east-1:111122223333:training-job/job1-1"]
