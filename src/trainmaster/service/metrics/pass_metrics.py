"""Metrics of a pass, as values: units by pool, work by share, the oldest wait, idle units, the budget used.

They cover what the pass read: every running job, and the first waiting jobs of each lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.capacity.reported_quotas import quota_bounds, with_quotas
from trainmaster.domain.capacity.units import Units, is_service_pool, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.jobs.job import Job, held_for
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import DEFAULT_SHARE
from trainmaster.domain.reasons import capacity as reasons
from trainmaster.domain.shares.entitlement import Entitlements
from trainmaster.domain.shares.usage import accelerators_of, percent_used
from trainmaster.planner.sharing.limits import used_in_period
from trainmaster.service.apply_plan import PassReport

WAITS_FOR_UNITS = (
    reasons.WaitsForCapacity,
    reasons.WaitsForRelease,
    reasons.Preempts,
    reasons.Shrinks,
    reasons.EndsWarmPool,
    reasons.Behind,
    reasons.ReservedForOther,
    reasons.Protected,
    reasons.PreemptsLater,
    reasons.BackingOff,
    reasons.BehindBackingOff,
    reasons.NotConsideredYet,
)
"""Reasons of feasible jobs that no rule keeps from starting: they wait for units alone."""


@dataclass(frozen=True, slots=True)
class PoolMetrics:
    """Units of a pool after a pass.

    Attributes:
        pool: its name.
        cap: units that jobs may hold, within the account's quota; 0 while it drains.
        used: units of jobs, warm pools and external training jobs.
        free: units that are not used.
        idle: free units that no job has reserved, while a feasible job waits for units of the pool.
        waiting: waiting jobs that could run there.
    """

    pool: str
    cap: int
    used: int
    free: int
    idle: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ShareMetrics:
    """Work of a share after a pass.

    Attributes:
        share: its name.
        accelerators: accelerators that its jobs hold.
        waiting: its waiting jobs.
        oldest_wait: seconds for which its oldest waiting job waits; 0 without one.
        budget_used: percentage used of its budget in the current period; None without a budget.
    """

    share: str
    accelerators: int
    waiting: int
    oldest_wait: float
    budget_used: float | None


@dataclass(frozen=True, slots=True)
class PassMetrics:
    """Metrics of one pass, by pool and by share; the properties are of the whole queue.

    Attributes:
        pools: pools of instances. Services are left out: they come and go, and have metrics of their own.
        shares: the default share and those that the settings name; any caller may name others.
        oldest_wait: seconds for which the oldest waiting job waits; None if no job waits.
    """

    pools: tuple[PoolMetrics, ...]
    shares: tuple[ShareMetrics, ...]
    oldest_wait: float | None

    @property
    def idle_units(self) -> int:
        """Units that are idle while feasible jobs wait for them."""
        return sum(pool.idle for pool in self.pools)

    @property
    def budget_used(self) -> float | None:
        """Percentage used of the budget that is nearest to its end; None without budgets."""
        return max((each.budget_used for each in self.shares if each.budget_used is not None), default=None)


def pass_metrics(report: PassReport, now: datetime) -> PassMetrics | None:
    """Return the metrics of a pass; None if it read nothing."""
    if report.snapshot is None:
        return None
    measured = _Pass(report.snapshot, report, now)
    return PassMetrics(measured.pools(), measured.shares(), max(map(measured.waited, measured.waiting), default=None))


class _Pass:
    """A pass, and the units that jobs hold after it."""

    def __init__(self, snapshot: Snapshot, report: PassReport, now: datetime) -> None:
        self.snapshot, self.now = snapshot, now
        self.waits = [wait for wait in report.plan.waits if wait.job.name not in snapshot.in_turn]
        self.waiting = [wait.job for wait in self.waits]
        self.starts = [start for start in report.plan.starts if start.job.name in {*report.started}]
        held: dict[str, list[Units]] = {}
        for job, units in [*((job, job.units) for job in snapshot.active), *((s.job, s.units) for s in self.starts)]:
            held.setdefault(job.share, []).append(units)
        self.held = {share: total(parts) for share, parts in held.items()}

    def waited(self, job: Job) -> float:
        """Return the seconds since the job entered the queue, or since its last attempt ended."""
        ended = job.attempt.ended_at if job.attempt is not None else None
        return max((self.now - (ended or job.entry_time)).total_seconds(), 0.0)

    def pools(self) -> tuple[PoolMetrics, ...]:
        """Return the metrics of all pools of instances."""
        pools = with_quotas(self.snapshot.pools, quota_bounds(self.snapshot.pools, self.snapshot.catalogue, self.now))
        blocked = [wait.job for wait in self.waits if isinstance(wait.reason, WAITS_FOR_UNITS)]
        used, kept, waiting, wanted = self._used(), self._kept(blocked), _by_pool(self.waiting), _by_pool(blocked)
        found = []
        for name, pool in sorted(pools.items()):
            if not is_service_pool(name):
                cap = 0 if pool.draining else pool.cap
                free = max(cap - used.get(name, 0), 0)
                idle = max(free - kept.get(name, 0), 0) if wanted[name] else 0
                found.append(PoolMetrics(name, cap, used.get(name, 0), free, idle, waiting[name]))
        return tuple(found)

    def _used(self) -> Units:
        snapshot = self.snapshot
        warm = (pool.units for pool in counting(snapshot.warm, snapshot.active))
        # A start in a warm pool takes units that count already.
        starting = (start.units for start in self.starts if start.warm is None)
        return total([snapshot.external, *warm, *(job.units for job in snapshot.active), *starting])

    def _kept(self, blocked: Iterable[Job]) -> Units:
        """Return the units that are idle on purpose: reserved for a waiting job, or lent to no other share."""
        reserved = [units for job in self.waiting if (units := held_for(job, self.now)) is not None]
        return total([*reserved, *self._unlent(blocked)])

    def _unlent(self, blocked: Iterable[Job]) -> Iterator[Units]:
        """Yield what shares lend to no others and leave idle, unless their own jobs wait for it."""
        entitlements = Entitlements(self.snapshot.policy, self.snapshot.pools, self.snapshot.external)
        own = {(job.share, pool) for job in blocked for pool in job.demand.pools}
        for pool in self.snapshot.pools if self.snapshot.policy.shares else ():
            for share in entitlements.keepers(pool):
                if (share, pool) not in own:
                    held = self.held.get(share, {}).get(pool, 0)
                    yield {pool: max(entitlements.of(share).kept(pool) - held, 0)}

    def shares(self) -> tuple[ShareMetrics, ...]:
        """Return the metrics of the shares that the settings name, and of the default share."""
        return tuple(self._share(name) for name in sorted({DEFAULT_SHARE, *self.snapshot.policy.shares}))

    def _share(self, name: str) -> ShareMetrics:
        waits = [self.waited(job) for job in self.waiting if job.share == name]
        accelerators = accelerators_of(self.held.get(name, {}), self.snapshot.pools)
        return ShareMetrics(name, accelerators, len(waits), max(waits, default=0.0), self._budget_used(name))

    def _budget_used(self, name: str) -> float | None:
        share = self.snapshot.policy.shares.get(name)
        if share is None or share.budget is None:
            return None
        return percent_used(share.budget, used_in_period(self.snapshot, name, share.budget, self.now))


def _by_pool(jobs: Iterable[Job]) -> Counter[str]:
    return Counter(pool for job in jobs for pool in job.demand.pools)
