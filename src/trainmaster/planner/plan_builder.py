"""The decision about one waiting job: it starts, other jobs give way to it, or it waits with a reason.

It starts if it fits and delays no reservation. It waits if enough units are being released. Otherwise it takes what it
lacks from warm pools, elastic jobs or victims, or gets a reservation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.domain.capacity.refusals import TRIED_EVERY, Refusal, RefusedKinds, kind_of
from trainmaster.domain.capacity.reported_quotas import QuotaBound, last_reported
from trainmaster.domain.capacity.units import Units, covers
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.sizes import Cause
from trainmaster.domain.jobs.job import Job, Reservation, awaits_capacity, backing_off
from trainmaster.domain.plan import Decision, EndWarm, Preempt, Resize, Snapshot, Start, Wait
from trainmaster.domain.reasons.capacity import (
    BackingOff,
    BehindBackingOff,
    EndsWarmPool,
    KindRefused,
    NextPass,
    NotConsideredYet,
    Preempts,
    PreemptsLater,
    Protected,
    ReservedForOther,
    Shrinks,
    WaitsForCapacity,
    WaitsForRelease,
)
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.times import clock
from trainmaster.planner.back_off import may_lack_again
from trainmaster.planner.elastic.scale_down import ShrinkChoice
from trainmaster.planner.elastic.scale_up import Growth
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.placement.selector import PoolSelector
from trainmaster.planner.preemption.preempt import VictimChoice
from trainmaster.planner.preemption.reclaim import ReclaimOption, ReclaimOptions
from trainmaster.planner.reservations.blocked_reason import infeasible_reason, quota_reason
from trainmaster.planner.state import JobView, PlanState

LOWEST_RANK: PreemptionRank = ()
"""A rank below all others: a barrier of this rank lets no job pass."""
WORK_STARTS = 4
"""Starts of other kinds of jobs that count as one action: they call no SageMaker API, and take little time."""
SPARED_FOR, MAX_SPARED = timedelta(hours=1), timedelta(days=1)
"""Time for which no job gives way to one for which AWS had no capacity although others did."""
_MAX_DOUBLINGS = 5
MAX_VICTIMS = 80
"""Jobs that one Preempt decision stops or shrinks: it is committed as one transaction of at most 100 items."""


@dataclass(slots=True)
class PlanBuilder:
    """The decisions of a plan so far.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        state: what is free, claimed and reserved; every decision is committed to it.
        selector: chooses among alternatives that fit.
        refused: why the manager makes no pool for an infeasible job, by name.
        bounds: the pools whose caps are above the account's quota; their caps in the snapshot are reduced to it.
        decisions: in the order in which they were made.
        recheck_times: times at which reasons end by themselves.
        expected_times: times at which others are expected to end, and with them reasons.
        actions: starts, stops and resizes so far; `max_actions` of the policy bounds them.
        work_starts: starts of other kinds of jobs, several of which count as one action.
        reclaim: the options of blocked jobs to get units.
        elastic_starts: indexes in `decisions` of the starts that could have more than the minimum size.
    """

    snapshot: Snapshot
    now: datetime
    state: PlanState
    selector: PoolSelector
    refused: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, QuotaBound] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    recheck_times: list[datetime] = field(default_factory=list)
    expected_times: list[datetime] = field(default_factory=list)
    actions: int = 0
    work_starts: int = 0
    reclaim: ReclaimOptions = field(init=False)
    elastic_starts: list[int] = field(default_factory=list)
    _shrunk_by: dict[str, int] = field(default_factory=dict)
    _refused_kinds: RefusedKinds = field(init=False)
    _tried: set[tuple[str, bool]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.reclaim = ReclaimOptions(self.state)
        self._refused_kinds = RefusedKinds.of(self.snapshot.records.refusals, self.snapshot.active, self.now)

    def decide(self, job: Job) -> None:
        """Decide about one waiting job; its own Start or Wait is the last decision."""
        state = self.state
        state.release(job)
        view = state.view_for(job)
        caps = state.ledger.caps
        possible = [units for units in job.demand.alternatives if covers(caps, units)]
        if not possible:
            expansion = self.refused.get(job.name, "")
            reason = quota_reason(job, self.snapshot.pools, self.bounds)
            self._wait(job, reason or infeasible_reason(job, self.snapshot.pools, state.ledger.caps, expansion))
        elif job.name in self.snapshot.in_turn:
            self._decide_in_turn(view, possible)
        elif backing_off(job, self.now):
            self._decide_backing_off(view, possible)
        elif (last := self._refused_kinds.holds_back(job)) is not None and state.active_hold(job) is None:
            self._try_refused(view, possible, last)
        else:
            allowed, refusal = _without(possible, view.refusal) if view.has_rules else (possible, None)
            if refusal is None or allowed:
                self._decide_allowed(view, allowed)
            else:
                self._decide_refused(view, possible, refusal)

    def _decide_in_turn(self, view: JobView, possible: list[Units]) -> None:
        """Decide about a job that only this pass reads: it starts if it fits, and others may not pass it in this plan.

        No job gives way to it: the next pass does not read it, and would give the units to others.
        """
        ready = not backing_off(view.job, self.now) and not self.limit_reached()
        allowed = [units for units in possible if ready and view.refusal(units) is None]
        if self.snapshot.warm and self._start_on_warm_pool(view, allowed):
            return
        passing = [units for units in allowed if view.yields_to(units) is None]
        if fitting := [units for units in passing if view.fits_now(units)]:
            self._start(view, fitting)
        elif passing:
            self._block(view, passing, NotConsideredYet())
        else:
            self._wait(view.job, NotConsideredYet())

    def _decide_backing_off(self, view: JobView, possible: list[Units]) -> None:
        """Decide about a job in back-off: where it would fit but AWS lacked instances, others wait for it.

        Where it would not fit, it is blocked like any other job, except that it preempts no jobs there yet. Its other
        pools are as open to it as if those were full in which AWS lacked instances.
        """
        job, backing = view.job, BackingOff(view.job.retry_at or self.now, _cause(view.job))
        allowed = [units for units in possible if view.refusal(units) is None]
        passing, ahead = _without(allowed, view.yields_to)
        later = isinstance(ahead, BehindBackingOff) and ahead.until is not None and ahead.until > backing.until
        reason = ahead if ahead is not None and later else backing
        if not awaits_capacity(job, self.now) or not passing:
            self._wait(job, reason)
            return
        elsewhere = self.state.shortages.elsewhere(job, passing)
        fitting = [units for units in passing if units not in elsewhere and view.fits_now(units)]
        if fitting:
            self.state.back_off(job, fitting)
        if elsewhere:
            self._decide_passing(view, elsewhere, otherwise=reason if fitting else None)
        elif fitting:
            self._wait(job, reason)
        else:
            bounded = any(pool in self.bounds for units in passing for pool in units)
            self._block(view, passing, None if bounded else reason)

    def _try_refused(self, view: JobView, possible: list[Units], last: Refusal) -> None:
        """Decide about a job of a kind that AWS refuses: it starts if it is its turn and it fits, and delays no other.

        In each plan, one job starts that was refused itself, and one that was not: it may differ from those before it.
        """
        job, attempt = view.job, view.job.attempt
        turn = (kind_of(job), attempt is not None and attempt.unstartable)
        due = self.now >= last.next_try or last.job == job.name
        allowed = [units for units in possible if view.refusal(units) is None and view.yields_to(units) is None]
        fitting = [units for units in allowed if view.fits_now(units)]
        if due and fitting and turn not in self._tried:
            self._tried.add(turn)
            self._start(view, fitting)
        else:
            self._wait(job, KindRefused(last.job, self.now + TRIED_EVERY if due else last.next_try))

    def _decide_refused(self, view: JobView, possible: list[Units], reason: Reason) -> None:
        """Decide about a job that rules refuse; only a limit of its share can be met by preemption within the share."""
        at_share_limit = [units for units in possible if view.refused_by_own_share_only(units)]
        soon = [units for units in at_share_limit if not view.missing(units)]
        if soon:
            self._wait_for_release(view, self.selector.order_for_wait(view.job, soon)[0])
        elif at_share_limit:
            self._reclaim_or_block(view, at_share_limit, otherwise=reason)
        else:
            self._wait(view.job, reason)

    def _decide_allowed(self, view: JobView, allowed: list[Units]) -> None:
        """Decide about a job that no rule refuses."""
        if self.snapshot.warm and self._start_on_warm_pool(view, allowed):
            return
        passing, obstacle = _without(self._without_lacking(view.job, allowed), view.yields_to)
        if passing:
            self._decide_passing(view, passing)
        elif isinstance(obstacle, BehindBackingOff) and all(map(view.backs_off_with, allowed)):
            # Blocked, it would keep out smaller jobs, for which AWS may have capacity.
            self._wait(view.job, obstacle)
        else:
            self._block(view, allowed, obstacle)

    def _without_lacking(self, job: Job, allowed: list[Units]) -> list[Units]:
        """Return the alternatives; without those that AWS lately lacked if others are held for the job.

        Else it would leave what other jobs gave it for a start that AWS would probably refuse.
        """
        hold = self.state.active_hold(job)
        if hold is None or hold.units not in allowed:
            return allowed
        return [units for units in allowed if units == hold.units or self.state.shortages.since(job, units) is None]

    def _decide_passing(self, view: JobView, passing: list[Units], otherwise: Reason | None = None) -> None:
        """Decide about a job that need not leave these units to others; if it can have none, it may wait otherwise."""
        soon = [units for units in passing if view.fits_soon(units)]
        if not soon:
            self._reclaim_or_block(view, passing, otherwise)
        elif fitting := [units for units in soon if view.fits_now(units)]:
            self._start(view, fitting)
        else:
            self._wait_for_release(view, self.selector.order_for_wait(view.job, soon)[0])

    def _start_on_warm_pool(self, view: JobView, allowed: list[Units]) -> bool:
        """Start the job on a matching warm pool, which takes no other units; return False if there is none."""
        found = self._matching_warm_pool(view, allowed)
        if found is None:
            return False
        units, pool = found
        self.state.start_on_warm_pool(view.job, units, pool)
        if self.limit_reached():
            self._wait(view.job, NextPass())
        else:
            self.actions += 1
            self.decisions.append(Start(view.job, units, warm=pool))
        return True

    def _matching_warm_pool(self, view: JobView, allowed: list[Units]) -> tuple[Units, WarmPool] | None:
        """Return the first matching warm pool, unless a pool that the job names before it is free.

        Pools that only cover its resources are all alike to the job. Whichever of them the placement policy chose,
        SageMaker would start the job on a warm pool there, so none may be skipped.
        """
        job, in_stock = view.job, self.selector.prefer_available(view.job, allowed)
        named = [units for units in job.demand.named if units in in_stock]
        for units in allowed:
            if (pool := self.state.warm.match(job, units)) is not None:
                return units, pool
            if units in named and view.fits_now(units) and view.yields_to(units) is None:
                return None
        return None

    def _start(self, view: JobView, fitting: list[Units]) -> None:
        job = view.job
        if self.limit_reached():
            self.state.claim(job, fitting[0], self.now)
            self._wait(job, NextPass())
            return
        self._count(job)
        placement = self.selector.place(job, fitting, view.available_now)
        self.state.start(job, placement.units)
        if may_lack_again(job):
            self.state.back_off(job, [placement.units])
        if job.elastic is not None:
            self.elastic_starts.append(len(self.decisions))
        taken, instead = (placement.units, placement.choices), placement.instead_of
        self.decisions.append(Start(job, *taken, cursors=placement.cursors, instead_of=instead))

    def _count(self, job: Job) -> None:
        """Count a start as an action, or as a part of one."""
        if job.work is None:
            self.actions += 1
        else:
            self.work_starts += 1
            self.actions += self.work_starts % WORK_STARTS == 0

    def _wait_for_release(self, view: JobView, units: Units) -> None:
        """Have the job wait for units that are being released, and keep them for it."""
        release_by = self.state.ledger.release_by
        short = [pool for pool, count in units.items() if count > view.available_now(pool)]
        pools = tuple(sorted(short or units))
        until = min([release_by[pool] for pool in pools if pool in release_by], default=self._hold_until())
        self.state.claim(view.job, units, until)
        self._wait(view.job, WaitsForRelease(pools, until))

    def _reclaim_or_block(self, view: JobView, allowed: list[Units], otherwise: Reason | None = None) -> None:
        """Have other jobs give way if they may; otherwise the job is blocked, or waits for `otherwise`."""
        allowed = self.selector.order_for_wait(view.job, allowed)
        options = [self.reclaim.option(view, units) for units in allowed]
        able = [option for option in options if option.sufficient and not self._gives_way_in_vain(view.job, option)]
        if not able and otherwise is not None:
            self._wait(view.job, otherwise)
        elif not able:
            self._wait_for_protected(view, allowed, next((o for o in options if o.choice.protected), None))
        elif (since := view.may_preempt_at()) > self.now:
            self._block(view, allowed, PreemptsLater(since))
        else:
            self._reclaim(view.job, min(able, key=lambda option: (option.choice.highest_rank, option.cost)))

    def _gives_way_in_vain(self, job: Job, option: ReclaimOption) -> bool:
        """Return whether others would give way for a start that AWS would probably refuse again.

        It is so for a day after a refusal for what the job is, or for a quota that is too small for it. Where AWS had
        no capacity for the job itself, it is so for an hour after the first refusal in a row, and twice as long after
        each further one, at most a day.
        """
        if self._refused_kinds.refusal(job) is not None or self._exceeds_last_quota(option.units):
            return True
        lacked = [at for pool in option.units if job.attempt is not None and (at := job.attempt.shortages.get(pool))]
        spared = min(SPARED_FOR * 2 ** min(job.capacity_failures - 1, _MAX_DOUBLINGS), MAX_SPARED)
        return bool(lacked) and self.now < max(lacked) + spared

    def _exceeds_last_quota(self, units: Units) -> bool:
        quotas = ((last_reported(self.snapshot.pools[pool], self.snapshot.catalogue), units[pool]) for pool in units)
        return any(
            each is not None and count > each.limit and self.now < each.at + MAX_SPARED for each, count in quotas
        )

    def _wait_for_protected(self, view: JobView, allowed: list[Units], option: ReclaimOption | None) -> None:
        """Have the job wait for victims that are protected now; reserve the time at which they may stop, or end."""
        state, job = self.state, view.job
        if option is not None and option.choice.until is not None and state.reservations.reservable([option.units]):
            ended = max(map(state.expected_ends.end, option.choice.protected))
            state.reserve_at(job, option.units, min(option.choice.until, ended))
            self._bar(view, [option.units])
            self._wait(job, _protected(option.choice))
        else:
            self._block(view, allowed, None if option is None else _protected(option.choice))

    def _reclaim(self, job: Job, option: ReclaimOption) -> None:
        """End the warm pools, shrink and stop jobs as the option says, and keep what they release for the job.

        At the limit of actions the next pass does so: only the state has it, so that jobs behind do not count on it.
        """
        until = self._hold_until()
        hold, victims, pools = Reservation(option.units, until), option.choice.victims, option.warm.pools
        self._give_way(job, option, until)
        if self.limit_reached():
            self.state.block(job, self.state.ranking.rank(job))
            self._wait(job, NextPass())
            return
        self.actions += len(victims) + len(pools) + len(option.shrinks)
        self.decisions.extend(EndWarm(job, pool, hold) for pool in pools)
        resizes = [resize for chosen in option.shrinks if (resize := self._resize(job, chosen)) is not None]
        items = [*resizes, *victims]
        for first in range(0, len(items), MAX_VICTIMS):
            some = items[first : first + MAX_VICTIMS]
            stop = tuple(item for item in some if isinstance(item, Job))
            self._note_shrunk(shrink := tuple(item for item in some if isinstance(item, Resize)))
            self.decisions.append(Preempt(job, stop, hold, shrink))
        self._wait(job, _reclaim_reason(option, until))

    def _give_way(self, job: Job, option: ReclaimOption, until: datetime) -> None:
        """Count what the option stops, shrinks and ends as releasing, and keep it for the job."""
        state, victims = self.state, option.choice.victims
        state.end_warm_pools(option.warm.pools, until)
        for chosen in option.shrinks:
            state.shrink(chosen.candidate.job, {chosen.candidate.pool: chosen.freed}, until)
            self.reclaim.record_shrink(chosen)
        state.preempt(victims, until)
        self.reclaim.remove(victims)
        state.claim(job, option.units, until)

    def _resize(self, job: Job, chosen: ShrinkChoice) -> Resize | None:
        """Return the resize of a job; None if this plan shrinks it already, and it only goes further down."""
        name = chosen.candidate.job.name
        if (index := self._shrunk_by.get(name)) is None:
            return Resize(chosen.candidate.job, chosen.size, Cause.SHRINK, freed_for=job.name)
        before = self.decisions[index]
        if isinstance(before, Preempt):
            shrinks = (replace(s, size=chosen.size) if s.job.name == name else s for s in before.shrinks)
            self.decisions[index] = replace(before, shrinks=tuple(shrinks))
        return None

    def _note_shrunk(self, shrinks: tuple[Resize, ...]) -> None:
        """Record that the next decision has these resizes."""
        self._shrunk_by |= {resize.job.name: len(self.decisions) for resize in shrinks}

    def _block(self, view: JobView, alternatives: list[Units], reason: Reason | None) -> None:
        """Block the job: set a barrier or make a reservation, as the order asks."""
        state, job, expected = self.state, view.job, None
        alternatives = self.selector.order_for_wait(job, alternatives)
        if isinstance(reason, ReservedForOther) and view.available_soon(reason.pool) <= 0:
            reason = None
        behind_another = state.ledger.any_barrier(alternatives)
        if self._bar(view, alternatives):
            if state.order.reserves and reason is None and not behind_another:
                expected = state.reserve_first(job, alternatives)
        elif state.order.reserves and (reservable := state.reservations.reservable(alternatives)):
            expected = state.reserve(job, reservable, reason)
        self._wait(job, reason or view.shortage(alternatives[0], expected))

    def _bar(self, view: JobView, alternatives: list[Units]) -> bool:
        """Keep others from passing a blocked job where the order lets none pass; return whether that is so."""
        state, job = self.state, view.job
        if view.holds_free_units(alternatives):
            state.block(job, LOWEST_RANK)
        elif state.ranking.strict(job):
            state.block(job, state.ranking.rank(job), beside=not state.order.strict)
        else:
            return False
        return True

    def _wait(self, job: Job, reason: Reason) -> None:
        if self.bounds and isinstance(reason, WaitsForCapacity) and (bound := self.bounds.get(reason.pool)) is not None:
            reason = replace(reason, quota=bound.quota.limit)
            self.recheck_times.append(bound.quota.until)
        self.decisions.append(Wait(job, reason))
        if (until := getattr(reason, "until", None)) is not None:
            (self.expected_times if isinstance(reason, ReservedForOther) else self.recheck_times).append(until)

    def add_growth(self, growth: Growth) -> None:
        """Add the growth of elastic jobs to the decisions."""
        for index, start in growth.starts.items():
            self.decisions[index] = start
        self.decisions.extend(growth.resizes)
        self.recheck_times.extend(growth.recheck_times)

    def actions_left(self) -> int:
        """Return how many more actions the policy allows this pass."""
        return self.snapshot.policy.max_actions - self.actions

    def limit_reached(self) -> bool:
        """Return True if this pass has made as many actions as the policy allows."""
        return self.actions_left() <= 0

    def _hold_until(self) -> datetime:
        return self.now + self.snapshot.policy.reservation_timeout


def _without(
    alternatives: Iterable[Units], reason_against: Callable[[Units], Reason | None]
) -> tuple[list[Units], Reason | None]:
    """Return the alternatives that no reason speaks against, and the reason against the first of the others."""
    left: list[Units] = []
    first: Reason | None = None
    for units in alternatives:
        reason = reason_against(units)
        if reason is None:
            left.append(units)
        elif first is None:
            first = reason
    return left, first


def _reclaim_reason(option: ReclaimOption, until: datetime) -> Reason:
    """Return the reason of a job for which units are being released."""
    victims = tuple(victim.name for victim in option.choice.victims)
    shrinks = tuple(chosen.candidate.job.name for chosen in option.shrinks)
    if victims:
        return Preempts(victims, until, shrinks)
    if shrinks:
        return Shrinks(shrinks, until)
    return EndsWarmPool(tuple(pool.training_job_name for pool in option.warm.pools), until)


def _protected(choice: VictimChoice) -> Reason:
    return Protected(tuple(job.name for job in choice.protected), choice.until)


def _cause(job: Job) -> str:
    last = job.attempt
    reason = (None if last is None else last.reason) or "its last start found no capacity"
    # Where it could only have been in one place, the reason needs no place.
    if last is None or not last.found_no_capacity or last.ended_at is None or len(job.demand.alternatives) < 2:
        return reason
    return f"{' and '.join(sorted(last.units))} had no capacity at {clock(last.ended_at)}: {reason}"
