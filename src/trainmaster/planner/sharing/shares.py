"""The units that each share may have: its nominal units, what it may borrow, and what it may reclaim.

A share is entitled to its nominal units whatever the priorities of others. What it does not use is lent, and reclaimed
by preempting borrowers.

Sources: AWS Batch, "Quota shares" and "Preemption" (lent capacity is restored by preempting borrowers; lowering a
share's limits makes jobs beyond them eligible); Kueue, "Preemption" (a queue reclaims only what it may use without
borrowing itself; only queues that borrow lose jobs to others).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from trainmaster.domain.capacity.units import Units, is_service_pool
from trainmaster.domain.jobs.job import Job, held_for
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import ShareFull
from trainmaster.domain.shares.entitlement import Entitlements
from trainmaster.planner.orders import order_of
from trainmaster.planner.sharing.holdings import Holdings


def _no_units(job: Job, pool: str) -> int:  # noqa: ARG001 -- a default
    return 0


@dataclass(slots=True)
class Shares:
    """Units that each share holds of each pool, as of the decisions so far.

    Without shares in the policy, every job may have everything, and rank alone decides which jobs are preempted.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        preemptible: returns the units of a pool that running jobs of a job's share hold and that it may preempt, now or
            once their protection ends.
        rank: returns a job's rank, on which `preemptible` depends.
        enabled: whether the policy has any shares.
        counted: whether anything depends on what shares hold.
        entitlements: what the policy gives each share.
        holdings: what each share holds.
    """

    snapshot: Snapshot
    now: datetime
    preemptible: Callable[[Job, str], int] = _no_units
    rank: Callable[[Job], object] = attrgetter("priority")
    enabled: bool = field(init=False)
    counted: bool = field(init=False)
    entitlements: Entitlements = field(init=False)
    holdings: Holdings = field(init=False)
    _reserved: dict[tuple[str, bool], tuple[int, dict[str, int], int]] = field(default_factory=dict)
    _covered: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    _borrowed_units: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    _last_nominal_left: tuple[int, str, Units, Units] | None = None

    def __post_init__(self) -> None:
        snapshot = self.snapshot
        self.enabled = bool(snapshot.policy.shares)
        self.entitlements = Entitlements(snapshot.policy, snapshot.pools, snapshot.external)
        holds = ((job, held_for(job, self.now)) for job in snapshot.special if job.reservation is not None)
        # Without shares, only orders by usage look at what they hold.
        self.counted = self.enabled or order_of(snapshot.policy).by_usage
        self.holdings = Holdings.of(
            snapshot.active if self.counted else (), ((job, units) for job, units in holds if units is not None)
        )

    @property
    def version(self) -> int:
        """A count of all changes; answers given at the same count still hold."""
        return self.holdings.version

    def dominant_share(self, job: Job) -> float:
        """Return the largest fraction of any pool that the share would hold with the job (DRF).

        Of the job's alternatives, the one with the least counts. Requests at endpoints and instances are never
        compared: each job is measured against others of its kind.
        """
        return min((self._dominant_share_of(job, units) for units in job.demand.alternatives), default=0.0)

    def within_nominal(self, job: Job, units: Units, *, preempting: bool = True) -> bool:
        """Return True if the share's nominal units cover the job on `units`.

        Args:
            job: a waiting job.
            units: what it would start on.
            preempting: whether to leave out the running jobs of its share that it may preempt, now or later. If such a
                job stays, it is that job that borrows, and not this one.
        """
        own = self.entitlements.of(job.share).own
        for pool, count in units.items():
            beyond = self._held_besides(job, pool) + count - own(pool)
            if beyond > 0 and (not preempting or count > own(pool) or self.preemptible(job, pool) < beyond):
                return False
        return True

    def refusal(self, job: Job, units: Units) -> Reason | None:
        """Return the limit that keeps the job's share from these units, however idle they are; None without one."""
        for pool, count in units.items() if self.enabled else ():
            held = self.holdings.held(job.share, pool) - self.holdings.exempt(job, pool)
            if (bound := self.entitlements.exceeded(job.share, pool, count, held)) is not None:
                return ShareFull(job.share, pool, bound.limit, bound.name)
        return None

    def refuses_more(self, job: Job, units: Units) -> bool:
        """Return True if a limit keeps the share of a job that runs or starts from these further units."""
        for pool, count in units.items() if self.enabled else ():
            bound = self.entitlements.of(job.share).bound(pool)
            if bound is not None and self.holdings.held(job.share, pool) + count > bound.limit:
                return True
        return False

    def excess(self, job: Job, units: Units) -> Units | None:
        """Return what jobs of the share must release for this one to start, by pool, if the share is at a limit.

        Releasing units count as released: there is no excess if only those are waited for. None if the job alone is
        more than the share may have, or if the share is beyond a lowered limit: running jobs run on, and are not all
        preempted for one job. A caller preempts for the larger of this and what the pool lacks.
        """
        excess = {}
        for pool, count in units.items() if self.enabled else ():
            bound = self.entitlements.of(job.share).bound(pool)
            if bound is not None and max(count, self._held_besides(job, pool)) > bound.limit:
                return None
            if self.entitlements.exceeded(job.share, pool, count, 0) is not None:
                return None
            if bound is not None and self._held_besides(job, pool) + count > bound.limit:
                excess[pool] = self._held_besides(job, pool) + count - bound.limit
        return excess

    def withheld(self, job: Job, pool: str, *, soon: bool = False) -> int:
        """Return the idle units of a pool that are reserved for other shares, and so are not available to this job.

        Args:
            job: the job; units reserved for its own share are available to it.
            pool: the pool.
            soon: whether to count the units that will be idle once stopping jobs have stopped and the jobs that wait
                for them have started, instead of those idle now.
        """
        if not self.enabled:
            return 0
        idle, together = self._reserved_idle(pool, soon=soon)
        withheld = together - idle.get(job.share, 0)
        if withheld > 0 and (overdrawn := self.entitlements.overdrawn(pool)) and self.any_within_nominal(job):
            # The pool is smaller than all nominal units together: owners must not withhold it from each other.
            return max(withheld - overdrawn, 0)
        return withheld

    def any_within_nominal(self, job: Job, *, preempting: bool = True) -> bool:
        """Return True if the nominal units of the job's share cover it on some of its alternatives."""
        return any(self.within_nominal(job, units, preempting=preempting) for units in job.demand.alternatives)

    def may_preempt(  # noqa: PLR0913 -- the job, its units, the victim, and what precedes it
        self, job: Job, units: Units, victim: Job, taken: Sequence[Job], *, outranks: bool, missing: Units | None = None
    ) -> bool:
        """Return True if the job, to start on `units`, may preempt `victim` after those already taken.

        Between shares, only an owner preempts, only borrowers, and whatever the priorities. The job's share stays
        within its nominal units in every pool that the job needs, not only where units are missing; otherwise three
        shares that each borrow from the next could preempt each other in circles. The victim's share is above its
        nominal units where units are missing, and the victim is none of the best jobs that its nominal units cover. So
        if jobs use one pool each, every such preemption brings more units within the nominal units of their shares, and
        none out of them.

        Inside a share, rank decides, with one exception: a job that would borrow in a pool where the victim holds
        nothing takes none of those best jobs. An owner there would take it all back, and so on in turn.

        The more jobs of other shares are taken, the fewer are permitted; jobs of the own share may make room for more.

        Args:
            job: the job.
            units: what it is to start on.
            victim: the job to preempt.
            taken: victims before it.
            outranks: whether the job's rank is strictly higher than the victim's.
            missing: what the job lacks, by pool; without it, units count as missing wherever the job needs some.
        """
        if not self.enabled or (victim.share == job.share and not outranks):
            return outranks
        wanted = units if missing is None else missing
        if victim.share == job.share:
            return not self._borrows_elsewhere(job, units, victim) or not self._is_covered(victim, wanted)
        nominal_left = self._nominal_left(job, units)
        for pool, left in nominal_left.items():
            if left < 0 and left + _units_of(job.share, pool, taken) < 0:
                return False
        return any(pool in victim.units and self._is_borrowed(victim, pool, taken) for pool in wanted)

    def take(self, job: Job, units: Units) -> None:
        """Count the units on which a job starts; replaces what was counted for the job before."""
        if self.counted:
            self.holdings.take(job, units)

    def promise(self, job: Job, units: Units) -> None:
        """Count units that are kept or being released for a job as held by its share."""
        if self.counted:
            self.holdings.promise(job, units)

    def release(self, job: Job) -> None:
        """Remove what is kept for a job."""
        self.holdings.release(job)

    def preempt(self, victims: Iterable[Job]) -> None:
        """Count the units of victims as releasing."""
        for victim in victims:
            self.release_later(victim, victim.staying)

    def release_later(self, job: Job, units: Units) -> None:
        """Count units of a job as releasing."""
        self.holdings.release_later(job, units)

    def add(self, job: Job, units: Units) -> None:
        """Count further units of a job."""
        self.holdings.grow(job, units)

    def _dominant_share_of(self, job: Job, units: Units) -> float:
        held = {
            pool: self._held_besides(job, pool)
            for pool in (*self.holdings.held_by(job.share), *units)
            if is_service_pool(pool) is (job.work is not None)
        }
        pools = self.snapshot.pools
        parts = (
            (count + units.get(pool, 0)) / pools[pool].cap if pool in pools and pools[pool].cap > 0 else math.inf
            for pool, count in held.items()
        )
        return max(parts, default=0.0)

    def _held_besides(self, job: Job, pool: str) -> int:
        """Return what the share will hold besides the job."""
        return self.holdings.staying(job.share, pool) - self.holdings.exempt(job, pool)

    def _reserved_idle(self, pool: str, *, soon: bool) -> tuple[dict[str, int], int]:
        """Return the reserved idle units of a pool by share, and their sum."""
        at, idle, together = self._reserved.get((pool, soon), (-1, {}, 0))
        if at != self.version:
            count = self.holdings.staying if soon else self.holdings.running
            keepers = self.entitlements.keepers(pool)
            idle = {name: max(self.entitlements.of(name).kept(pool) - count(name, pool), 0) for name in keepers}
            together = sum(idle.values())
            self._reserved[pool, soon] = (self.version, idle, together)
        return idle, together

    def _nominal_left(self, job: Job, units: Units) -> Units:
        """Return what is left of the nominal units with the job; below 0 where the share would borrow.

        The result for the last job is cached, since it is asked for many times.
        """
        if self._last_nominal_left is None or self._last_nominal_left[:3] != (self.version, job.name, units):
            own = self.entitlements.of(job.share).own
            nominal_left = {pool: own(pool) - self._held_besides(job, pool) - count for pool, count in units.items()}
            self._last_nominal_left = (self.version, job.name, units, nominal_left)
        return self._last_nominal_left[3]

    def _borrows_elsewhere(self, job: Job, units: Units, victim: Job) -> bool:
        """Return True if the job would borrow in a pool without the victim, even without all its lower jobs."""
        for pool, left in self._nominal_left(job, units).items():
            if left < 0 and pool not in victim.units:
                mine = (j for j in self.snapshot.active if j.share == job.share and j.priority < job.priority)
                if left + sum(j.staying.get(pool, 0) for j in mine) < 0:
                    return True
        return False

    def _is_covered(self, job: Job, pools: Iterable[str]) -> bool:
        return any(job.name in self._covered_by_nominal(job.share, pool) for pool in pools if pool in job.units)

    def _is_borrowed(self, victim: Job, pool: str, taken: Sequence[Job]) -> bool:
        """Return True if the victim's share is above its nominal units there, and they do not cover the victim."""
        share = victim.share
        at, above = self._borrowed_units.get((share, pool), (-1, 0))
        if at != self.version:
            above = self.holdings.staying(share, pool) - self.entitlements.of(share).own(pool)
            self._borrowed_units[share, pool] = (self.version, above)
        return above > _units_of(share, pool, taken) and victim.name not in self._covered_by_nominal(share, pool)

    def _covered_by_nominal(self, share: str, pool: str) -> frozenset[str]:
        """Return the jobs that the nominal units cover: unpreemptible jobs first, then the best and the oldest."""
        if (share, pool) not in self._covered:
            left, names = self.entitlements.of(share).own(pool), set()
            mine = (j for j in self.snapshot.active if j.share == share and pool in j.units and not j.stopping)
            for job in sorted(mine, key=self._nominal_order):
                if self._never_preempted(job) or job.units[pool] <= left:
                    names.add(job.name)
                    left -= job.units[pool]
            self._covered[share, pool] = frozenset(names)
        return self._covered[share, pool]

    def _never_preempted(self, job: Job) -> bool:
        """Return True if no job may ever preempt it, so that nominal units cover it first."""
        limit = (
            self.snapshot.policy.preemption.max_preemptions
            if job.preemption_overrides.max_preemptions is None
            else job.preemption_overrides.max_preemptions
        )
        return not job.preemptible or (limit is not None and bool(job.past) and job.preemptions >= limit)

    def _nominal_order(self, job: Job) -> tuple[bool, int, datetime, str]:
        since = job.attempt.created_at if job.attempt is not None else job.entry_time
        return (not self._never_preempted(job), -job.priority, since, job.name)


def _units_of(share: str, pool: str, jobs: Sequence[Job]) -> int:
    return sum(job.staying.get(pool, 0) for job in jobs if job.share == share) if jobs else 0
