"""An approximate simulation of a long queue, which takes far less time than the planner.

It backfills like the planner: a reservation for the first blocked job, which the next few jobs may pass without
delaying it, within the limits of groups, users and shares. No job is preempted or shrunk. Jobs that wait for a budget
or a training plan are left out.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from trainmaster.domain.capacity.units import Kind, Units, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.forecast.bounds import Bounds
from trainmaster.planner.forecast.simulation import QueueSimulation
from trainmaster.planner.orders import order_of

MAX_PASSING = 12
"""Jobs behind the first blocked job that may pass it."""
_End = tuple[datetime, int, Units, Job]
_Pools = tuple[str, ...]


class ApproximateStart(NamedTuple):
    """A job's start, the units that it takes, and when it releases them."""

    job: Job
    at: datetime
    units: Units
    until: datetime


def approximate_starts(
    simulation: QueueSimulation, ordered: Iterable[Job], wanted: frozenset[str], until: datetime
) -> dict[str, ApproximateStart]:
    """Return how wanted jobs would start as the simulation goes on, as far as that can be predicted.

    Args:
        simulation: as far as the planner has brought it.
        ordered: its waiting jobs in the order in which they are considered.
        wanted: names of waiting jobs.
        until: the end of the simulation.
    """
    snapshot = simulation.snapshot
    simulated = ApproximateSimulation(
        simulation.moment,
        _free(snapshot),
        simulation.run_time,
        Bounds.of(snapshot),
        max_passing=0 if order_of(snapshot.policy).strict else MAX_PASSING,
    )
    simulated.held = sorted(
        (simulation.ends[job.name], number, job.units, job) for number, job in enumerate(snapshot.active)
    )
    closed = frozenset(name for name, pool in snapshot.pools.items() if pool.draining)
    for place, job in enumerate(_without_closed(item, closed) for item in ordered):
        if _predictable(job, snapshot):
            simulated.add(job, place)
    return simulated.run(wanted, until)


def _without_closed(job: Job, closed: frozenset[str]) -> Job:
    """Return the job with only those alternatives that need no closed pool."""
    if closed.isdisjoint(job.demand.pools):
        return job
    alternatives = tuple(units for units in job.demand.alternatives if closed.isdisjoint(units))
    return replace(job, demand=replace(job.demand, alternatives=alternatives))


def _predictable(job: Job, snapshot: Snapshot) -> bool:
    """Return True if the job would fit if nothing else ran, and waits for no time that a rule sets."""
    share = snapshot.policy.shares.get(job.share)
    plans = any(snapshot.pools[name].kind is Kind.TRAINING_PLAN for name in job.demand.pools if name in snapshot.pools)
    if plans or (share is not None and share.budget is not None):
        return False
    caps = {name: pool.cap - snapshot.external.get(name, 0) for name, pool in snapshot.pools.items()}
    return any(all(caps.get(pool, 0) >= n for pool, n in units.items()) for units in job.demand.alternatives)


def _free(snapshot: Snapshot) -> dict[str, int]:
    warm = (pool.units for pool in counting(snapshot.warm, snapshot.active))
    used = total([snapshot.external, *warm, *(job.units for job in snapshot.active)])
    return {name: pool.cap - used.get(name, 0) for name, pool in snapshot.pools.items()}


@dataclass(slots=True)
class _EqualJobs:
    """Jobs with an equal bounds key in order, with their places among all jobs."""

    jobs: list[tuple[int, Job]] = field(default_factory=list)


