"""Apply the reports of one batch of messages together: one read, then few transactions.

A batch is a shorter way to what `observe` does with each report alone. A report that is not plain, loses a race or
fails is left to it, and the jobs end up the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TypeVar

from trainmaster.domain.errors import ServiceError
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.shares.charging import books
from trainmaster.service.context import ManagerContext, commit_together, follow_up
from trainmaster.service.faults import isolate_fault
from trainmaster.service.observe import concerns_active, gives_work, named_job, report_on

log = logging.getLogger(__name__)
_T = TypeVar("_T")

MAX_CHANGES = 10
"""Jobs in one transaction: as many as a batch of a FIFO queue has messages. A conflict costs all of them a try."""
MAX_JOBS = 100
"""Jobs that one read finds."""


@dataclass(slots=True)
class _Change:
    """The change that reports make to one job.

    Attributes:
        before: the job as read.
        after: the job after these reports.
        applied: the places of these reports in the batch.
        freed: whether a pass is worthwhile after it.
    """

    before: Job
    after: Job
    applied: list[int] = field(default_factory=list)
    freed: bool = False


def observe_batch(context: ManagerContext, reports: Sequence[Observation]) -> tuple[bool, list[int]]:
    """Apply the reports that can be applied together.

    Returns whether a pass is worthwhile, and the places of the reports that are left for `observe`, in their order.
    An error is not raised, since what it concerns is left.
    """
    places: dict[str, list[int]] = {}
    for place, seen in enumerate(reports):
        places.setdefault(named_job(seen), []).append(place)
    applied: set[int] = set()
    freed = False
    if len(reports) > 1 and len(places) <= MAX_JOBS:
        for change in _each(context, _changes(context, reports, places)):
            applied.update(change.applied)
            freed = freed or change.freed
    return freed, [place for place in range(len(reports)) if place not in applied]


def _changes(
    context: ManagerContext, reports: Sequence[Observation], places: Mapping[str, Sequence[int]]
) -> list[_Change]:
    """Return the changes of all active jobs, in the order in which each job's last report came."""
    store = context.store
    found = _attempted(lambda: store.find_active(places), "a batch of events") or {}
    if any(reports[place].ends_badly for name in found for place in places[name]):
        settings = _attempted(lambda: store.settings(catalogue=False), "a batch of events")
        context = context if settings is None else replace(context, policy=settings.policy)
    changes = (
        _attempted(partial(_change, context, job, reports, places[job.name]), job.name) for job in found.values()
    )
    return sorted((one for one in changes if one is not None and one.applied), key=lambda one: one.applied[-1])


def _change(context: ManagerContext, job: Job, reports: Sequence[Observation], places: Iterable[int]) -> _Change:
    """Return what a job's reports make of it, up to the first one that has to be committed apart."""
    change = _Change(job, job)
    for place in places:
        before = change.after
        if not concerns_active(before, reports[place]):
            break
        told, after = report_on(context, before, reports[place])
        if after is not before and before is not job and not _may_be_one(job, before, after):
            break
        change.freed |= told is not None and after is not before and gives_work(before, after)
        change.after = after
        change.applied.append(place)
    return change


def _may_be_one(read: Job, between: Job, after: Job) -> bool:
    """Return whether one commit of both changes books, charges and publishes the same as two commits.

    The first must keep the attempt and its units, and each new version must be a line of history, which events count.
    """
    resizes = JobState.RESIZING in (read.state, between.state)
    keeps = read.units == between.units and not books(read, between)
    return not resizes and keeps and after.version - read.version == len(after.history) - len(read.history)


def _each(context: ManagerContext, changes: Sequence[_Change]) -> Iterator[_Change]:
    """Commit the changes, several together, and yield those whose reports are settled."""
    yield from (change for change in changes if change.after is change.before)
    rest = iter([change for change in changes if change.after is not change.before])
    while batch := list(islice(rest, MAX_CHANGES)):
        pairs = [(change.before, change.after) for change in batch]
        if _attempted(partial(commit_together, context, pairs), "a batch of events"):
            yield from (change for change in batch if _is_followed_up(context, change.after))


def _is_followed_up(context: ManagerContext, job: Job) -> bool:
    """Return whether nothing is left to do after a committed change."""

    def done() -> bool:
        follow_up(context, job)
        return True

    return _attempted(done, job.name, context.faults) is True


def _attempted(call: Callable[[], _T], name: str, faults: list[str] | None = None) -> _T | None:
    """Return the call's result; None if it failed, so that its reports are left."""
    try:
        with isolate_fault(name, faults):
            return call()
    except ServiceError as error:
        log.warning("events are left to be applied alone", extra={"job": name, "cause": str(error)})
    return None
