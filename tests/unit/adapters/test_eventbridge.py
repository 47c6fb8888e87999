"""Entries on the event bus, and the handling of entries that it refuses."""

from __future__ import annotations

import json

import pytest
from botocore.stub import Stubber

from aws_clients import aws_client
from trainmaster.adapters.eventbridge import EventResizeRequester
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
