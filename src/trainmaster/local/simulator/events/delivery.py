"""Delivers events to an EventBridge bus, and log lines to CloudWatch Logs.

A thread delivers from a queue, so that a slow endpoint never delays the simulator. Items that cannot be delivered are
dropped with a warning; EventBridge's delivery is best effort too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from trainmaster.local.simulator.events.events import Event
from trainmaster.local.simulator.events.log_lines import LogLine

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

log = logging.getLogger(__name__)
T = TypeVar("T")
MAX_WAITING = 10_000
MAX_EVENTS = 10
"""Maximum entries of PutEvents."""
MAX_LINES = 500
MAX_TRIES = 5
FIRST_PAUSE_SECONDS = 0.2
CLOSE_SECONDS = 5.0
"""Time for queued items in `close`."""


class Bus(Protocol):
    """The used part of an EventBridge client."""

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:  # noqa: N803 - AWS's name
        """Put events; the response counts the failed entries."""
        ...


class BatchSender(Generic[T]):
    """Delivers items in order and in batches, from a thread of its own.

    Args:
        deliver: takes a batch; it is retried if it raises.
        max_batch: maximum items of a batch.
        pause: seconds before the first retry, doubled for each further one.
    """

    def __init__(self, deliver: Callable[[list[T]], None], max_batch: int, pause: float = FIRST_PAUSE_SECONDS) -> None:
        self._deliver = deliver
        self._max_batch = max_batch
        self._pause = pause
        self._queue: queue.Queue[T | None] = queue.Queue(MAX_WAITING)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="simulator-courier", daemon=True)
        self._thread.start()

    def put(self, thing: T) -> None:
        """Queue an item; drop it with a warning if the queue is full. Never blocks."""
        try:
            self._queue.put_nowait(thing)
        except queue.Full:
            log.warning("Item dropped: the receiver is too slow")

    def close(self) -> None:
        """Deliver the queued items, for a limited time, and stop."""
        self._closing.set()
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            log.warning("Queued items may be lost: the receiver is too slow")
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._next_batch()
            if batch:
                self._deliver_with_retries(batch)

    def _next_batch(self) -> tuple[list[T], bool]:
        first = self._queue.get()
        batch: list[T] = []
        while first is not None:
            batch.append(first)
            if len(batch) == self._max_batch:
                return batch, False
            try:
                first = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _deliver_with_retries(self, batch: list[T]) -> None:
        for attempt in range(MAX_TRIES):
            try:
                return self._deliver(batch)
            except Exception as error:  # noqa: BLE001 - no error of a receiver may end the thread
                log.warning("Delivery failed", extra={"attempt": attempt + 1, "cause": str(error)})
                self._closing.wait(self._pause * 2**attempt)
        log.warning("Items dropped after the last retry", extra={"count": len(batch)})
        return None


def event_sender(client: Bus, bus: str) -> BatchSender[Event]:
    """Return a sender of events to a bus."""

    def deliver(batch: list[Event]) -> None:
        answer = client.put_events(Entries=[_entry(event, bus) for event in batch])
        if answer["FailedEntryCount"]:
            raise RuntimeError(f"the bus rejected events: {answer['Entries']}")

    return BatchSender(deliver, MAX_EVENTS)


def log_sender(client: CloudWatchLogsClient) -> BatchSender[LogLine]:
    """Return a sender of lines to their log streams; groups and streams are created as needed."""
    known: set[tuple[str, str]] = set()

    def deliver(batch: list[LogLine]) -> None:
        # Stable: the lines of one stream keep their order.
        for (group, stream), lines in groupby(sorted(batch, key=_stream_of), key=_stream_of):
            if (group, stream) not in known:
                _make_stream(client, group, stream)
                known.add((group, stream))
            _put_lines(client, group, stream, lines)

    return BatchSender(deliver, MAX_LINES)


def _stream_of(line: LogLine) -> tuple[str, str]:
    return line.group, line.stream


def _make_stream(client: CloudWatchLogsClient, group: str, stream: str) -> None:
    exists = client.exceptions.ResourceAlreadyExistsException
    with contextlib.suppress(exists):
        client.create_log_group(logGroupName=group)
    with contextlib.suppress(exists):
        client.create_log_stream(logGroupName=group, logStreamName=stream)


def _put_lines(client: CloudWatchLogsClient, group: str, stream: str, lines: Iterable[LogLine]) -> None:
    # CloudWatch Logs rejects an empty message.
    events = [{"timestamp": round(line.at.timestamp() * 1000), "message": line.text or " "} for line in lines]
    client.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)  # type: ignore[arg-type]


def _entry(event: Event, bus: str) -> dict[str, Any]:
    return {
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Detail": json.dumps(event["detail"]),
        "Resources": event["resources"],
        "Time": datetime.fromisoformat(event["time"]),
        "EventBusName": bus,
    }
