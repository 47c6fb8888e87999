"""Reservations for blocked jobs, and the rule for passing them (EASY; Lifka, "The ANL/IBM SP scheduling system", 1995).

A reservation starts at the earliest time at which enough units are expected to be free. A later job may start before it
if it is expected to end by then, or if it uses only units that the reservation leaves over. Every pass makes its
reservations again from current expectations, so a job that runs longer than expected moves them visibly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job

_Change = tuple[datetime, int]
"""A time from which a pool has this many units more (or less)."""


@dataclass(slots=True)
class PlannedReservation:
    """Units that a blocked job will take, and what it leaves over at that time.

    Attributes:
        job: the blocked job.
        units: what it will take.
        at: from when other jobs may not hold the units.
        until: when the job is expected to end.
        spare: units left over at that time, by pool.
        expected: when the units are expected to be free for the job; None if another job has to go first.
    """

    job: Job
    units: Units
    at: datetime
    until: datetime
    spare: dict[str, int]
    expected: datetime | None


@dataclass(slots=True)
class Reservations:
    """The reservations of one plan.

    Attributes:
        now: UTC.
        depth: blocked jobs with a reservation in each pool.
        running: returns until when units of a pool are held, and how many; called at the pool's first reservation.
        made: the reservations, in the order in which they were made.
    """

    now: datetime
    depth: int
    running: Callable[[str], Iterable[_Change]]
    made: list[PlannedReservation] = field(default_factory=list)
    _loaded: set[str] = field(default_factory=set)
    _pending: list[tuple[Units, datetime, int]] = field(default_factory=list)
    _changes: defaultdict[str, list[_Change]] = field(default_factory=lambda: defaultdict(list))
    _by_pool: dict[str, list[PlannedReservation]] = field(default_factory=dict)

    def any_on(self, units: Units) -> bool:
        """Return True if any of these pools has a reservation."""
        return not self._by_pool.keys().isdisjoint(units)

    def reservable(self, alternatives: Iterable[Units]) -> list[Units]:
        """Return the alternatives with a pool that has fewer reservations than it may have.

        Without this bound, a job that could run in many pools would get any number of reservations if one pool never
        frees.
        """
        return [units for units in alternatives if self._has_room(units)]

    def reserve(
        self,
        job: Job,
        alternatives: Iterable[Units],
        duration: timedelta,
        available: Callable[[str], int],
        since: datetime | None = None,
    ) -> PlannedReservation | None:
        """Reserve the alternative that is free first; return None if none is ever expected to be free.

        Args:
            job: the blocked job.
            alternatives: what it could run on.
            duration: how long it is expected to hold the units.
            available: returns the units of a pool that are free or releasing, for this job.
            since: the time before which it cannot start; None for now.
        """
        found = self.first(alternatives, duration, available, since)
        if found is None:
            return None
        at, units = found
        spare = {pool: self._expected_free(pool, at, available) - count for pool, count in units.items()}
        reserved = PlannedReservation(job, units, at, at + duration, spare, at)
        self._add(reserved)
        return reserved

    def reserve_first(
        self, alternatives: Iterable[Units], duration: timedelta, available: Callable[[str], int]
    ) -> datetime | None:
        """Count the alternative that is free first as held from then on; return from when, None if it is never free.

        For a job that others may not pass anyway. The arguments are those of `reserve`.
        """
        found = self.first(alternatives, duration, available)
        if found is None:
            return None
        self._hold(found[1], found[0], found[0] + duration)
        return found[0]

    def _add(self, reserved: PlannedReservation) -> None:
        self.made.append(reserved)
        for pool in reserved.units:
            self._by_pool.setdefault(pool, []).append(reserved)
        self._hold(reserved.units, reserved.at, reserved.until)

    def _hold(self, units: Units, at: datetime, until: datetime) -> None:
        for pool, count in units.items():
            self._changes[pool].extend([(at, -count), (until, count)])

    def reserve_at(self, job: Job, units: Units, at: datetime, duration: timedelta) -> None:
        """Reserve units from a time at which the job can certainly have them, with nothing left over before.

        For a job that waits only for the protection of others to end: a job started meanwhile would be protected again.
        """
        self._add(PlannedReservation(job, units, at, at + duration, dict.fromkeys(units, 0), at))

    def first(
        self,
        alternatives: Iterable[Units],
        duration: timedelta,
        available: Callable[[str], int],
        since: datetime | None = None,
    ) -> tuple[datetime, Units] | None:
        """Return from when which alternative is expected to be free first; None if none ever is.

        The arguments are those of `reserve`.
        """
        options, begin = list(alternatives), max(self.now, since or self.now)
        self._load_running(pool for units in options for pool in units)
        candidates = [
            (at, units) for units in options if (at := self._earliest(units, begin, duration, available)) is not None
        ]
        return min(candidates, key=lambda candidate: candidate[0], default=None)

    def _has_room(self, units: Units) -> bool:
        for pool in units:  # noqa: SIM110 -- a hot path, where a generator doubles the time
            if len(self._by_pool.get(pool, ())) < self.depth:
                return True
        return False

    def conflict(self, units: Units, end: datetime, only: str | None = None) -> tuple[str, PlannedReservation] | None:
        """Return the pool and the reservation that a job would delay if it held these units until `end`; None if none.

        Args:
            units: what the job would hold.
            end: when it would end.
            only: the share whose reservations count; None for all.
        """
        for pool, count in units.items():
            for reserved in self._by_pool.get(pool, ()):
                binds = only is None or only == reserved.job.share
                if binds and end > reserved.at and count > reserved.spare[pool]:
                    return pool, reserved
        return None

    def add_running(self, units: Units, end: datetime) -> None:
        """Count units as held until a time."""
        self._pending.append((units, end, 1))
        for pool, count in units.items():
            for reserved in self._by_pool.get(pool, ()):
                if end > reserved.at:
                    reserved.spare[pool] -= count

    def remove_running(self, units: Units, end: datetime) -> None:
        """Remove units that would have been held until a time; a preempted job's units count as releasing already."""
        self._pending.append((units, end, -1))

    def _load_running(self, pools: Iterable[str]) -> None:
        """Apply what is held of these pools, and all changes since the last reservation."""
        changes = self._changes
        for pool in pools:
            if pool not in self._loaded:
                self._loaded.add(pool)
                changes[pool].extend(self.running(pool))
        for units, end, sign in self._pending:
            for pool, count in units.items():
                changes[pool].append((end, sign * count))
        self._pending.clear()

    def _expected_free(self, pool: str, at: datetime, available: Callable[[str], int]) -> int:
        """Return the units of a pool that are expected to be free at a time."""
        return available(pool) + sum(count for when, count in self._changes.get(pool, ()) if when <= at)

    def _earliest(
        self, units: Units, since: datetime, duration: timedelta, available: Callable[[str], int]
    ) -> datetime | None:
        """Return the first time from which all units are expected to be free for the whole duration."""
        at: datetime | None = since
        if len(units) == 1:
            pool, count = next(iter(units.items()))
            return self._earliest_of(pool, count, since, duration, available)
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
        """Return the same for one pool: walk over its changes, and start again after every dip."""
        free, changes = available(pool), self._changes.get(pool, [])
        candidates = since if free >= count else None
        # In place, since the next reservation of the pool finds nearly all of them sorted.
        changes.sort()
        until = since + duration
        for place, (when, change) in enumerate(changes, 1):
            if candidates is not None and when >= until:
                return candidates
            free += change
            if place < len(changes) and changes[place][0] == when:
                continue
            if free < count:
                candidates = None
            elif candidates is None:
                candidates = max(when, since)
                until = candidates + duration
        return candidates
