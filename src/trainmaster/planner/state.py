"""The working figures of a plan in the making: every stage's, put together, and what they say of one job.

It must not decide: it answers what a job could have, whom it would delay and whom it may displace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Kind, Units
from trainmaster.domain.jobs.job import Hold, Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order
from trainmaster.domain.reasons.capacity import Behind, ReservedForOther, WaitsForCapacity
from trainmaster.domain.reasons.reason import Reason
from trainmaster.planner.orders.least_attained_service import Attained
from trainmaster.planner.orders.ranking import Ranking
from trainmaster.planner.placement.ledger import Claim, Ledger, open_ledger
from trainmaster.planner.placement.plan_windows import window_refusal
from trainmaster.planner.placement.warm_pools import WarmPools
from trainmaster.planner.preemption.preempt import Candidates, VictimChoice
from trainmaster.planner.reservations.blocked_reason import shortage_reason
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.reservations.reservations import PlannedReservation, Reservations
from trainmaster.planner.sharing.limits import Limits
from trainmaster.planner.sharing.shares import Shares


def ranking_of(snapshot: Snapshot, now: datetime) -> Ranking:
    """Order and standing as the queue has chosen them."""
    if snapshot.policy.order is Order.LEAST_ATTAINED_SERVICE:
        return Attained(snapshot, now)
    return Ranking(snapshot, now)


@dataclass(slots=True)
class PlanState:
    """What is free, promised, expected and allowed while a plan is made. Thrown away with it.

    `has_training_plans`: whether any pool is a training plan, which can be used only for a time. `elastic_jobs`:
    active jobs that may be resized.
    """

    snapshot: Snapshot
    now: datetime
    ranking: Ranking
    ledger: Ledger
    shares: Shares
    limits: Limits
    warm: WarmPools
    candidates: Candidates
    expected_ends: ExpectedEnds
    reservations: Reservations
    has_training_plans: bool = False
    elastic_jobs: Sequence[Job] = ()
    _respected: dict[str, datetime] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> PlanState:
        """The figures before anything is decided."""
        ranking, expected_ends = ranking_of(snapshot, now), ExpectedEnds(snapshot, now)

        def running() -> Iterable[tuple[Units, datetime]]:
            return ((units, expected_ends.end(job)) for job in snapshot.active if (units := job.staying))

        return cls(
            snapshot=snapshot,
            now=now,
            ranking=ranking,
            ledger=open_ledger(snapshot, now),
            shares=Shares(snapshot, now),
            limits=Limits(snapshot, now),
            warm=WarmPools.among(snapshot, now),
            candidates=Candidates.among(snapshot, now, ranking.rank),
            expected_ends=expected_ends,
            reservations=Reservations(now, snapshot.policy.reservations, running),
            has_training_plans=any(pool.kind is Kind.TRAINING_PLAN for pool in snapshot.pools.values()),
            elastic_jobs=[job for job in snapshot.active if job.elastic is not None],
        )

    def look_as(self, job: Job) -> None:
        """From now on the figures are those that this job sees: its own claim and those of whom it outranks aside."""
        if (end := self._respected.pop(job.name, None)) is not None:
            self.reservations.remove_running(self.ledger.claims[job.name].units, end)
        self.ledger.release_claim(job.name)
        self.shares.release(job)
        self.limits.release(job)
        if self.ledger.holds:
            self.ledger.waive(self.ranking.rank(job), job.share if self.shares.enabled else None)
        else:
            self.ledger.waived = {}

    # -- what a job could have -----------------------------------------------------------------------------------

    def refusal(self, job: Job, units: Units) -> Reason | None:
        """The rule that keeps the job from these units however idle they are; None where none does."""
        return (
            self.limits.refusal(job, units)
            or self.shares.refusal(job, units)
            or (self.closed(job, units) if self.has_training_plans else None)
        )

    def crowded(self, job: Job, units: Units) -> bool:
        """Whether only what the job's own share holds keeps it from these units."""
        if self.limits.refusal(job, units) or self.shares.excess(job, units) is None:
            return False
        return self.closed(job, units) is None

    def closed(self, job: Job, units: Units) -> Reason | None:
        """Why a training plan keeps the job from these units now; None where none does."""
        return window_refusal(job, units, self.snapshot.pools, self.now, self.snapshot.records.history)

    def now_there(self, job: Job, pool: str) -> int:
        """Units of a pool that the job could have at once."""
        if not self.shares.enabled:
            return self.ledger.now(pool)
        idle = self.ledger.free.get(pool, 0) - self.shares.withheld(job, pool)
        return min(idle, self.soon_there(job, pool))

    def soon_there(self, job: Job, pool: str) -> int:
        """Units of a pool that the job could have without anybody stepping aside for it."""
        there = self.ledger.soon(pool)
        return there - self.shares.withheld(job, pool, soon=True) if self.shares.enabled else there

    def fits_now(self, job: Job, units: Units) -> bool:
        """Whether the job could have these units at once."""
        for pool, count in units.items():  # noqa: SIM110 -- asked all the time, and a generator takes as long as the answer
            if self.now_there(job, pool) < count:
                return False
        return True

    def fits_soon(self, job: Job, units: Units) -> bool:
        """Whether these units will be there without anybody stepping aside."""
        for pool, count in units.items():  # noqa: SIM110 -- the same
            if self.soon_there(job, pool) < count:
                return False
        return True

    def missing(self, job: Job, units: Units) -> Units:
        """What would have to be freed for the job: what the pools lack, and what its share has too much of."""
        excess = self.shares.excess(job, units) or {}
        lacking = {pool: max(n - self.soon_there(job, pool), excess.get(pool, 0)) for pool, n in units.items()}
        return {pool: count for pool, count in lacking.items() if count > 0}

    def victims(self, job: Job, units: Units, missing: Units) -> VictimChoice:
        """Who would step aside for the job, to start on `units`, to free what is missing."""
        alike = (job.share, self.shares.version, *sorted(units.items())) if self.shares.enabled else None
        return self.candidates.victims(job, missing, self.permits(job, units, missing), alike)

    def permits(
        self, job: Job, units: Units, missing: Units, before: Sequence[Job] = ()
    ) -> Callable[[Job, Sequence[Job]], bool] | None:
        """Whether the job may displace another; None where standing alone decides.

        `before`: parts of jobs that are taken in any case.
        """
        if not self.shares.enabled:
            return None
        rank = self.ranking.rank

        def permits(victim: Job, taken: Sequence[Job]) -> bool:
            outranks = rank(victim) < rank(job)
            gone = [*before, *taken] if before else taken
            return self.shares.may_preempt(job, units, victim, gone, outranks=outranks, missing=missing)

        return permits

    # -- before whom it may not have it --------------------------------------------------------------------------

    def behind(self, job: Job, units: Units) -> Reason | None:
        """Why the job may not have these units before others that wait; None where it may."""
        hold = self.hold_of(job)
        if hold is not None and hold.units == units:
            return None
        owner = self.shares.enabled and self.shares.within_nominal(job, units)
        barrier = self.ledger.barrier(job, self.ranking.at_work(job), units, owner=owner)
        if barrier is not None:
            return Behind(barrier[1].name, barrier[0])
        if not self.reservations.any_on(units):
            return None
        found = self.reservations.conflict(units, self.expected_end(job), only=job.share if owner else None)
        if found is None or self._would_yield(job, found[1]):
            return None
        pool, reserved = found
        free = max(min(self.now_there(job, pool), reserved.spare[pool]), 0)
        return ReservedForOther(reserved.job.name, pool, reserved.at, units[pool], free)

    def held_for(self, job: Job, alternatives: Iterable[Units]) -> bool:
        """Whether what is free is held for a blocked job against all others."""
        free = {pool: self.soon_there(job, pool) for pool in job.demand.pools}
        return any(self.ranking.holds(job, units, free) for units in alternatives)

    def _would_yield(self, job: Job, reserved: PlannedReservation) -> bool:
        """Whether who is reserved for could take the units back when its time comes: then nobody is delayed."""
        outranked = self.ranking.rank(job) < self.ranking.rank(reserved.job)
        ours = not self.shares.enabled or job.share == reserved.job.share
        return outranked and ours and self.candidates.preemptible_by(job, reserved.at)

    def shortage_reason(self, job: Job, units: Units, reserved: PlannedReservation | None) -> Reason:
        """What is missing, for whom it is kept where it is there, and when it is expected."""
        reason = shortage_reason(
            units,
            now=lambda pool: self.now_there(job, pool),
            free=lambda pool: self.ledger.free.get(pool, 0),
            claimant=self.ledger.claimant,
        )
        if reserved is None or not isinstance(reason, WaitsForCapacity):
            return reason
        return replace(reason, expected=reserved.at, overdue=self._overdue(reason.pool))

    def _overdue(self, pool: str) -> str | None:
        """The first job on the pool that has outlived what was expected of it, which is why it is waited for anew."""
        holders = (job for job in self.snapshot.active if pool in job.units and not job.stopping)
        return min((job.name for job in holders if self.expected_ends.overdue(job)), default=None)

    # -- what is decided -----------------------------------------------------------------------------------------

    def take(self, job: Job, units: Units) -> None:
        """The job starts on these units."""
        self.shares.take(job, units)
        self.limits.take(job, units)

    def start(self, job: Job, units: Units) -> None:
        """The job starts on these units, which are free."""
        self.ledger.take(units)
        self.take(job, units)
        self.reservations.add_running(units, self.expected_end(job))

    def free(self, victims: Sequence[Job], until: datetime) -> None:
        """These step aside."""
        self.candidates.remove(victims)
        self.shares.preempt(victims)
        for victim in victims:
            self.ledger.release_later(victim.staying, until)
            self.reservations.remove_running(victim.staying, self.expected_ends.end(victim))

    def shrink(self, job: Job, units: Units, until: datetime) -> None:
        """The job gives these units back, and runs on; it is not stopped in the same pass."""
        self.candidates.remove([job])
        self.shares.release_later(job, units)
        self.ledger.release_later(units, until)
        self.reservations.remove_running(units, self.expected_ends.end(job))

    def grow(self, job: Job, units: Units, end: datetime) -> None:
        """The job gets these units, which are free, beside what it holds or starts on."""
        self.ledger.take(units)
        self.shares.add(job, units)
        self.limits.add(job, units)
        self.reservations.add_running(units, end)

    def keep(self, job: Job, units: Units, until: datetime) -> None:
        """These units are kept for the job against all that come after it."""
        self.ledger.claim(Claim(job.name, units, until, self.ranking.rank(job), job.share))
        self.shares.promise(job, units)
        self.limits.take(job, units)
        # It will give them back one day: without that, nobody behind it could ever be reserved for.
        self.reservations.add_running(units, self.expected_end(job))

    def respect(self, job: Job, hold: Hold) -> None:
        """What an earlier pass has freed for the job is kept for it, but from those that outrank it."""
        self.ledger.hold(Claim(job.name, hold.units, hold.until, self.ranking.rank(job), job.share))
        end = self._respected[job.name] = self.expected_end(job)
        self.reservations.add_running(hold.units, end)

    def reserve(self, job: Job, alternatives: Iterable[Units]) -> PlannedReservation | None:
        """Reserve for a blocked job what it could have first; None where that is never expected to be free."""
        there: Callable[[str], int] = lambda pool: self.soon_there(job, pool)  # noqa: E731 -- typed, one line
        return self.reservations.reserve(job, alternatives, self.expected_ends.run_time(job), there)

    def hold_of(self, job: Job) -> Hold | None:
        """What was freed for the job and is still kept for it."""
        return job.hold if job.hold is not None and job.hold.until > self.now else None

    def expected_end(self, job: Job) -> datetime:
        """When a waiting job would end if it started now."""
        return self.now + self.expected_ends.run_time(job)

    def may_preempt_since(self, job: Job) -> datetime:
        """When a newcomer has waited for as long as it has to before it may preempt anybody."""
        delay: timedelta = self.snapshot.policy.preemption.delay if job.wishes.delay is None else job.wishes.delay
        return job.entry_time + delay
