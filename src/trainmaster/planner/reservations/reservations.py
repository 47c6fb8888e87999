"""Reservations for blocked jobs, and who may pass them (EASY; Lifka, "The ANL/IBM SP scheduling system", 1995).

A blocked job is reserved for from the earliest time at which enough units are expected to be free. A later job may
start before it where it is expected to have ended by then, or uses only what that job leaves over. The reservations
are made anew in every pass from the expectations as they are then, so a job that outlives its own moves them openly.
It must not decide who is blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job

_Change = tuple[datetime, int]
"""A time from which so many units more (or less) of a pool are there."""


@dataclass(slots=True)
class PlannedReservation:
    """One reservation: what a blocked job will take, when that is expected, and what it leaves over at that time."""

    job: Job
    units: Units
    at: datetime
    until: datetime
    spare: dict[str, int]


@dataclass(slots=True)
class Reservations:
    """The reservations of one plan. Thrown away with it.

    Args:
        now: UTC.
        depth: blocked jobs that are reserved for, at each pool.
        running: units that are held, and until when; asked for when the first reservation is made.
    """

    now: datetime
    depth: int
    running: Callable[[], Iterable[tuple[Units, datetime]]]
    made: list[PlannedReservation] = field(default_factory=list)
    _opened: bool = False
    _pending: list[tuple[Units, datetime, int]] = field(default_factory=list)
    _changes: dict[str, list[_Change]] = field(default_factory=dict)
    _by_pool: dict[str, list[PlannedReservation]] = field(default_factory=dict)

    def any_on(self, units: Units) -> bool:
        """Whether any of these pools is reserved for somebody."""
        return bool(self.made) and any(pool in self._by_pool for pool in units)

    def reservable(self, alternatives: Iterable[Units]) -> list[Units]:
        """Those that a job may be reserved: one of their pools has fewer reservations than it may have.

        Else a job that could run in many pools would be reserved for without end, where one is never free to be had.
        """
        return [units for units in alternatives if any(self._count_on(pool) < self.depth for pool in units)]

    def reserve(
        self,
        job: Job,
        alternatives: Iterable[Units],
        duration: timedelta,
        available: Callable[[str], int],
    ) -> PlannedReservation | None:
        """Reserve the alternative that comes first; None where none is ever expected to be free.

        Args:
            job: the blocked job.
            alternatives: what it could run on.
            duration: how long it is expected to hold that.
            available: units of a pool that are free or on the way, for this job.
        """
        self._load_running()
        candidates = [
            (at, units) for units in alternatives if (at := self._earliest(units, duration, available)) is not None
        ]
        if not candidates:
            return None
        at, units = min(candidates, key=lambda each: each[0])
        spare = {pool: self._expected_free(pool, at, available) - count for pool, count in units.items()}
        reserved = PlannedReservation(job, units, at, at + duration, spare)
        self.made.append(reserved)
        for pool, count in units.items():
            self._by_pool.setdefault(pool, []).append(reserved)
            self._changes.setdefault(pool, []).extend([(at, -count), (at + duration, count)])
        return reserved

    def reserve_at(self, job: Job, units: Units, at: datetime, duration: timedelta) -> None:
        """Reserve units from a time at which they can be had for certain, with nothing left over until then.

        For a job that only waits for others' protection to end: whoever started meanwhile would be protected anew.
        """
        reserved = PlannedReservation(job, units, at, at + duration, dict.fromkeys(units, 0))
        self.made.append(reserved)
        for pool in units:
            self._by_pool.setdefault(pool, []).append(reserved)

    def _count_on(self, pool: str) -> int:
        return len(self._by_pool.get(pool, ()))

    def conflict(self, units: Units, end: datetime, only: str | None = None) -> tuple[str, PlannedReservation] | None:
        """Whom a job would delay if it held these units from now until then, and where; None where nobody.

        `only`: the share to whose reservations that is confined.
        """
        for pool, count in units.items():
            for reserved in self._by_pool.get(pool, ()):
                binds = only is None or only == reserved.job.share
                if binds and end > reserved.at and count > reserved.spare[pool]:
                    return pool, reserved
        return None

    def add_running(self, units: Units, end: datetime) -> None:
        """A job starts on these units and is expected to end then."""
        self._pending.append((units, end, 1))
        for pool, count in units.items():
            for reserved in self._by_pool.get(pool, ()):
                if end > reserved.at:
                    reserved.spare[pool] -= count

    def remove_running(self, units: Units, end: datetime) -> None:
        """A job that was to hold these units until then steps aside: what it frees is on the way already."""
        self._pending.append((units, end, -1))

    def _load_running(self) -> None:
        """Take over what is held, and what has been decided since the last reservation."""
        if not self._opened:
            self._opened = True
            self._pending += [(units, end, 1) for units, end in self.running()]
        for units, end, sign in self._pending:
            for pool, count in units.items():
                self._changes.setdefault(pool, []).append((end, sign * count))
        self._pending.clear()

    def _expected_free(self, pool: str, at: datetime, available: Callable[[str], int]) -> int:
        """Units of a pool that are expected to be free then."""
        return available(pool) + sum(count for when, count in self._changes.get(pool, ()) if when <= at)

    def _earliest(self, units: Units, duration: timedelta, available: Callable[[str], int]) -> datetime | None:
        """The first time from which all units are expected to be free for as long as the job lasts."""
        at: datetime | None = self.now
        while at is not None:
            later = [self._earliest_of(pool, count, at, duration, available) for pool, count in units.items()]
            if None in later:
                return None
            latest = max(when for when in later if when is not None)
            if latest == at:
                return at
            at = latest
        return None

    def _earliest_of(
        self, pool: str, count: int, since: datetime, duration: timedelta, available: Callable[[str], int]
    ) -> datetime | None:
        """The same for one pool: a walk over its steps that starts anew behind every dip."""
        free = available(pool)
        candidates = since if free >= count else None
        for when, steps in groupby(sorted(self._changes.get(pool, ())), key=itemgetter(0)):
            if candidates is not None and when >= candidates + duration:
                return candidates
            free += sum(change for _, change in steps)
            if free < count:
                candidates = None
            elif candidates is None:
                candidates = max(when, since)
        return candidates
