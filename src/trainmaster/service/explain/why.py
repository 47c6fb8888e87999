"""The whole story of one waiting job: who holds what it needs and until when, what is kept for it, what would help.

Every advice has been tried: the planner was asked about the queue as it would be then. It must not store or change
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.capacity.units import Demand, Pool, in_settings
from trainmaster.domain.jobs.job import PRIORITY_LIMIT, Job
from trainmaster.domain.plan import Plan, Reservation, Snapshot
from trainmaster.domain.reasons.capacity import (
    Behind,
    Infeasible,
    Preempts,
    PreemptsLater,
    Protected,
    ReservedForOther,
    Shrinks,
    WaitsForCapacity,
    WaitsForRelease,
)
from trainmaster.domain.reasons.reason import Reason
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.schedule import schedule
from trainmaster.service.capacity.pool_use import pool_usage
from trainmaster.service.explain.explain import next_pass_rng, with_jobs

MAX_HOLDERS = 10
"""Jobs in the way that are told by name, those first that are expected to end first."""
MAX_TRIES = 6
"""Priorities that are tried, and other pools."""
_PRIORITY_HELPS = WaitsForCapacity | ReservedForOther | Behind
_STARTS = "it starts with the next pass"
_WAITS = "it is infeasible no more"
_SIZE_HELPS = _PRIORITY_HELPS | PreemptsLater | Protected | WaitsForRelease | Preempts | Shrinks


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that holds units that the waiting one could use.

    Attributes:
        until: when it is expected to end.
        overdue: whether it has run for longer than was expected of it.
        stopping: whether it is on its way out.
        giving_back: how many of these it gives back and runs on.
    """

    job: str
    pool: str
    units: int
    until: datetime
    overdue: bool
    stopping: bool
    giving_back: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that would let the job start, or make others step aside for it, in the next pass; one member is set."""

    message: str
    priority: int | None = None
    instances: int | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class WaitDiagnosis:
    """What is to be told of a waiting job beyond its explanation.

    Attributes:
        holders: who holds what it needs, as far as they are told by name.
        held_by_jobs: how many there are in all.
        reserved: what is reserved for it.
        advice: what would help.
    """

    holders: tuple[Holder, ...] = ()
    held_by_jobs: int = 0
    reserved: Reservation | None = None
    advice: tuple[Advice, ...] = ()


def diagnose(snapshot: Snapshot, now: datetime, job: Job) -> WaitDiagnosis:
    """The story of a waiting job that a pass looks at; an empty one where it would start.

    Args:
        snapshot: what a pass would read.
        now: UTC.
        job: the waiting job.
    """
    whole = with_jobs(snapshot, [job])
    job = next(each for each in whole.waiting if each.name == job.name)
    tried = _Tried(whole, now, job)
    plan = tried.plan(job)
    reason = _reason(plan, job)
    if reason is None:
        return WaitDiagnosis()
    holders = sorted(_holders(tried.snapshot, now, job), key=lambda each: (each.until, each.job, each.pool))
    return WaitDiagnosis(
        tuple(holders[:MAX_HOLDERS]),
        len({each.job for each in holders}),
        next((each for each in plan.reservations if each.job == job.name), None),
        tuple(_advice(tried, reason)),
    )


def _holders(snapshot: Snapshot, now: datetime, job: Job) -> Iterator[Holder]:
    expect = ExpectedEnds(snapshot, now)
    for each in snapshot.active:
        for pool in sorted(each.units.keys() & set(job.demand.pools)):
            given = 0 if each.stopping else each.freeing.get(pool, 0)
            end, overdue = expect.end(each), expect.overdue(each)
            yield Holder(each.name, pool, each.units[pool], end, overdue, each.stopping, given)


@dataclass(frozen=True, slots=True)
class _Tried:
    """The queue as it would be if the job were another."""

    snapshot: Snapshot
    now: datetime
    job: Job

    def plan(self, changed: Job) -> Plan:
        """The plan that a pass would make then."""
        waiting = tuple(changed if each.name == self.job.name else each for each in self.snapshot.waiting)
        return schedule(replace(self.snapshot, waiting=waiting), self.now, next_pass_rng(self.snapshot))

    def with_pool(self, pool: Pool) -> str | None:
        """What would become of a job that no pool can hold, if there were this one; None where that does not help."""
        pools = {**self.snapshot.pools, pool.name: pool}
        plan = schedule(replace(self.snapshot, pools=pools), self.now, next_pass_rng(self.snapshot))
        return _freed(plan, self.job)

    def outcome(self, changed: Job) -> str | None:
        """What would become of the job in the next pass; None where it would still just wait."""
        plan = self.plan(changed)
        if any(start.job.name == changed.name for start in plan.starts):
            return _STARTS
        reason = _reason(plan, changed)
        if isinstance(reason, Shrinks):
            return f"it shrinks {', '.join(reason.shrinks)}"
        return f"it preempts {', '.join(reason.victims)}" if isinstance(reason, Preempts) else None


def _reason(plan: Plan, job: Job) -> Reason | None:
    return next((wait.reason for wait in plan.waits if wait.job.name == job.name), None)


def _freed(plan: Plan, job: Job) -> str | None:
    reason = _reason(plan, job)
    return None if isinstance(reason, Infeasible) else _STARTS if reason is None else _WAITS


def _advice(tried: _Tried, reason: Reason) -> Iterator[Advice]:
    if isinstance(reason, Infeasible):
        yield from _split(tried, reason)
        yield from _room(tried, reason)
    if isinstance(reason, _PRIORITY_HELPS):
        yield from _higher(tried)
    if isinstance(reason, _SIZE_HELPS):
        yield from _fewer(tried)
        yield from _elsewhere(tried)


def _higher(tried: _Tried) -> Iterator[Advice]:
    """The lowest priority above that of others with which the job gets what it needs."""
    job, snapshot = tried.job, tried.snapshot
    others = {each.priority for each in (*snapshot.active, *snapshot.waiting) if each.name != job.name}
    levels = sorted(level for level in others if job.priority <= level < PRIORITY_LIMIT)
    found: Advice | None = None
    for _ in range(MAX_TRIES):
        if not levels:
            break
        middle = len(levels) // 2
        above = levels[middle]
        outcome = tried.outcome(replace(job, priority=above + 1))
        if outcome is None:
            levels = levels[middle + 1 :]
        else:
            found = Advice(f"raise its priority above {above}: {outcome}", priority=above + 1)
            levels = levels[:middle]
    if found is not None:
        yield found


def _fewer(tried: _Tried) -> Iterator[Advice]:
    """As many instances as are there, where that is fewer; how many requests it makes an image job's image says."""
    if tried.job.image_work is not None:
        return
    for pool, needed in _plain(tried.job):
        there = min(_free(tried, pool), needed - 1)
        if there > 0 and tried.outcome(_asking(tried.job, pool, there)) == _STARTS:
            plural = "s" if there > 1 else ""
            yield Advice(f"ask for {there} instance{plural} of {pool}: {_STARTS}", instances=there)


