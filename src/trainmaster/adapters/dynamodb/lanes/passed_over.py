"""Look for jobs behind those that cannot start now, without reading thousands of the same rows in every pass.

The first walk through a lane reads it and notes the stretches that it passes over. While all of their jobs keep waiting
(`ReadLimits.keeps_waiting`), later walks jump over them. They read each again after a minute, since a job of higher
priority may have joined it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias

from trainmaster.adapters.dynamodb.lanes.heads import Lane, rest_of_lane
from trainmaster.adapters.dynamodb.reading import ReadJobs
from trainmaster.adapters.dynamodb.rows import lane_end, waiting_key
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.capacity.read_limits import ReadLimits
from trainmaster.domain.capacity.refusals import kind_of
from trainmaster.domain.jobs.job import Job

MAX_ROWS_READ = 10_000
"""Rows of a lane that one walk reads for the first time, at most, which is 900 read units; the next one goes on there.

As many again may be read because what is known of them is old.
"""
MAX_STRETCH = 250
"""Rows of a stretch, at most, which is 23 read units: the least that is read again at a time."""
KNOWN_FOR = timedelta(minutes=1)
"""Time for which a walk relies on what an earlier one read; longer where too many rows would have to be read again."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighboring rows of a lane whose jobs were passed over.

    Attributes:
        after: sort key of the row before them.
        until: sort key of the last one.
        jobs: one of each kind among them; those of a kind keep waiting for the same time.
        rows: their number.
        read_at: when they were read.
    """

    after: str
    until: str
    jobs: tuple[Job, ...]
    rows: int
    read_at: datetime


class PassedOver:
    """The known stretches of all lanes, kept in memory by a store.

    Args:
        table: the table.
        now: returns the present, UTC.
        max_rows_read, max_stretch: see the constants.
    """

    def __init__(
        self,
        table: Table,
        now: Callable[[], datetime],
        *,
        max_rows_read: int = MAX_ROWS_READ,
        max_stretch: int = MAX_STRETCH,
    ) -> None:
        self._table, self._now = table, now
        self._sizes = (max_rows_read, max_stretch)
        self._known: Mapping[str, Sequence[Stretch]] = {}

    def read_past(
        self, lanes: Sequence[Lane], limits: ReadLimits, *, consistent: bool, jobs_of: ReadJobs
    ) -> list[Lane]:
        """Return the lanes with jobs from behind those that keep waiting (`ReadLimits.heads`)."""
        known = {lane.key: self._known.get(lane.key, ()) for lane in lanes if lane.cut}

        def read(after: str, until: str, size: int) -> Iterator[Job]:
            return rest_of_lane(self._table, after, until, size, consistent=consistent, jobs_of=jobs_of)

        def deeper(lane: Lane) -> Lane:
            walk = _Walk(lane, self._known.get(lane.key, ()), limits.keeps_waiting, read, self._now(), *self._sizes)
            jobs, more = limits.heads(chain(lane.jobs, walk), len(lane.jobs), walk.pass_over)
            known[lane.key] = walk.stretches()
            return Lane(lane.key, jobs, more or walk.jumped)

        found = [
            deeper(lane) if lane.cut and limits.may_pass_over(lane.jobs, len(lane.jobs)) else lane for lane in lanes
        ]
        self._known = known
        return found


@dataclass(slots=True)
class _Walk:
    """One walk through a lane from behind its first jobs: yields its jobs, but none of known stretches.

    Attributes:
        lane: the lane, with its first jobs.
        known: its stretches as earlier walks left them, in order.
        keeps_waiting: whether a job cannot start now.
        read: yields the jobs after a sort key up to another; its first page has so many rows.
        now: the present, UTC.
        room: rows that it may still read.
        max_stretch: rows of a stretch.
        jumped: whether it jumped over any.
    """

    lane: Lane
    known: Sequence[Stretch]
    keeps_waiting: Callable[[Job], bool]
    read: Callable[[str, str, int], Iterator[Job]]
    now: datetime
    room: int
    max_stretch: int
    jumped: bool = False
    _place: str = ""
    _again: frozenset[str] = frozenset()
    _passed: Job | None = None
    _open: list[Job] = field(default_factory=list)
    _found: list[Stretch] = field(default_factory=list)
    _waits: dict[_Kind, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        again = list(self._due_again())
        self._place, self._again = self.lane.last, frozenset(stretch.after for stretch in again)
        self.room += sum(stretch.rows for stretch in again)

    def __iter__(self) -> Iterator[Job]:
        for stretch in self.known:
            if stretch.until <= self._place or not self._holds(stretch):
                continue
            if stretch.after > self._place:
                yield from self._read_until(stretch.after)
            self._jump(stretch)
        yield from self._read_until(lane_end(self.lane.key))

    def pass_over(self, job: Job) -> None:
        """Note that the job that was yielded last is passed over."""
        self._passed = job

    def stretches(self) -> Sequence[Stretch]:
        """Return what is known of the lane after this walk."""
        self._close()
        return [*self._found, *(stretch for stretch in self.known if stretch.until > self._place)]

    def _due_again(self) -> Iterator[Stretch]:
        """Yield the stretches to read again: those known for longest, with no more rows than a walk may read."""
        rows = 0
        for stretch in sorted((one for one in self.known if not self._is_fresh(one)), key=lambda one: one.read_at):
            rows += stretch.rows
            if rows > self.room:
                return
            yield stretch

    def _is_fresh(self, stretch: Stretch) -> bool:
        return self.now - stretch.read_at <= KNOWN_FOR

    def _holds(self, stretch: Stretch) -> bool:
        """Return whether none of its jobs can start now, as far as is known."""
        return stretch.after not in self._again and all(map(self._still_waits, stretch.jobs))

    def _still_waits(self, job: Job) -> bool:
        kind = _kind(job)
        if kind not in self._waits:
            self._waits[kind] = self.keeps_waiting(job)
        return self._waits[kind]

    def _read_until(self, end: str) -> Iterator[Job]:
        for job in self.read(self._place, end, len(self.lane.jobs)) if self.room else ():
            self.room -= 1
            yield job
            self._note(job)
            if not self.room:
                return

    def _note(self, job: Job) -> None:
        """Add the job to the open stretch if it was passed over; else begin a new one behind it."""
        if self._passed is not job:
            self._close()
            self._place = waiting_key(self.lane.key, job.order)
            return
        self._open.append(job)
        if len(self._open) == self.max_stretch:
            self._close()

    def _jump(self, stretch: Stretch) -> None:
        self._close()
        self._found.append(stretch)
        self._place, self.jumped = stretch.until, True

    def _close(self) -> None:
        """End the open stretch, if there is one; the next begins behind it."""
        if self._open:
            until = waiting_key(self.lane.key, self._open[-1].order)
            kinds = tuple({_kind(job): job for job in self._open}.values())
            self._found.append(Stretch(self._place, until, kinds, len(self._open), self.now))
            self._place, self._open = until, []


_Kind: TypeAlias = tuple[str, str, datetime | None]


def _kind(job: Job) -> _Kind:
    """Return what decides whether a job keeps waiting."""
    return (kind_of(job), job.demand.equivalence_key, job.retry_at)
