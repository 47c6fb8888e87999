"""Diagnose why a job waits: which jobs hold its capacity and until when, its reservation, and verified advice.

Each suggestion was verified by re-planning the current queue. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from trainmaster.domain.access.ceilings import job_problems
from trainmaster.domain.capacity.external import external_units
from trainmaster.domain.capacity.units import Demand, Kind, Pool, counted, in_settings
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.plan import Plan, PlannedReservation, Snapshot
from trainmaster.domain.policy.settings import Share
from trainmaster.domain.reasons.capacity import (
    Behind,
    CanNeverFit,
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
from trainmaster.domain.reasons.rules import ShareFull, UserFull
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.schedule import schedule
from trainmaster.service.capacity.pool_usage import pool_usage
from trainmaster.service.context import pass_rng
from trainmaster.service.explain.borrowing import Borrowing, borrowing
from trainmaster.service.explain.explain import with_jobs

MAX_HOLDERS = 10
"""Jobs, and external training jobs of a pool, to list by name; jobs that are expected to end first come first."""
MAX_TRIES = 6
"""Priorities, and other pools, that are tried."""
MAX_ADVICE = 3
"""Suggestions to give, those first that change the least."""
_PRIORITY_HELPS = WaitsForCapacity | ReservedForOther | Behind
_SOURCES = frozenset({Kind.ON_DEMAND, Kind.SPOT})
_STARTS = "it starts with the next pass"
_WAITS = "it is no longer infeasible"
_SIZE_HELPS = _PRIORITY_HELPS | PreemptsLater | Protected | WaitsForRelease | Preempts | Shrinks


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that holds units that the waiting job could use.

    Attributes:
        until: its expected end.
        overdue: whether it has run for longer than expected.
        stopping: whether it is stopping.
        giving_back: units of these that it gives back in a resize that is under way.
    """

    job: str
    pool: str
    units: int
    until: datetime
    overdue: bool
    stopping: bool
    giving_back: int = 0


@dataclass(frozen=True, slots=True)
class ExternalHolders:
    """Training jobs outside the queue that hold units of a pool that the waiting job could use.

    Attributes:
        units: what all of them hold there.
        training_jobs: the first `MAX_HOLDERS` of their names.
        count: the number of all of them.
    """

    pool: str
    units: int
    training_jobs: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Advice:
    """A change with which the whole job starts, preempts or shrinks others in the next pass; one member names it."""

    message: str
    priority: int | None = None
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class WaitDiagnosis:
    """The diagnosis of a waiting job, beyond its explanation.

    Attributes:
        holders: jobs that hold its capacity, the first `MAX_HOLDERS` of them.
        held_by_jobs: the number of all such jobs.
        external: training jobs outside the queue that hold its capacity, by pool.
        reserved: its reservation.
        rule: the rule of shares that keeps it from preempting jobs of lower rank, as a sentence; None if none does.
        advice: verified changes that would help.
    """

    holders: tuple[Holder, ...] = ()
    held_by_jobs: int = 0
    external: tuple[ExternalHolders, ...] = ()
    reserved: PlannedReservation | None = None
    rule: str | None = None
    advice: tuple[Advice, ...] = ()


def diagnose(snapshot: Snapshot, now: datetime, job: Job) -> WaitDiagnosis:
    """Return the diagnosis of a waiting job that a pass reads; an empty one if it would start.

    Args:
        snapshot: the snapshot that a pass would read.
        now: UTC.
        job: the waiting job.
    """
    whole = with_jobs(snapshot, [job])
    job = next(waiting for waiting in whole.waiting if waiting.name == job.name)
    what_if = _WhatIf(whole, now, job)
    plan = what_if.plan(job)
    reason = _reason(plan, job)
    if reason is None:
        return WaitDiagnosis()
    borrows = borrowing(what_if.snapshot, now, job) if isinstance(reason, WaitsForCapacity) else None
    holders = sorted(_holders(what_if.snapshot, now, job), key=lambda holder: (holder.until, holder.job, holder.pool))
    return WaitDiagnosis(
        tuple(holders[:MAX_HOLDERS]),
        len({holder.job for holder in holders}),
        tuple(_external_holders(what_if.snapshot, job)),
        next((reservation for reservation in plan.reservations if reservation.job == job.name), None),
        None if borrows is None else borrows.message(),
        tuple(islice(_advice(what_if, reason, borrows), MAX_ADVICE)),
    )