def _elsewhere(tried: _Tried) -> Iterator[Advice]:
    """Other pools in which as many are free; an image job's model is where it is."""
    if tried.job.image_work is not None:
        return
    for _, needed in _plain(tried.job):
        pools = [name for name in sorted(in_settings(tried.snapshot.pools)) if name not in tried.job.demand.pools]
        roomy = [name for name in pools if _free(tried, name) >= needed]
        for pool in roomy[:MAX_TRIES]:
            if tried.outcome(_asking(tried.job, pool, needed)) == _STARTS:
                yield Advice(f"ask for {needed} x {pool} instead: {_STARTS}", pool=pool)


def _split(tried: _Tried, reason: Infeasible) -> Iterator[Advice]:
    """As many instances as the largest pool of such instances has."""
    demand, most = tried.job.demand, reason.largest
    if most:
        own = tuple(dict.fromkeys(units, most) for units in demand.alternatives[: demand.listed])
        fewer = replace(tried.job, demand=replace(demand, alternatives=own, instances=most), hold=None)
        if (outcome := _freed(tried.plan(fewer), fewer)) is not None:
            yield Advice(f"ask for {most} instance{'s' if most > 1 else ''}: {outcome}", instances=most)


def _room(tried: _Tried, reason: Infeasible) -> Iterator[Advice]:
    """A larger pool, and a new one of the cheapest type that covers what it asks for."""
    pools, needed = tried.snapshot.pools, reason.needed
    there = [pools[name] for name in tried.job.demand.pools if name in pools and not pools[name].draining]
    if there:
        largest = max(there, key=lambda each: (each.cap, each.name))
        if (outcome := tried.with_pool(replace(largest, cap=needed))) is not None:
            words = f"raise the cap of {largest.name} from {largest.cap} to {needed}: {outcome}"
            yield Advice(words, pool=largest.name)
    asked, catalogue = tried.job.demand.resources, tried.snapshot.catalogue
    kinds = [] if asked is None else [kind for kind in catalogue.covering(asked) if kind.name not in pools]
    for kind in sorted(kinds, key=lambda each: (not each.price, each.price, each.name))[:1]:
        if (outcome := tried.with_pool(Pool(kind.name, needed))) is not None:
            yield Advice(f"add a pool of {needed} x {kind.name}: {outcome}", pool=kind.name)


def _plain(job: Job) -> Sequence[tuple[str, int]]:
    """Pool and instances of a job that asks for one pool only."""
    alternatives = job.demand.alternatives
    return list(alternatives[0].items()) if len(alternatives) == 1 and len(alternatives[0]) == 1 else []


def _asking(job: Job, pool: str, count: int) -> Job:
    return replace(job, demand=Demand(({pool: count},)), fit="", hold=None)


def _free(tried: _Tried, pool: str) -> int:
    usage = pool_usage(tried.snapshot, tried.now)
    return usage[pool].free if pool in usage else 0
