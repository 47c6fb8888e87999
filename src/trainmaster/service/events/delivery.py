"""Deliver the outbox, at least once: an entry leaves it only after each of its recipients has accepted it.

The manager delivers after its passes; what a failure leaves, the next invocation delivers again, each minute's tick at
the latest. Two managers at once may deliver an entry twice, so details carry a sequence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.domain.errors import JobNotFound, ServiceError, UnreadableRow
from trainmaster.domain.events.types import OutboxRow
from trainmaster.domain.requests.tags import tag_values
from trainmaster.ports.events import Deliverer, Detail
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)
PAGE = 50
"""Rows that are read at a time."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """The outbox and its recipients.

    Attributes:
        deliverers: by recipient; entries to others stay, since a newer release may have written them.
        queue: the queue's name.
    """

    store: Store
    deliverers: Mapping[str, Deliverer]
    queue: str

    def deliver(self, may_go_on: Callable[[], bool]) -> int:
        """Deliver entries, oldest first, while there are any and `may_go_on` is true; return the number that failed.

        Raises `Throttled`, `Unavailable`, `NotPermitted` if the store does; what is left stays in the outbox.
        """
        failed, after, more = 0, "", True
        while more and may_go_on():
            rows = self.store.outbox(limit=PAGE, after=after)
            failed += self._deliver(rows)
            more = len(rows) == PAGE
            after = rows[-1].key if rows else after
        return failed

    def _deliver(self, rows: Sequence[OutboxRow]) -> int:
        """Deliver these rows, and return the number of entries that are left of them."""
        entries = [entry for row in rows for entry in row.entries]
        details = self._details([entry.detail for entry in entries])
        left = [list(entry.to) for entry in entries]
        for name in sorted({name for names in left for name in names}):
            places = [place for place, names in enumerate(left) if name in names]
            accepted = self._accepted(name, [details[place] for place in places])
            for place in (place for place, done in zip(places, accepted, strict=True) if done):
                left[place].remove(name)
        names = iter(left)
        for row in rows:
            kept = tuple(replace(entry, to=tuple(next(names))) for entry in row.entries)
            if kept != row.entries:
                self.store.settle_outbox(row, [entry for entry in kept if entry.to])
        return sum(bool(each) for each in left)

    def _accepted(self, name: str, details: Sequence[Detail]) -> Sequence[bool]:
        try:
            if name in self.deliverers:
                return self.deliverers[name].deliver(details)
        except ServiceError as error:
            log.warning("events are not delivered; the next tick tries again", extra={"to": name, "cause": str(error)})
        return [False] * len(details)

    def _details(self, details: Sequence[Detail]) -> list[Detail]:
        """Return the details with the queue, and with their jobs' tags, which only the requests have."""
        jobs = dict.fromkeys(str(detail["jobName"]) for detail in details if "jobName" in detail)
        tags = {name: self._tags(name) for name in jobs}
        return [{**detail, "queue": self.queue, **tags.get(detail.get("jobName", ""), {})} for detail in details]

    def _tags(self, name: str) -> Mapping[str, Any]:
        """Return the member `tags` of a job's events; none for a job that was purged or cannot be read."""
        try:
            return {"tags": tag_values(self.store.request_of(name))}
        except (JobNotFound, UnreadableRow) as error:
            log.warning("an event has no tags", extra={"job": name, "cause": str(error)})
            return {}
