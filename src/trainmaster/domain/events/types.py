"""Types of events, the words that subscribe to them, and the entries of the outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.requests.fields import did_you_mean


class EventType(StrEnum):
    """Types of events; the `type` in the detail, and the words of the parameter `Events`."""

    SUBMITTED = "submitted"
    HELD = "held"
    RELEASED = "released"
    STARTING = "starting"
    STARTED = "started"
    RESUMED = "resumed"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"
    RESIZING = "resizing"
    RESIZED = "resized"
    INFEASIBLE = "infeasible"
    FEASIBLE = "feasible"
    ENDED = "ended"
    POOLS = "pools"
    SETTINGS = "settings"
    BUDGET = "budget"


ALL, NONE = "all", "none"
DETAIL_TYPES: Mapping[EventType, str] = {
    **dict.fromkeys(EventType, "Trainmaster Job State Change"),
    EventType.POOLS: "Trainmaster Pool Change",
    EventType.SETTINGS: "Trainmaster Settings Change",
    EventType.BUDGET: "Trainmaster Budget Threshold",
}
NOTIFIED: Mapping[str, EventType] = {
    "start": EventType.STARTED,
    "preempted": EventType.PREEMPTED,
    "resumed": EventType.RESUMED,
    "resized": EventType.RESIZED,
    "infeasible": EventType.INFEASIBLE,
    "end": EventType.ENDED,
}
"""Words of the tag `trainmaster:notify`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to deliver after the commit that it was written with.

    Attributes:
        to: the recipients that have not received it yet, by the names of their deliverers.
        detail: JSON values, with the `type`.
    """

    to: tuple[str, ...]
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """The entries of one commit.

    Attributes:
        key: orders the rows by time.
        entries: in the order of the changes.
    """

    key: str
    entries: tuple[Entry, ...]


def row_order(entries: Sequence[Entry]) -> str:
    """Return the beginning of the key of a commit's row: rows are in the order of time, those of a job in its own."""
    first = entries[0].detail
    return f"{first['at']}#{first.get('sequence', 0):09d}"


def event_types(text: str) -> frozenset[EventType]:
    """Return the types in a text such as `ended,preempted`, `all` or `none`. Raises `ValueError` for another word."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if words in ([], [NONE]):
        return frozenset()
    if words == [ALL]:
        return frozenset(EventType)
    known = {each.value: each for each in EventType}
    for word in words:
        if word not in known:
            meant = did_you_mean(word, known)
            guess = f"; did you mean {meant}?" if meant else f"; the types are {', '.join(known)}"
            raise ValueError(f"{word!r} is no type of event{guess}")
    return frozenset(known[word] for word in words)
