"""Read on behind the heads of lanes, in turn, while units stay idle that jobs there could use.

The heads of a lane may all wait for what others of it need not wait for: they are too long for the window of a training
plan or for the time until a reservation, or larger than what is free. Stores know no such reasons. So while units stay
idle, one pass a minute reads more of the lanes whose jobs could use them, and the next goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeAlias

from trainmaster.domain.capacity.read_limits import ReadLimits
from trainmaster.domain.capacity.units import Units
from trainmaster.domain.compat import UTC
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import Order

IDLE_FOR = timedelta(minutes=5)
"""Time for which units are idle, at least, before jobs are read that could use them; at most twice as long."""
READ_EVERY = timedelta(seconds=50)
"""Time from one such read to the next, at least: each tick of a minute."""
MAX_READ = 250
"""Jobs that one pass reads so, at most, which is 23 read units."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

ReadOn: TypeAlias = Callable[[str, Job], Iterator[Job]]
"""Yields the jobs of a lane behind one, given the lane's key; the job need not exist any more."""


@dataclass(slots=True)
class IdleUnits:
    """The units of each pool that stayed free throughout the last period of `IDLE_FOR`.

    Attributes:
        known_at: when the present period ends.
    """

    known_at: datetime = _LONG_AGO
    _idle: Units = field(default_factory=dict)
    _least: Units = field(default_factory=dict)

    def after(self, free: Units, now: datetime) -> Units:
        """Return the units that were free throughout the last period and are free now, and note those of this one."""
        self._least = _both(self._least, free)
        if now >= self.known_at:
            self._idle, self._least, self.known_at = self._least, free, now + IDLE_FOR
        return _both(self._idle, free)


def _both(some: Units, others: Units) -> Units:
    """Return the units that are among both."""
    return {pool: min(count, others[pool]) for pool, count in some.items() if pool in others}


@dataclass(frozen=True, slots=True)
class CutLane:
    """A lane that was not read to its end.

    Attributes:
        key: its place among lanes.
        first: its first job.
        last: the last one that was read.
    """

    key: str
    first: Job
    last: Job


class Rotation:
    """The place up to which jobs behind the heads of lanes were read, kept in memory by a store.

    Args:
        now: returns the present, UTC.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now, self._idle = now, IdleUnits()
        self._read_at, self._began_at, self._complete_since = _LONG_AGO, _LONG_AGO, _LONG_AGO
        self._place: tuple[str, Job] | None = None
        self._last_from: tuple[str, Job] | None = None
        self._last_names: frozenset[str] = frozenset()
        self._next_read: datetime | None = None

    def next_jobs(self, limits: ReadLimits, lanes: Iterable[CutLane], read_on: ReadOn) -> list[Job]:
        """Return the jobs whose turn it is, of those behind the heads of lanes, except those that keep waiting."""
        now, free = self._now(), limits.free_units()
        idle = self._idle.after(free, now)
        lanes = [lane for lane in lanes if limits.could_use(lane.first, free)] if free else []
        due = sorted((lane for lane in lanes if limits.could_use(lane.first, idle)), key=lambda lane: lane.key)
        jobs = self._read(due, read_on, limits) if due and now >= self._read_at + READ_EVERY else []
        if limits.policy.order is Order.FIFO:
            # Others may not pass a blocked job, of which the next pass knows only if it reads it as well.
            self._begin_again()
        self._next_read = (self._read_at + READ_EVERY if due else self._idle.known_at) if lanes else None
        return [job for job in jobs if not limits.keeps_waiting(job)]

    def next_read(self, since: datetime) -> datetime | None:
        """Return when jobs are read on that could use idle units; None if all of them were read since then."""
        return self._next_read if self._complete_since < since else None

    def _read(self, lanes: Sequence[CutLane], read_on: ReadOn, limits: ReadLimits) -> list[Job]:
        """Return the next jobs behind the last place; behind the last lane the turns begin again.

        If a pass started as many of the last ones as it may start, more of them could have started: it is their turn
        again.
        """
        started = sum(job.name in self._last_names for job in limits.active)
        place = self._last_from if started >= limits.policy.max_actions else self._place
        self._last_from, self._read_at = place, self._now()
        if place is None:
            self._began_at = self._read_at
        jobs = list(islice(_behind(lanes, place, read_on), MAX_READ))
        self._place, self._last_names = jobs[-1] if jobs else None, frozenset(job.name for _, job in jobs)
        if len(jobs) < MAX_READ:
            self._begin_again()
        return [job for _, job in jobs]

    def _begin_again(self) -> None:
        self._place, self._complete_since = None, self._began_at


def _behind(lanes: Iterable[CutLane], place: tuple[str, Job] | None, read_on: ReadOn) -> Iterator[tuple[str, Job]]:
    """Yield the jobs behind a place, None for the beginning, and the keys of their lanes."""
    for lane in lanes:
        if place is None or lane.key > place[0]:
            last = lane.last
        elif lane.key == place[0]:
            last = max(lane.last, place[1], key=lambda job: job.order)
        else:
            continue
        yield from ((lane.key, job) for job in read_on(lane.key, last))
