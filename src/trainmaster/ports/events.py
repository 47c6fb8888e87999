"""Recipients of what commits have put into the outbox."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainmaster.domain.errors import ServiceError, Throttled
from trainmaster.domain.events.types import EventType

log = logging.getLogger(__name__)
Detail = Mapping[str, Any]
"""An event as JSON values; docs/reference/events.md describes it."""


class Deliverer(Protocol):
    """Delivers details to one recipient."""

    def deliver(self, details: Sequence[Detail]) -> Sequence[bool]:
        """Deliver the details, in their order; return for each whether the recipient has accepted it.

        Raises `Throttled`, `Unavailable`, `NotPermitted`: then any of them may have been delivered.
        """
        ...


def deliver_each(details: Sequence[Detail], deliver: Callable[[Detail], None], failure: str) -> list[bool]:
    """Deliver the details one by one; return for each whether the recipient has accepted it.

    Throttling ends the round. Other errors of the service are logged with `failure`, the problem in words.
    """
    accepted = list[bool]()
    for detail in details:
        try:
            deliver(detail)
        except Throttled:
            break
        except ServiceError as error:
            extra = {"job": detail.get("jobName"), "cause": str(error)}
            log.warning("%s; the next tick tries again", failure, extra=extra)
            accepted.append(False)
        else:
            accepted.append(True)
    return accepted + [False] * (len(details) - len(accepted))


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient of the events of one kind of jobs.

    Attributes:
        types: of the events that it gets.
        deliverer: delivers them.
    """

    types: frozenset[EventType]
    deliverer: Deliverer
