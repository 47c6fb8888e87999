"""The order of a listing of jobs, its filters, and the places at which callers continue it.

A listing has four parts: active, waiting, held and ended jobs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any, TypeAlias

from trainmaster.domain import paging
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, Job, JobState
from trainmaster.domain.jobs.names import MAX_NAME
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.times import NEVER


class Part(StrEnum):
    """The parts of a listing, in their order."""

    ACTIVE = "active"
    WAITING = "waiting"
    HELD = "held"
    ENDED = "ended"


STATES = {
    Part.ACTIVE: ACTIVE,
    Part.WAITING: WAITING,
    Part.HELD: frozenset({JobState.HELD}),
    Part.ENDED: ENDED,
}
"""The states that each part lists."""

QueuePlace: TypeAlias = tuple[int, datetime, str]
"""`Job.order`: the order of the active and of the waiting part."""
EndedPlace: TypeAlias = tuple[datetime, str]
"""End time of a job, and its name: the order of the ended part, newest first."""
HeldPlace: TypeAlias = tuple[datetime, str]
"""The time at which a held job is due, `NEVER` if more than a time holds it, and its name."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place of the last examined job; the beginning of the part if all are None.

    Attributes:
        queue: set in the active and the waiting part.
        held: set in the held part.
        ended: set in the ended part.
    """

    part: Part = Part.ACTIVE
    queue: QueuePlace | None = None
    held: HeldPlace | None = None
    ended: EndedPlace | None = None

    @classmethod
    def behind(cls, job: Job) -> Cursor:
        """Return the cursor that continues after this job."""
        if job.state in ENDED:
            return cls(Part.ENDED, ended=ended_place(job))
        if job.state is JobState.HELD:
            return cls(Part.HELD, held=held_place(job))
        return cls(Part.ACTIVE if job.state in ACTIVE else Part.WAITING, queue=job.order)

    def text(self) -> str:
        """Return the cursor as opaque text for a URL."""
        place: list[Any] = [self.part.value]
        if self.queue is not None:
            place += [self.queue[0], self.queue[1].isoformat(), self.queue[2]]
        elif self.held is not None:
            due, name = self.held
            place += [name] if due == NEVER else [due.isoformat(), name]
        elif self.ended is not None:
            place += [self.ended[0].isoformat(), self.ended[1]]
        return paging.cursor_text(place)

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Return the cursor of a caller's text; the beginning if there is none. Raises `InvalidRequest`."""
        return cls() if text is None else paging.read_cursor(text, _read)


def ended_place(job: Job) -> EndedPlace:
    """Return the place of an ended job in its part of the listing."""
    return (job.ended_at or job.entry_time, job.name)


def held_place(job: Job) -> HeldPlace:
    """Return the place of a held job: jobs that only a time holds come first, by that time."""
    only_time = job.held_by is None and not job.after
    return (job.not_before if only_time and job.not_before is not None else NEVER, job.name)


def parts_from(first: Part, states: Collection[JobState]) -> Iterator[Part]:
    """Yield the parts from this one on that may contain jobs in these states; an empty set means all."""
    order = list(Part)
    for part in order[order.index(first) :]:
        if not states or not STATES[part].isdisjoint(states):
            yield part


def page_of(jobs: Iterable[Job], which: Filter, limit: int) -> tuple[tuple[Job, ...], str | None]:
    """Return a page of matching jobs and the cursor that continues after the last examined one; None at the end."""
    found, last = paging.page_of(takewhile(which.may_follow, jobs), which.matches, limit)
    return found, None if last is None else Cursor.behind(last).text()


def newest_of_each(jobs: Iterable[Job]) -> Collection[Job]:
    """Return each job once, in its newest version: it may have moved between two reads."""
    newest: dict[str, Job] = {}
    for job in jobs:
        if job.name not in newest or newest[job.name].version < job.version:
            newest[job.name] = job
    return newest.values()


def _read(place: list[Any]) -> Cursor:
    part, values = Part(place[0]), place[1:]
    if not values:
        return Cursor(part)
    if part is Part.HELD:
        *due, name = values
        return Cursor(part, held=(paging.read_moment(*due) if due else NEVER, _name(name)))
    if part is Part.ENDED:
        moment, name = values
        return Cursor(part, ended=(paging.read_moment(moment), _name(name)))
    rank, moment, name = values
    return Cursor(part, queue=(_rank(rank), paging.read_moment(moment), _name(name)))


def _rank(value: Any) -> int:
    if type(value) is not int or abs(value) > MAX_PRIORITY:
        raise ValueError("not a priority")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME:
        raise ValueError("not a name")
    value.encode()  # Lone surrogates are valid JSON, but no key of a table can hold them.
    return value


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of a listing.

    Attributes:
        states: an empty set means all.
        pool: only jobs that can run there. Jobs that request resources match if they name it, run there, or `offers`
            covers them.
        offers: resources of an instance of the pool.
        prefix: only jobs whose names begin so.
        kind: only jobs of this kind.
        submitted_by: only jobs that this principal submitted.
        since: only jobs that entered the queue at this time or later.
        due: only jobs that a start time alone holds, and that are due by then, the earliest first.
        parent: only held jobs that run after the job of this name.
        ended_since: only jobs that ended at this time or later.
    """

    states: frozenset[JobState] = frozenset()
    share: str | None = None
    pool: str | None = None
    submitted_by: str | None = None
    since: datetime | None = None
    due: datetime | None = None
    parent: str | None = None
    ended_since: datetime | None = None
    offers: InstanceType | None = None
    prefix: str = ""
    kind: str | None = None

    @property
    def within(self) -> frozenset[JobState]:
        """The states in which jobs can match; an empty set means all."""
        if self.ended_since is not None:
            return self.states & ENDED or ENDED
        return self.states if self.due is None and self.parent is None else frozenset({JobState.HELD})

    def matches(self, job: Job) -> bool:
        """Return whether the job matches."""
        in_state = not self.states or job.state in self.states
        if self.ended_since is not None and (job.ended_at is None or job.ended_at < self.ended_since):
            return False
        if not job.name.startswith(self.prefix):
            return False
        return in_state and self._matches_submission(job) and self.reaches(job) and self._matches_held(job)

    def may_follow(self, job: Job) -> bool:
        """Return False if neither the job nor any behind it in the listing matches.

        Ended jobs come last, newest first, and a job ends after it has entered the queue.
        """
        earliest = max((time for time in (self.since, self.ended_since) if time is not None), default=None)
        return earliest is None or job.state not in ENDED or ended_place(job)[0] >= earliest

    def reaches(self, job: Job) -> bool:
        """Return whether kind, share and pool match, which is equal for all jobs of a lane."""
        demand = job.demand
        if self.share not in (None, job.share) or self.kind not in (None, job.kind):
            return False
        if self.pool is None or demand.resources is None:
            return self.pool in (None, *demand.pools)
        # The pools that a job by resources could use when it was stored may differ from those in force.
        named = (units for units in (*demand.alternatives[: demand.listed], job.units))
        covered = self.offers is not None and demand.resources.covered_by(self.offers)
        return covered or any(self.pool in units for units in named)

    def _matches_submission(self, job: Job) -> bool:
        return self.submitted_by in (None, job.submitted_by) and (self.since is None or job.entry_time >= self.since)

    def _matches_held(self, job: Job) -> bool:
        if self.due is None and self.parent is None:
            return True
        is_due = self.due is None or held_place(job)[0] <= self.due
        return job.state is JobState.HELD and is_due and self.parent in (None, *job.after)