def _holders(snapshot: Snapshot, now: datetime, job: Job) -> Iterator[Holder]:
    expect = ExpectedEnds(snapshot, now)
    for active in snapshot.active:
        for pool in sorted(active.units.keys() & set(job.demand.pools)):
            given = 0 if active.stopping else active.freeing.get(pool, 0)
            end, overdue = expect.end(active), expect.overdue(active)
            yield Holder(active.name, pool, active.units[pool], end, overdue, active.stopping, given)


def _external_holders(snapshot: Snapshot, job: Job) -> Iterator[ExternalHolders]:
    held = {name: external_units({name: each}, snapshot.pools) for name, each in snapshot.external_jobs.items()}
    for pool in job.demand.pools:
        if units := snapshot.external.get(pool, 0):
            names = sorted(name for name, each in held.items() if pool in each)
            yield ExternalHolders(pool, units, tuple(names[:MAX_HOLDERS]), len(names))


@dataclass(frozen=True, slots=True)
class _WhatIf:
    """Re-plans the queue with a changed job or another pool."""

    snapshot: Snapshot
    now: datetime
    job: Job

    def plan(self, changed: Job) -> Plan:
        """Return the plan with the job replaced."""
        waiting = tuple(changed if job.name == self.job.name else job for job in self.snapshot.waiting)
        return schedule(replace(self.snapshot, waiting=waiting), self.now, pass_rng(self.snapshot))

    def with_pool(self, pool: Pool) -> str | None:
        """Return the outcome for an infeasible job if this pool existed; None if that does not help."""
        pools = {**self.snapshot.pools, pool.name: pool}
        plan = schedule(replace(self.snapshot, pools=pools), self.now, pass_rng(self.snapshot))
        return _feasible_outcome(plan, self.job)

    def with_quotas(self, shares: Mapping[str, Share]) -> str | None:
        """Return the outcome for the job with these shares; None if it would still wait."""
        policy = replace(self.snapshot.policy, shares=shares)
        return replace(self, snapshot=replace(self.snapshot, policy=policy)).outcome(self.job)

    def outcome(self, changed: Job) -> str | None:
        """Return the outcome for the changed job in the next pass; None if it would still wait."""
        plan = self.plan(changed)
        if any(start.job.name == changed.name for start in plan.starts):
            return _STARTS
        reason = _reason(plan, changed)
        if isinstance(reason, Shrinks):
            return f"it shrinks {', '.join(reason.shrinks)}"
        return f"it preempts {', '.join(reason.victims)}" if isinstance(reason, Preempts) else None


def _reason(plan: Plan, job: Job) -> Reason | None:
    return next((wait.reason for wait in plan.waits if wait.job.name == job.name), None)


def _feasible_outcome(plan: Plan, job: Job) -> str | None:
    reason = _reason(plan, job)
    if isinstance(reason, ShareFull | UserFull):
        return f"{_WAITS}, but {reason.message()}"
    return None if isinstance(reason, Infeasible | CanNeverFit) else _STARTS if reason is None else _WAITS


def _advice(what_if: _WhatIf, reason: Reason, borrows: Borrowing | None) -> Iterator[Advice]:
    if isinstance(reason, Infeasible):
        yield from _larger_pool(what_if, what_if.job.demand.pools, reason.needed)
        yield from _cheapest_new_pool(what_if, reason.needed)
    if isinstance(reason, CanNeverFit) and what_if.job.work is None:
        yield from _larger_pool(what_if, (reason.pool,), reason.needed)
        if reason.pool not in what_if.snapshot.pools:
            yield from _new_pool(what_if, reason.pool, reason.needed)
    if isinstance(reason, _PRIORITY_HELPS):
        yield from _higher_priority(what_if)
    if borrows is not None:
        yield from _larger_quota(what_if, borrows)
    if isinstance(reason, _SIZE_HELPS):
        yield from _other_pools(what_if)


def _higher_priority(what_if: _WhatIf) -> Iterator[Advice]:
    """Yield the lowest priority above that of other jobs with which the job gets its capacity, if its share has it."""
    job, snapshot = what_if.job, what_if.snapshot
    others = {other.priority for other in (*snapshot.active, *snapshot.waiting) if other.name != job.name}
    share = snapshot.policy.shares.get(job.share)
    highest = MAX_PRIORITY if share is None or share.max_priority is None else share.max_priority
    levels = sorted(level for level in others if job.priority <= level < highest)
    found: Advice | None = None
    for _ in range(MAX_TRIES):
        if not levels:
            break
        middle = len(levels) // 2
        above = levels[middle]
        outcome = what_if.outcome(replace(job, priority=above + 1))
        if outcome is None:
            levels = levels[middle + 1 :]
        else:
            found = Advice(f"raise its priority above {above}: {outcome}", priority=above + 1)
            levels = levels[:middle]
    if found is not None:
        yield found