@dataclass(slots=True)
class _Queue:
    """The jobs of one set of pools, and the reservation of the first blocked one."""

    by_bounds: dict[object, _EqualJobs] = field(default_factory=dict)
    blocked: str | None = None
    until: datetime | None = None
    spare: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ApproximateSimulation:
    """The state of the approximate simulation."""

    moment: datetime
    free: dict[str, int]
    run_time: Callable[[Job], timedelta]
    bounds: Bounds
    max_passing: int
    held: list[_End] = field(default_factory=list)
    queues: dict[_Pools, _Queue] = field(default_factory=dict)
    starts: dict[str, ApproximateStart] = field(default_factory=dict)

    def add(self, job: Job, place: int) -> None:
        """Add a waiting job with its place among all jobs."""
        queue = self.queues.setdefault(job.demand.pools, _Queue())
        queue.by_bounds.setdefault(self.bounds.bounds_key(job), _EqualJobs()).jobs.append((place, job))

    def run(self, wanted: frozenset[str], until: datetime) -> dict[str, ApproximateStart]:
        """Return the starts of wanted jobs, going from end to end until all have started or time is up."""
        for queue in self.queues.values():
            self._start_what_fits(queue)
        while self.held and self.held[0][0] <= until and not wanted <= self.starts.keys():
            freed = self._end_due_jobs()
            for pools, queue in self.queues.items():
                if not freed.isdisjoint(pools):
                    self._start_what_fits(queue)
        return {name: start for name, start in self.starts.items() if name in wanted}

    def _end_due_jobs(self) -> set[str]:
        """End the next job and all that end at the same time; return the pools that have more units then."""
        self.moment = max(self.held[0][0], self.moment)
        count = sum(1 for _ in self._ends_until(self.moment))
        ended, self.held = self.held[:count], self.held[count:]
        for _, _, units, job in ended:
            for pool, number in units.items():
                self.free[pool] = self.free.get(pool, 0) + number
            self.bounds.release(job, units)
        return {pool for _, _, units, _ in ended for pool in units}

    def _ends_until(self, moment: datetime) -> Iterator[_End]:
        for item in self.held:
            if item[0] > moment:
                return
            yield item

    def _start_what_fits(self, queue: _Queue) -> None:
        """Start the first jobs while they fit, then those behind that do not delay the first blocked one."""
        turns = [(equals.jobs[0][0], 0, id(equals), equals) for equals in queue.by_bounds.values() if equals.jobs]
        heapq.heapify(turns)
        blocked = 0
        while turns and blocked <= self.max_passing:
            _, index, key, equals = heapq.heappop(turns)
            job = equals.jobs[index][1]
            if self.bounds.refuses(job):
                continue
            units = next((units for units in job.demand.alternatives if self._fits(job, units)), None)
            if units is not None and (not blocked or self._passes(queue, job, units)):
                self._start(job, units)
                del equals.jobs[index]
            else:
                if not blocked:
                    self._reserve(queue, job)
                blocked += 1
                index += 1
            if index < len(equals.jobs):
                heapq.heappush(turns, (equals.jobs[index][0], index, key, equals))

    def _fits(self, job: Job, units: Units) -> bool:
        for pool, count in units.items():
            if self.free.get(pool, 0) - self.bounds.withheld(job, pool) < count:
                return False
        return self.bounds.allows(job, units)

    def _start(self, job: Job, units: Units) -> None:
        until = self.moment + self.run_time(job)
        self.starts[job.name] = ApproximateStart(job, self.moment, units, until)
        for pool, count in units.items():
            self.free[pool] -= count
        self.bounds.take(job, units)
        insort(self.held, (until, -len(self.starts), units, job))

    def _reserve(self, queue: _Queue, job: Job) -> None:
        """Compute when the first blocked job will fit, and what it leaves over then; once for each job."""
        if queue.blocked == job.name and (queue.until is None or queue.until > self.moment):
            return
        units, free = job.demand.alternatives[0], dict(self.free)
        queue.blocked, queue.until = job.name, None
        for end, _, freed, _ in self.held:
            for pool, count in freed.items():
                free[pool] = free.get(pool, 0) + count
            if all(free.get(pool, 0) >= count for pool, count in units.items()):
                queue.until = end
                break
        queue.spare = {pool: free.get(pool, 0) - count for pool, count in units.items()}

    def _passes(self, queue: _Queue, job: Job, units: Units) -> bool:
        if queue.until is None or self.moment + self.run_time(job) <= queue.until:
            return True
        if any(count > queue.spare.get(pool, count) for pool, count in units.items()):
            return False
        for pool, count in units.items():
            if pool in queue.spare:
                queue.spare[pool] -= count
        return True
