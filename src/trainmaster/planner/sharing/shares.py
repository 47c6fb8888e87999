"""What each share may have of the pools: its own, what it may borrow, and what it may take back.

A share's own units (nominal) are its entitlement, whatever the priorities of others; what it does not use is lent,
and taken back by preempting borrowers. It must not choose victims or order jobs within a share.

Sources: AWS Batch, "Quota shares" and "Preemption" (what is lent is restored by preempting borrowers; lowering a
share's limits makes what runs beyond them eligible); Kueue, "Preemption" (a queue reclaims only what it may use
without borrowing itself; only queues that borrow lose jobs to others).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job, held_for
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import ShareFull
from trainmaster.domain.shares.entitlement import Entitlements
from trainmaster.images.domain.endpoint import is_endpoint_pool
from trainmaster.planner.sharing.holdings import Holdings


@dataclass(slots=True)
class Shares:
    """The working figures of one plan: what each share holds of each pool. Thrown away with the plan.

    Without shares in the policy every job may have everything, and only standing decides who steps aside.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        in_play: whether the policy has any shares.
        entitlements: what the policy gives each share.
        holdings: what each share holds.
    """

    snapshot: Snapshot
    now: datetime
    enabled: bool = field(init=False)
    entitlements: Entitlements = field(init=False)
    holdings: Holdings = field(init=False)
    _reserved: dict[tuple[str, bool], tuple[int, dict[str, int], int]] = field(default_factory=dict)
    _covered: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    _borrowed_units: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    _last_nominal_left: tuple[int, str, Units, Units] | None = None

    def __post_init__(self) -> None:
        snapshot = self.snapshot
        self.enabled = bool(snapshot.policy.shares)
        self.entitlements = Entitlements(snapshot.policy, snapshot.pools, snapshot.foreign)
        holds = ((job, held_for(job, self.now)) for job in snapshot.waiting if job.hold is not None)
        self.holdings = Holdings.of(snapshot.active, ((job, units) for job, units in holds if units is not None))

    @property
    def version(self) -> int:
        """Counts every change of the figures; answers given at the same count hold still."""
        return self.holdings.version

    def dominant_share(self, job: Job) -> float:
        """The largest part of any pool that the share would have with the job, where it needs least (DRF).

        Requests at endpoints and instances are never compared: each job is measured against others of its kind.
        """
        return min((self._dominant_share_of(job, units) for units in job.demand.alternatives), default=0.0)

    def within_nominal(self, job: Job, units: Units) -> bool:
        """Whether the share would hold no more than its own if the job started on `units`."""
        own = self.entitlements.of(job.share).own
        return all(self._held_besides(job, pool) + count <= own(pool) for pool, count in units.items())

    def refusal(self, job: Job, units: Units) -> Reason | None:
        """Why the job's share may not have these units on top of what it holds, however idle they are; or None."""
        for pool, count in units.items() if self.enabled else ():
            bound = self.entitlements.of(job.share).bound(pool)
            held = self.holdings.held(job.share, pool) - self.holdings.exempt(job, pool)
            if bound is not None and held + count > bound.limit:
                return ShareFull(job.share, pool, bound.limit, bound.name)
        return None

    def refuses_more(self, job: Job, units: Units) -> bool:
        """Whether a bound keeps the share of a job that runs, or starts, from these units besides."""
        for pool, count in units.items() if self.enabled else ():
            bound = self.entitlements.of(job.share).bound(pool)
            if bound is not None and self.holdings.held(job.share, pool) + count > bound.limit:
                return True
        return False

    def excess(self, job: Job, units: Units) -> Units | None:
        """Where the share is at a bound: what its own jobs must give back for this one to start, by pool.

        Units that are being given back already count as back: nothing is in excess where only those are waited
        for. None: the job alone is more than the share may have, or the share is beyond a bound that was lowered: what
        runs, runs on, and is not all put aside for one job. A caller preempts for whatever is more, this or what the
        pool lacks.
        """
        excess = {}
        for pool, count in units.items() if self.enabled else ():
            bound = self.entitlements.of(job.share).bound(pool)
            if bound is not None and max(count, self._held_besides(job, pool)) > bound.limit:
                return None
            if bound is not None and self._held_besides(job, pool) + count > bound.limit:
                excess[pool] = self._held_besides(job, pool) + count - bound.limit
        return excess

    def withheld(self, job: Job, pool: str, *, soon: bool = False) -> int:
        """Idle units of a pool that are kept for the shares that own them, and so are not there for this job.

        Args:
            job: the job; what its own share keeps is there for it.
            pool: where.
            soon: of the units that will be idle once those that are stopping have stopped and those that wait for
                that have started, instead of now.
        """
        if not self.enabled:
            return 0
        idle, together = self._reserved_idle(pool, soon=soon)
        withheld = together - idle.get(job.share, 0)
        if withheld > 0 and (overdrawn := self.entitlements.overdrawn(pool)) and self.any_within_nominal(job):
            # There is less than all own together: owners must not keep each other from what there is.
            return max(withheld - overdrawn, 0)
        return withheld

    def any_within_nominal(self, job: Job) -> bool:
        """Whether some alternative of the job would keep its share within its own."""
        return any(self.within_nominal(job, units) for units in job.demand.alternatives)

    def may_preempt(  # noqa: PLR0913 -- who, for what, from whom, after whom
        self, job: Job, units: Units, victim: Job, taken: Sequence[Job], *, outranks: bool, missing: Units | None = None
    ) -> bool:
        """Whether the job, to start on `units`, may have `victim` step aside, given who does already.

        Between shares only an owner takes, only from borrowers, and whatever the priorities: the job's share stays
        within its own in every pool that the job needs, not only where units are missing (three shares that each
        borrow from the next could else chase each other for ever); the victim's share is above its own where units
        are missing, and the victim is none of its best jobs that its own has room for. So where jobs use one pool,
        every such taking brings more units within what their shares own, and none out of it.

        Inside a share standing decides, but for one case: a job that would borrow in a pool where the victim holds
        nothing takes none of those best jobs. An owner there would take it all back, and so on in turn.

        The more jobs of other shares are taken, the fewer are permitted; own ones may make room for more.

        Args:
            job: the job.
            units: what it is to start on.
            victim: who would step aside.
            taken: who does already.
            outranks: whether the job's standing (priority, level) is strictly higher than the victim's.
            missing: what the job lacks, by pool; without it, units are taken to be missing wherever it needs some.
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
        """The job starts on these units. The last word about a job counts."""
        self.holdings.take(job, units)

    def promise(self, job: Job, units: Units) -> None:
        """These units are kept for the job, or are being freed for it: its share has them like those that it holds."""
        self.holdings.promise(job, units)

    def release(self, job: Job) -> None:
        """Nothing is kept for the job any more (it is being considered itself)."""
        self.holdings.release(job)

    def preempt(self, victims: Iterable[Job]) -> None:
        """These will step aside."""
        for victim in victims:
            self.release_later(victim, victim.staying)

    def release_later(self, job: Job, units: Units) -> None:
        """The job will give these units back."""
        self.holdings.release_later(job, units)

    def add(self, job: Job, units: Units) -> None:
        """The job gets these units beside what it holds."""
        self.holdings.grow(job, units)

    def _dominant_share_of(self, job: Job, units: Units) -> float:
        held = {
            pool: self._held_besides(job, pool)
            for pool in (*self.holdings.held_by(job.share), *units)
            if is_endpoint_pool(pool) is (job.image_work is not None)
        }
        pools = self.snapshot.pools
        parts = (
            (count + units.get(pool, 0)) / pools[pool].cap if pool in pools and pools[pool].cap > 0 else math.inf
            for pool, count in held.items()
        )
        return max(parts, default=0.0)

    def _held_besides(self, job: Job, pool: str) -> int:
        """What the share will hold beside the job."""
        return self.holdings.staying(job.share, pool) - self.holdings.exempt(job, pool)

    def _reserved_idle(self, pool: str, *, soon: bool) -> tuple[dict[str, int], int]:
        """What is kept and idle, by share that keeps it, and in all."""
        at, idle, together = self._reserved.get((pool, soon), (-1, {}, 0))
        if at != self.version:
            count = self.holdings.staying if soon else self.holdings.running
            keepers = self.entitlements.keepers(pool)
            idle = {name: max(self.entitlements.of(name).kept(pool) - count(name, pool), 0) for name in keepers}
            together = sum(idle.values())
            self._reserved[pool, soon] = (self.version, idle, together)
        return idle, together

    def _nominal_left(self, job: Job, units: Units) -> Units:
        """What would be left of the share's own with the job; below 0 where it would borrow. Asked many times over."""
        if self._last_nominal_left is None or self._last_nominal_left[:3] != (self.version, job.name, units):
            own = self.entitlements.of(job.share).own
            nominal_left = {pool: own(pool) - self._held_besides(job, pool) - count for pool, count in units.items()}
            self._last_nominal_left = (self.version, job.name, units, nominal_left)
        return self._last_nominal_left[3]

    def _borrows_elsewhere(self, job: Job, units: Units, victim: Job) -> bool:
        """Whether the job would borrow in a pool where the victim holds nothing, even without all its lower jobs."""
        for pool, left in self._nominal_left(job, units).items():
            if left < 0 and pool not in victim.units:
                mine = (j for j in self.snapshot.active if j.share == job.share and j.priority < job.priority)
                if left + sum(j.staying.get(pool, 0) for j in mine) < 0:
                    return True
        return False

    def _is_covered(self, job: Job, pools: Iterable[str]) -> bool:
        return any(job.name in self._covered_by_nominal(job.share, pool) for pool in pools if pool in job.units)

    def _is_borrowed(self, victim: Job, pool: str, taken: Sequence[Job]) -> bool:
        """Whether the victim's share has more than its own there, and its own has no room for the victim."""
        share = victim.share
        at, above = self._borrowed_units.get((share, pool), (-1, 0))
        if at != self.version:
            above = self.holdings.staying(share, pool) - self.entitlements.of(share).own(pool)
            self._borrowed_units[share, pool] = (self.version, above)
        return above > _units_of(share, pool, taken) and victim.name not in self._covered_by_nominal(share, pool)

    def _covered_by_nominal(self, share: str, pool: str) -> frozenset[str]:
        """The share's jobs that its own units have room for: those that nobody may stop, then the best, the oldest."""
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
        """Whether nobody may ever stop it: it takes of what its share owns first."""
        most = (
            self.snapshot.policy.preemption.max_preemptions
            if job.wishes.max_preemptions is None
            else job.wishes.max_preemptions
        )
        return not job.preemptible or (most is not None and bool(job.past) and job.preemptions >= most)

    def _nominal_order(self, job: Job) -> tuple[bool, int, datetime, str]:
        since = job.attempt.created_at if job.attempt is not None else job.entry_time
        return (not self._never_preempted(job), -job.priority, since, job.name)


def _units_of(share: str, pool: str, jobs: Sequence[Job]) -> int:
    return sum(job.staying.get(pool, 0) for job in jobs if job.share == share) if jobs else 0
