"""Carrying events and log lines away without ever holding the simulator up."""

from __future__ import annotations

import json
import logging
import threading
from datetime import UTC, datetime

import pytest
from moto import mock_aws
from simulated import Account

from aws_clients import aws_client
from trainmaster.local.simulator.events.delivery import BatchSender, event_sender, log_sender
from trainmaster.local.simulator.events.log_lines import LogLine

NOW = datetime.now(UTC)
"""CloudWatch Logs refuses lines of the past and of the future."""
PATIENCE_SECONDS = 20


def test_things_are_delivered_in_order_and_in_batches():
    batches = []
    ready = threading.Event()

    def deliver(batch):
        ready.wait(PATIENCE_SECONDS)
        batches.append(batch)

    courier = BatchSender(deliver, 3)
    for number in range(8):
        courier.put(number)
    ready.set()
    courier.close()
    assert [number for batch in batches for number in batch] == list(range(8))
    assert max(map(len, batches)) == 3


def test_a_failed_delivery_is_tried_again_without_losing_order():
    delivered, tries = [], []

    def deliver(batch):
        tries.append(batch)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        delivered.extend(batch)

    courier = BatchSender(deliver, 1, pause=0.001)
    courier.put("first")
    courier.put("second")
    courier.close()
    assert delivered == ["first", "second"]


def test_undeliverable_items_are_dropped_with_a_warning(caplog):
    attempted = []

    def deliver(batch):
        attempted.append(batch)
        if batch == ["bad"]:
            raise ConnectionError("never")

    courier = BatchSender(deliver, 1, pause=0)
    with caplog.at_level(logging.WARNING):
        courier.put("bad")
        courier.put("good")
        courier.close()
    assert attempted == [["bad"]] * 5 + [["good"]]
    assert "Items dropped after the last retry" in caplog.text


def test_putting_never_waits_for_a_receiver_that_hangs(caplog):
    hanging = threading.Event()
    courier = BatchSender(lambda _batch: hanging.wait(PATIENCE_SECONDS), 1)
    with caplog.at_level(logging.WARNING):
        for number in range(10_100):
            courier.put(number)
    assert "dropped" in caplog.text
    hanging.set()
    courier.close()


class Bus:
    """EventBridge as far as the courier sees it."""

    def __init__(self, refusals: int = 0) -> None:
        self.entries = []
        self._refusals = refusals

    def put_events(self, *, Entries):  # noqa: N803
        if self._refusals:
            self._refusals -= 1
            return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "NotAuthorizedForSourceException"}]}
        self.entries += Entries
        return {"FailedEntryCount": 0, "Entries": []}


@pytest.mark.parametrize("refusals", [0, 2])
def test_events_become_entries_of_the_bus(refusals):
    bus = Bus(refusals)
    account = Account(source="trainmaster.local")
    courier = event_sender(bus, "default")
    account.simulator.sink = courier.put
    account.create("job1", priority=3)
    courier.close()
    entry = bus.entries[0]
    assert (entry["Source"], entry["DetailType"]) == ("trainmaster.local", "SageMaker Training Job State Change")
    assert entry["EventBusName"] == "default"
    assert entry["Resources"] == ["arn:aws:sagemaker:us-east-1:111122223333:training-job/job1"]
    assert entry["Time"] == account.start
    detail = json.loads(entry["Detail"])
    assert (detail["TrainingJobStatus"], detail["Tags"]) == ("InProgress", {"priority": "3"})


@mock_aws
def test_lines_arrive_in_their_log_streams_in_order():
    client = aws_client("logs")
    client.create_log_group(logGroupName="group")
    courier = log_sender(client)
    for stream, text in (("one", "first"), ("two", "other"), ("one", ""), ("one", "last")):
        courier.put(LogLine("group", stream, NOW, text))
    courier.close()
    events = client.get_log_events(logGroupName="group", logStreamName="one", startFromHead=True)["events"]
    assert [event["message"] for event in events] == ["first", " ", "last"]
    assert client.get_log_events(logGroupName="group", logStreamName="two")["events"][0]["message"] == "other"
