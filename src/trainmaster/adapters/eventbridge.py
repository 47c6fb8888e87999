"""EventBridge: events of the queue as `ports.Deliverer`, and resize requests as `ports.ResizeRequester`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.compat import parse_iso
from trainmaster.domain.errors import NotPermitted, ServiceError, Throttled, Unavailable
from trainmaster.domain.events.types import DETAIL_TYPES, EventType
from trainmaster.ports.events import Detail

log = logging.getLogger(__name__)
SOURCE = "trainmaster"
DETAIL_TYPE = "Trainmaster Job Resize"
MAX_ENTRIES = 10
"""Entries of one PutEvents call (EventBridge API)."""
MAX_BYTES = 240_000
"""Bytes of the entries of one call; EventBridge accepted 256 KB before it accepted more."""
_LARGE = ("tags", "before", "after")
"""Members that are left out of an event that would be larger than a call may be."""
_KINDS: Mapping[str, type[ServiceError]] = {
    "ThrottlingException": Throttled,
    "AccessDeniedException": NotPermitted,
    "NotAuthorizedForSourceException": NotPermitted,
}
"""By an entry's `ErrorCode` (EventBridge API, PutEventsResultEntry); any other code counts as `Unavailable`."""


class EventBus:
    """Puts events of the queue on an event bus (`events:PutEvents`); see `ports.Deliverer`.

    Args:
        new_client: makes a boto3 EventBridge client; called for each delivery.
        bus: name or ARN of the event bus; "" for the account's default bus.
        training_jobs: ARN of the queue's training jobs up to their name; "" to name no resource.
    """

    def __init__(self, new_client: Callable[[], Any], bus: str = "", training_jobs: str = "") -> None:
        self._new_client, self._bus, self._training_jobs = new_client, bus, training_jobs

    def deliver(self, details: Sequence[Detail]) -> list[bool]:
        """Put the events in calls of at most 10; see `ports.Deliverer.deliver`. A failed call ends the round."""
        client, accepted = self._new_client(), list[bool]()
        for entries in _batches([self._entry(detail) for detail in details]):
            try:
                with translate_errors():
                    answer = client.put_events(Entries=entries)
            except ServiceError:
                if not accepted:
                    raise
                break
            codes = [each.get("ErrorCode", "") for each in answer["Entries"]]
            if answer["FailedEntryCount"]:
                log.warning("EventBridge rejected events", extra={"codes": sorted({*codes} - {""})})
            accepted += [not code for code in codes]
        return accepted + [False] * (len(details) - len(accepted))

    def _entry(self, detail: Detail) -> dict[str, Any]:
        name = detail.get("trainingJobName")
        text = _text(detail)
        if _size(text) > MAX_BYTES:
            text = _text({key: value for key, value in detail.items() if key not in _LARGE} | {"truncated": True})
        return {
            "Source": SOURCE,
            "DetailType": DETAIL_TYPES[EventType(detail["type"])],
            "Time": parse_iso(detail["at"]),
            "Detail": text,
            **({"EventBusName": self._bus} if self._bus else {}),
            **({"Resources": [self._training_jobs + name]} if name and self._training_jobs else {}),
        }


class EventResizeRequester:
    """Puts events on the account's default bus (`events:PutEvents`).

    Args:
        new_client: makes a boto3 EventBridge client; called for each request.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def request_resize(self, target: str, question: Mapping[str, Any]) -> None:  # noqa: ARG002 -- rules match, not names
        """Put the request as the detail of an event; see `ports.ResizeRequester.request_resize`."""
        client = self._new_client()
        detail = _text(question)
        with translate_errors():
            answer = client.put_events(Entries=[{"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": detail}])
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "")
            raise _KINDS.get(code, Unavailable)(f"EventBridge rejected the event: {code}")


def _batches(entries: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch, size = list[dict[str, Any]](), 0
    for entry in entries:
        more = _size(entry["Detail"])
        if batch and (len(batch) == MAX_ENTRIES or size + more > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += more
    if batch:
        yield batch


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _size(text: str) -> int:
    """Return the bytes of an entry with this detail, with room for its other members."""
    return len(text) + 1_000
