"""Recipients of what commits have put into the outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainmaster.domain.events.types import EventType

Detail = Mapping[str, Any]
"""An event as JSON values; docs/reference/events.md describes it."""


class Deliverer(Protocol):
    """Delivers details to one recipient."""

    def deliver(self, details: Sequence[Detail]) -> Sequence[bool]:
        """Deliver the details, in their order; return for each whether the recipient has accepted it.

        Raises `Throttled`, `Unavailable`, `NotPermitted`: then any of them may have been delivered.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient of the events of one kind of jobs.

    Attributes:
        types: of the events that it gets.
        deliverer: delivers them.
    """

    types: frozenset[EventType]
    deliverer: Deliverer