def _larger_quota(what_if: _WhatIf, borrows: Borrowing) -> Iterator[Advice]:
    """Yield a quota of the job's share that covers the job, as far as no configured share owns these units."""
    shares = borrows.with_quota(what_if.snapshot)
    if shares is not None and (outcome := what_if.with_quotas(shares)) is not None:
        quota = " + ".join(counted(count, pool) for pool, count in sorted(borrows.needed.items()))
        words = f"give share {borrows.share} a quota of {quota}: {outcome}"
        yield Advice(words, pool=min(borrows.needed))


def _other_pools(what_if: _WhatIf) -> Iterator[Advice]:
    """Yield other pools with enough free instances that have all that the job's have, the cheapest first.

    Another kind of job cannot change its service.
    """
    if what_if.job.work is not None:
        return
    catalogue, pools = what_if.snapshot.catalogue, what_if.snapshot.pools
    for own, needed in _plain(what_if.job):
        others = [name for name in _alike(what_if.snapshot, own) if name not in what_if.job.demand.pools]
        free = [name for name in others if _free(what_if, name) >= needed]
        for pool in sorted(free, key=lambda name: (catalogue.price_at_most(catalogue.of_pool(pools[name])), name))[
            :MAX_TRIES
        ]:
            other, share = _demanding(what_if.job, pool, needed), what_if.snapshot.policy.shares.get(what_if.job.share)
            allowed = next(job_problems(other, share, pools, catalogue), None) is None
            if allowed and what_if.outcome(other) == _STARTS:
                yield Advice(f"ask for {needed} x {pool} instead: {_STARTS}", pool=pool)


def _alike(snapshot: Snapshot, name: str) -> Iterator[str]:
    """Yield the pools whose instances have at least the resources of this pool's, from the same source.

    None if the resources of its own are unknown. Accelerators compare within a maker, and a job without them takes no
    pool that has some.
    """
    own, catalogue = snapshot.pools.get(name), snapshot.catalogue
    if own is None or own.kind not in _SOURCES or not catalogue.of_pool(own).vcpus:
        return
    has = catalogue.of_pool(own)
    for other in in_settings(snapshot.pools).values():
        kind = catalogue.of_pool(other)
        if other.kind is own.kind and kind.has_all_of(has) and kind.accelerator == has.accelerator:
            yield other.name


def _larger_pool(what_if: _WhatIf, names: Iterable[str], needed: int) -> Iterator[Advice]:
    """Yield a larger cap of the largest of these pools."""
    pools = what_if.snapshot.pools
    usable = [pools[name] for name in names if name in pools and not pools[name].draining]
    if usable:
        largest = max(usable, key=lambda pool: (pool.cap, pool.name))
        if (outcome := what_if.with_pool(replace(largest, cap=needed))) is not None:
            words = f"raise the cap of {largest.name} from {largest.cap} to {needed}: {outcome}"
            yield Advice(words, pool=largest.name)


def _cheapest_new_pool(what_if: _WhatIf, needed: int) -> Iterator[Advice]:
    """Yield a new pool of the cheapest type that covers the demand of a job that requests resources."""
    asked, catalogue = what_if.job.demand.resources, what_if.snapshot.catalogue
    pools = what_if.snapshot.pools
    kinds = [] if asked is None else [kind for kind in catalogue.covering(asked) if kind.name not in pools]
    for kind in sorted(kinds, key=lambda kind: (not kind.price, kind.price, kind.name))[:1]:
        yield from _new_pool(what_if, kind.name, needed)


def _new_pool(what_if: _WhatIf, name: str, needed: int) -> Iterator[Advice]:
    """Yield a new pool of an instance type."""
    if (outcome := what_if.with_pool(Pool(name, needed))) is not None:
        yield Advice(f"add a pool of {needed} x {name}: {outcome}", pool=name)


def _plain(job: Job) -> Sequence[tuple[str, int]]:
    """Return the pool and the instances of a job that can run in one pool only."""
    alternatives = job.demand.alternatives
    return list(alternatives[0].items()) if len(alternatives) == 1 and len(alternatives[0]) == 1 else []


def _demanding(job: Job, pool: str, count: int) -> Job:
    return replace(job, demand=Demand(({pool: count},)), warm_pool_key="", reservation=None)


def _free(what_if: _WhatIf, pool: str) -> int:
    usage = pool_usage(what_if.snapshot, what_if.now)
    return usage[pool].free if pool in usage else 0
