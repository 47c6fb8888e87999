"""The state of one plan, and the view that each job has of it.

`PlanState` is built once from the snapshot. Stages read it through `view_for(job)`, which changes nothing, and record
each decision with one of its commit methods: `start`, `claim`, `preempt`, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from trainmaster.domain.capacity.units import Kind, Units
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.scaling import ScalingCurve
from trainmaster.domain.jobs.job import Job, Reservation, backing_off
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons.capacity import Behind, BehindBackingOff, ReservedForOther, WaitsForCapacity
from trainmaster.domain.reasons.reason import Reason
from trainmaster.planner.orders import order_of
from trainmaster.planner.orders.ranking import PreemptionRank, Ranking
from trainmaster.planner.orders.strategy import OrderStrategy
from trainmaster.planner.placement.later_units import LaterUnits
from trainmaster.planner.placement.ledger import Claim, Ledger, open_ledger
from trainmaster.planner.placement.plan_windows import window_refusal
from trainmaster.planner.placement.shortages import CapacityShortages
from trainmaster.planner.placement.warm_pools import WarmPools
from trainmaster.planner.preemption.candidates import Permits
from trainmaster.planner.preemption.preempt import Candidates, VictimChoice
from trainmaster.planner.reservations.blocked_reason import shortage_reason
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.reservations.reservations import PlannedReservation, Reservations
from trainmaster.planner.sharing.limits import Limits
from trainmaster.planner.sharing.shares import Shares

_NONE_EXEMPT: Units = {}


@dataclass(slots=True)
class PlanState:
    """The units that are free, claimed, reserved and expected, and what rules allow, as of the decisions so far.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        order: the strategy of the queue's order.
        ranking: order and preemption ranks of the jobs.
        ledger: free, releasing and claimed units.
        shares: units by share, and what shares may have.
        limits: limits of users, groups and budgets.
        warm: idle warm pools.
        candidates: active jobs that may be preempted.
        expected_ends: when jobs end.
        reservations: reservations of blocked jobs.
        has_training_plans: whether any pool is a training plan, which has a time window.
        shortages: what AWS lately lacked.
        elastic_jobs: active jobs that can be resized.
    """

    snapshot: Snapshot
    now: datetime
    order: OrderStrategy
    ranking: Ranking
    ledger: Ledger
    shares: Shares
    limits: Limits
    warm: WarmPools
    candidates: Candidates
    expected_ends: ExpectedEnds
    reservations: Reservations
    shortages: CapacityShortages
    has_training_plans: bool = False
    elastic_jobs: Sequence[Job] = ()
    _hold_ends: dict[str, datetime] = field(default_factory=dict)
    _curves: dict[str, ScalingCurve] = field(default_factory=dict)
    _started: list[tuple[Job, Units]] = field(default_factory=list)
    _later: LaterUnits | None = None
    _first_at: dict[str, datetime] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> PlanState:
        """Return the state before any decision."""
        order, expected_ends = order_of(snapshot.policy), ExpectedEnds(snapshot, now)
        ranking = order.ranking(snapshot, now)
        candidates = Candidates.of(snapshot, now, ranking.rank)

        def running(pool: str) -> Iterable[tuple[datetime, int]]:
            holders = snapshot.holders.get(pool, ())
            return ((expected_ends.end(job), count) for job in holders if (count := job.staying.get(pool, 0)))

        return cls(
            snapshot=snapshot,
            now=now,
            order=order,
            ranking=ranking,
            ledger=open_ledger(snapshot, now),
            shares=Shares(snapshot, now, candidates.units_below, candidates.rank),
            limits=Limits(snapshot, now),
            warm=WarmPools.of(snapshot, now),
            candidates=candidates,
            expected_ends=expected_ends,
            reservations=Reservations(now, snapshot.policy.reservations, running),
            shortages=CapacityShortages(snapshot, now),
            has_training_plans=any(pool.kind is Kind.TRAINING_PLAN for pool in snapshot.pools.values()),
            elastic_jobs=[job for job in snapshot.active if job.elastic is not None],
        )

    # -- views -------------------------------------------------------------------------------------------------------

    def view_for(self, job: Job) -> JobView:
        """Return the view of a waiting job: neither its own claim binds it nor holds of jobs that it outranks."""
        ledger = self.ledger
        if not ledger.holds and job.name not in ledger.claims:
            return JobView(self, job, _NONE_EXEMPT)
        share = job.share if self.shares.enabled else None
        return JobView(self, job, ledger.exempt(job.name, self.ranking.rank(job), share))

    def view_for_growth(self, job: Job) -> JobView:
        """Return the view of a job that asks for more units than it has: every claim binds it, whatever its rank."""
        return JobView(self, job, _NONE_EXEMPT)

    def active_hold(self, job: Job) -> Reservation | None:
        """Return the hold that an earlier pass gave the job, if it has not ended."""
        return job.reservation if job.reservation is not None and job.reservation.until > self.now else None

    def expected_end(self, job: Job) -> datetime:
        """Return when a waiting job would end if it started now."""
        return self.now + self.expected_ends.run_time(job)

    def curve(self, job: Job) -> ScalingCurve:
        """Return how an elastic job is believed to scale, computed when first asked for."""
        if job.name not in self._curves:
            self._curves[job.name] = self.snapshot.records.history.curve(job)
        return self._curves[job.name]

    # -- commits -----------------------------------------------------------------------------------------------------

    def restore_reservation(self, job: Job, reservation: Reservation) -> None:
        """Keep units that an earlier pass freed for the job, except from jobs that outrank it."""
        self.ledger.restore_reservation(
            Claim(job.name, reservation.units, reservation.until, self.ranking.rank(job), job.share)
        )
        end = self._hold_ends[job.name] = self.expected_end(job)
        self.reservations.add_running(reservation.units, end)

    def release(self, job: Job) -> None:
        """Remove what is kept for a job: the plan decides about it now."""
        if job.reservation is None and job.name not in self.ledger.claims:
            return
        if (end := self._hold_ends.pop(job.name, None)) is not None:
            self.reservations.remove_running(self.ledger.claims[job.name].units, end)
        self.ledger.release_claim(job.name)
        self.shares.release(job)
        self.limits.release(job)

    def claim(self, job: Job, units: Units, until: datetime) -> None:
        """Keep units for a job against all jobs that the plan decides about later."""
        self.ledger.claim(Claim(job.name, units, until, self.ranking.rank(job), job.share))
        self.shares.promise(job, units)
        self.limits.take(job, units)
        # The job gives the units back when it ends; without that, no job behind it could get a reservation.
        self.reservations.add_running(units, self.expected_end(job))

    def start(self, job: Job, units: Units) -> None:
        """Start a job on free units."""
        self._started.append((job, units))
        self.ledger.take(units)
        self.shares.take(job, units)
        self.limits.take(job, units)
        self.reservations.add_running(units, self.expected_end(job))

    def start_on_warm_pool(self, job: Job, units: Units, pool: WarmPool) -> None:
        """Start a job on the units of a warm pool, which are not free to other jobs."""
        self.warm.use(pool)
        self.shares.take(job, units)
        self.limits.take(job, units)

    def end_warm_pools(self, pools: Sequence[WarmPool], until: datetime) -> None:
        """End idle warm pools; their units are releasing until a time at most."""
        self.warm.end(pools)
        for pool in pools:
            self.ledger.release_later(pool.units, until)

    def preempt(self, victims: Sequence[Job], until: datetime) -> None:
        """Stop active jobs; their units are releasing until a time at most."""
        self.candidates.remove(victims)
        self.shares.preempt(victims)
        for victim in victims:
            self.ledger.release_later(victim.staying, until)
            self.reservations.remove_running(victim.staying, self.expected_ends.end(victim))

    def shrink(self, job: Job, units: Units, until: datetime) -> None:
        """Have a job release units and run on; this plan does not stop it as well."""
        self.candidates.remove([job])
        self.shares.release_later(job, units)
        self.ledger.release_later(units, until)
        self.reservations.remove_running(units, self.expected_ends.end(job))

    def grow(self, job: Job, units: Units, end: datetime) -> None:
        """Give a job that runs or starts more units, which are free, until its expected end."""
        self.ledger.take(units)
        self.shares.add(job, units)
        self.limits.add(job, units)
        self.reservations.add_running(units, end)

    def block(self, job: Job, rank: PreemptionRank, *, beside: bool = False) -> None:
        """Keep jobs of this rank or less from passing a blocked job, or with `beside` from delaying it.

        They then pass on units that it can never use. With shares none passes: limits depend on what a share holds.
        """
        self.ledger.add_barrier(job, rank, self._left_beside(job) if beside and not self.shares.enabled else {})

    def _left_beside(self, job: Job) -> Units:
        """Return the units that a blocked job can never use, less those that jobs behind it in the queue hold."""
        snapshot, caps = self.snapshot, self.ledger.caps
        if self._later is None:
            self._later = LaterUnits.of(snapshot.active)
        possible = [units for units in job.demand.alternatives if self.ledger.fits_when_empty(units)]
        left: dict[str, int] = {}
        for pool in {name for units in possible for name in units}:
            usable = caps[pool] - snapshot.external.get(pool, 0) - max(units.get(pool, 0) for units in possible)
            started = sum(units.get(pool, 0) for other, units in self._started if other.order > job.order)
            left[pool] = usable - self._later.held(pool, job) - started
        return left

    def back_off(self, job: Job, alternatives: Iterable[Units]) -> None:
        """Keep jobs from starting before a job in back-off where it would fit.

        These are jobs of lower priority, and those of the same for which AWS probably lacks instances as well.
        """
        pools = {pool for units in alternatives for pool in units}
        self.ledger.add_back_off(job, {pool: self.shortages.lacking(job, pool) for pool in pools})

    def reserve_first(self, job: Job, alternatives: Iterable[Units]) -> datetime | None:
        """Return when a job that no other may pass can first have one of these units; None if never.

        Jobs behind it are not expected to start before.
        """
        available = self.view_for(job).available_soon
        at = self.reservations.reserve_first(alternatives, self.expected_ends.run_time(job), available)
        if at is not None:
            self._note_first(job, at)
        return at

    def reserve(self, job: Job, alternatives: Iterable[Units], reason: Reason | None) -> datetime | None:
        """Reserve the alternative that a blocked job can have first; return from when, None if it is never free.

        A job that yields to another is not expected to start then. It cannot start before one that it may not pass.
        """
        available, duration = self.view_for(job).available_soon, self.expected_ends.run_time(job)
        since = self._first_at.get(reason.pool) if isinstance(reason, Behind) else None
        reserved = self.reservations.reserve(job, alternatives, duration, available, since)
        if reserved is None:
            return None
        if isinstance(reason, Behind | BehindBackingOff):
            reserved.expected = None
        return reserved.at

    def reserve_at(self, job: Job, units: Units, at: datetime) -> None:
        """Reserve units from a time at which the job can certainly have them, or sooner if they are free sooner."""
        available, duration = self.view_for(job).available_soon, self.expected_ends.run_time(job)
        found = self.reservations.first([units], duration, available)
        at = at if found is None else min(found[0], at)
        self.reservations.reserve_at(job, units, at, duration)
        if self.ranking.strict(job):
            self._note_first(job, at)

    def _note_first(self, job: Job, at: datetime) -> None:
        """Note when the first job that others may not pass is expected to start, where jobs wait behind it."""
        for units in job.demand.alternatives:
            for pool in units:
                self._first_at.setdefault(pool, at)


class JobView(NamedTuple):
    """The state as one job may use it. Reading it changes nothing, for this job or any other.

    A tuple, since a plan makes one for each job that it decides about.

    Attributes:
        state: the state of the plan, as of the decisions so far.
        job: the job.
        exempt: claimed units that do not bind the job, by pool.
    """

    state: PlanState
    job: Job
    exempt: Units

    # -- units -------------------------------------------------------------------------------------------------------

    def available_now(self, pool: str) -> int:
        """Return the units of a pool that the job could have at once."""
        state, exempt = self.state, self.exempt.get(pool, 0)
        if not state.shares.enabled:
            return state.ledger.available_now(pool, exempt)
        idle = state.ledger.free.get(pool, 0) - state.shares.withheld(self.job, pool)
        return min(idle, self.available_soon(pool))

    def available_soon(self, pool: str) -> int:
        """Return the units of a pool that the job could have without preemption, once releasing units are free."""
        state = self.state
        available = state.ledger.available_soon(pool, self.exempt.get(pool, 0))
        return available - state.shares.withheld(self.job, pool, soon=True) if state.shares.enabled else available

    def fits_now(self, units: Units) -> bool:
        """Return True if the job could have these units at once."""
        for pool, count in units.items():  # noqa: SIM110 -- a hot path, where a generator doubles the time
            if self.available_now(pool) < count:
                return False
        return True

    def fits_soon(self, units: Units) -> bool:
        """Return True if the job could have these units without preemption, once releasing units are free."""
        for pool, count in units.items():  # noqa: SIM110 -- the same
            if self.available_soon(pool) < count:
                return False
        return True

    def missing(self, units: Units) -> Units:
        """Return what must be freed for the job: what pools lack, or what its share holds beyond a limit."""
        shares, missing = self.state.shares, {}
        excess = (shares.excess(self.job, units) if shares.enabled else None) or {}
        for pool, count in units.items():
            if (lacking := max(count - self.available_soon(pool), excess.get(pool, 0))) > 0:
                missing[pool] = lacking
        return missing

    # -- rules -------------------------------------------------------------------------------------------------------

    @property
    def has_rules(self) -> bool:
        """True if any rule could keep the job from idle units, which is so of few jobs without shares."""
        state = self.state
        return state.shares.enabled or state.has_training_plans or self.job.group is not None

    def refusal(self, units: Units) -> Reason | None:
        """Return the rule that keeps the job from these units even if they are idle; None if there is none."""
        state = self.state
        return (
            state.limits.refusal(self.job, units)
            or state.shares.refusal(self.job, units)
            or (self.window_refusal(units) if state.has_training_plans else None)
        )

    def refused_by_own_share_only(self, units: Units) -> bool:
        """Return True if only what the job's own share holds keeps it from these units."""
        if self.state.limits.refusal(self.job, units) or self.state.shares.excess(self.job, units) is None:
            return False
        return self.window_refusal(units) is None

    def window_refusal(self, units: Units) -> Reason | None:
        """Return why a training plan's time window keeps the job from these units; None if it does not."""
        snapshot = self.state.snapshot
        return window_refusal(self.job, units, snapshot.pools, self.state.now, snapshot.records.history)

    # -- other jobs --------------------------------------------------------------------------------------------------

    def yields_to(self, units: Units) -> Reason | None:
        """Return why the job must leave these units to waiting jobs before it; None if it may have them."""
        state, job, ledger = self.state, self.job, self.state.ledger
        reserved_there = state.reservations.any_on(units)
        if not (ledger.awaiting or ledger.barriers or reserved_there):
            return None
        owner = state.shares.enabled and state.shares.within_nominal(job, units)
        if (ahead := ledger.back_off(job, units, owner=owner)) is not None:
            pool, first = ahead
            return BehindBackingOff(first.name, pool, first.retry_at if backing_off(first, state.now) else None)
        hold = state.active_hold(job)
        if hold is not None and hold.units == units:
            return None
        if ledger.barriers:
            barrier = ledger.barrier(job, state.ranking.rank_when_running(job), units, owner=owner)
            if barrier is not None and not ledger.fits_beside(job, units):
                return Behind(barrier[1].name, barrier[0])
        if not reserved_there:
            return None
        found = state.reservations.conflict(units, state.expected_end(job), only=job.share if owner else None)
        if found is None or self._preemptible_for(found[1]):
            return None
        pool, reserved = found
        free = max(min(self.available_now(pool), reserved.spare[pool]), 0)
        until = reserved.at if reserved.at > state.now else None
        return ReservedForOther(reserved.job.name, pool, until, units[pool], free)

    def backs_off_with(self, units: Units) -> bool:
        """Return True if it would fit, but AWS lacked no more for a job of its priority that is tried again first."""
        ahead = self.state.ledger.back_off(self.job, units)
        return ahead is not None and ahead[1].priority == self.job.priority and self.fits_now(units)

    def holds_free_units(self, alternatives: Iterable[Units]) -> bool:
        """Return True if the order keeps all free units for this job while it is blocked."""
        holds = self.state.ranking.holds_free_units
        for units in alternatives:  # noqa: SIM110 -- a hot path
            if holds(self.job, units, self.available_soon):
                return True
        return False

    def _preemptible_for(self, reserved: PlannedReservation) -> bool:
        """Return True if the job with the reservation could preempt this job in time, and so loses nothing by it."""
        state = self.state
        outranked = state.ranking.rank(self.job) < state.ranking.rank(reserved.job)
        same_share = not state.shares.enabled or self.job.share == reserved.job.share
        return outranked and same_share and state.candidates.preemptible_by(self.job, reserved.at)

    # -- preemption --------------------------------------------------------------------------------------------------

    def may_preempt_at(self) -> datetime:
        """Return the time from which the job may preempt others: its entry and the preemption delay."""
        rules = self.state.snapshot.policy.preemption
        delay: timedelta = (
            rules.delay if self.job.preemption_overrides.delay is None else self.job.preemption_overrides.delay
        )
        return self.job.entry_time + delay

    def victims(self, units: Units, missing: Units) -> VictimChoice:
        """Return the jobs to preempt so that the job, to start on `units`, gets what is missing."""
        shares, candidates = self.state.shares, self.state.candidates
        if not shares.enabled:
            return candidates.victims(self.job, missing)
        key = (self.job.share, shares.version, *sorted(units.items()))
        return candidates.victims(self.job, missing, self.permits(units, missing), key)

    def permits(self, units: Units, missing: Units, before: Sequence[Job] = ()) -> Permits | None:
        """Return the rule of which jobs this job may preempt; None if rank alone decides.

        Args:
            units: what the job is to start on.
            missing: what it lacks, by pool.
            before: parts of jobs that are taken in any case.
        """
        state, job, rank = self.state, self.job, self.state.ranking.rank
        if not state.shares.enabled:
            return None

        def permits(victim: Job, taken: Sequence[Job]) -> bool:
            outranks = rank(victim) < rank(job)
            gone = [*before, *taken] if before else taken
            return state.shares.may_preempt(job, units, victim, gone, outranks=outranks, missing=missing)

        return permits

    # -- reasons -----------------------------------------------------------------------------------------------------

    def shortage(self, units: Units, expected: datetime | None) -> Reason:
        """Return the shortage that blocks the job, with the time at which units are expected to be free for it."""
        ledger = self.state.ledger
        reason = shortage_reason(units, self.available_now, ledger.free, ledger.claimant, self.state.now)
        if expected is None or not isinstance(reason, WaitsForCapacity):
            return reason
        # A holder that runs longer than expected moves that time.
        holder = self.state.expected_ends.overdue_holder(reason.pool)
        return replace(reason, expected=expected, overdue=holder)
