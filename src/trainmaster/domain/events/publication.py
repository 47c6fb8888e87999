"""Decide which changes are put into the outbox, and for which recipients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.domain.access.audit import AuditAction, AuditEntry
from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.events.job_events import DETAIL_VERSION, job_events, timestamp
from trainmaster.domain.events.types import NOTIFIED, Entry, EventType
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.shares.thresholds import Reached, Told
from trainmaster.domain.shares.usage import period_end, period_start

BUS, TOPIC = "bus", "topic"
"""Recipients: the event bus, and the topic of notifications."""
_MANAGER = "trainmaster"
"""Author of the manager's own changes."""
_RECORDED = {AuditAction.POOLS: EventType.POOLS, AuditAction.SETTINGS: EventType.SETTINGS}


@dataclass(frozen=True, slots=True)
class Publication:
    """The events and notifications that a deployment publishes; none by default.

    The end of a job with a callback is put into the outbox in any case.

    Attributes:
        events: types of the events that go to the event bus.
        notifies: whether there is a topic for what jobs ask to be notified of.
        kinds: types of the events that go to further recipients, by kind of job and recipient.
    """

    events: frozenset[EventType] = frozenset()
    notifies: bool = False
    kinds: Mapping[str, Mapping[str, frozenset[EventType]]] = field(default_factory=dict)

    @property
    def enabled(self) -> bool:
        """True if there is a subscription."""
        return (
            bool(self.events)
            or self.notifies
            or any(types for others in self.kinds.values() for types in others.values())
        )

    @property
    def may_tell_feasibility(self) -> bool:
        """True unless `tells_feasibility` is False for every job."""
        return self.notifies or not self.events.isdisjoint((EventType.INFEASIBLE, EventType.FEASIBLE))

    def tells_feasibility(self, job: Job) -> bool:
        """Return whether it is published that no pool can hold the job, or that one can again."""
        told = not self.events.isdisjoint((EventType.INFEASIBLE, EventType.FEASIBLE))
        return told or (self.notifies and EventType.INFEASIBLE in map(NOTIFIED.get, job.notify))

    def of_jobs(self, changes: Iterable[tuple[Job | None, Job]]) -> tuple[Entry, ...]:
        """Return the entries of these changes of jobs."""
        return tuple(
            entry
            for before, after in changes
            if self.enabled or after.callback
            for entry in self._entries(before, after)
        )

    def _entries(self, before: Job | None, after: Job) -> Iterator[Entry]:
        notified = {NOTIFIED[word] for word in after.notify if word in NOTIFIED} if self.notifies else set()
        others = self.kinds.get(after.kind, {})
        for detail in job_events(before, after):
            to = [BUS] if detail["type"] in self.events else []
            to += [TOPIC] if detail["type"] in notified else []
            to += [name for name, types in others.items() if detail["type"] in types]
            to += [after.callback] if after.callback and detail["type"] == EventType.ENDED else []
            if to:
                yield Entry(tuple(to), detail)

    def of_settings(self, version: int, events: Sequence[PoolEvent], audit: Sequence[AuditEntry]) -> tuple[Entry, ...]:
        """Return the entries of the change that made this version of pools and settings.

        A learned window of a training plan has neither pool events nor audit entries, and is no event.
        """
        found = [(_RECORDED[each.action], _recorded(each)) for each in audit if each.action in _RECORDED]
        found += [(EventType.POOLS, _made(events))] if events else []
        return tuple(
            Entry((BUS,), {"version": DETAIL_VERSION, "type": kind.value, "sequence": version, **detail})
            for kind, detail in found
            if kind in self.events
        )

    def of_thresholds(self, found: Iterable[Reached], told: Mapping[str, Told]) -> tuple[Entry, ...]:
        """Return the entries of the budget thresholds that were not told before."""
        if EventType.BUDGET not in self.events:
            return ()
        return tuple(Entry((BUS,), _threshold(each, percent)) for each in found for percent in each.untold(told))


def _recorded(entry: AuditEntry) -> dict[str, Any]:
    by = entry.principal or "unknown"
    return {"at": timestamp(entry.at), "by": by, "before": dict(entry.before), "after": dict(entry.after)}


def _made(events: Sequence[PoolEvent]) -> dict[str, Any]:
    return {
        "at": timestamp(events[0].at),
        "by": _MANAGER,
        "reason": {"message": "; ".join(sorted({event.why for event in events if event.why}))},
        "before": {f"{event.pool}.cap": event.before for event in events},
        "after": {f"{event.pool}.cap": event.after for event in events},
    }


def _threshold(found: Reached, percent: int) -> dict[str, Any]:
    budget, used = found.budget, found.used
    return {
        "version": DETAIL_VERSION,
        "type": EventType.BUDGET.value,
        "share": found.share,
        "threshold": percent,
        "at": timestamp(found.at),
        "used": {"gpuHours": round(used.gpu_seconds / 3600, 3), "dollars": round(used.dollars, 2)},
        "budget": {"gpuHours": budget.gpu_hours, "dollars": budget.dollars},
        "periodStart": timestamp(period_start(budget, found.at)),
        "periodEnd": timestamp(period_end(budget, found.at)),
    }
