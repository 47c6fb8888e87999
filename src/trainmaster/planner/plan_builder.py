"""What becomes of one waiting job: it starts, others give way to it, or it waits, with the reason.

It starts where it fits and delays nobody who is reserved for; waits where enough is on the way; else takes what it
lacks from warm pools, and from jobs that shrink or step aside; else is reserved for. It must not choose whose turn it
is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.sizes import Cause
from trainmaster.domain.jobs.job import Hold, Job
from trainmaster.domain.plan import Decision, EndWarm, Preempt, Resize, Snapshot, Start, Wait
from trainmaster.domain.reasons.capacity import (
    BackingOff,
    EndsWarmPool,
    NextPass,
    Preempts,
    PreemptsLater,
    Protected,
    Shrinks,
    WaitsForRelease,
)
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.times import clock
from trainmaster.planner.elastic.scale_down import ShrinkChoice
from trainmaster.planner.placement.selector import PoolSelector
from trainmaster.planner.preemption.preempt import VictimChoice
from trainmaster.planner.preemption.reclaim import ReclaimOption, ReclaimOptions
from trainmaster.planner.reservations.blocked_reason import infeasible_reason
from trainmaster.planner.state import PlanState

LOWEST_RANK: tuple[int, ...] = ()
"""A standing below all others: who bars the rest with it is passed by nobody."""
IMAGE_STARTS = 4
"""Starts of image jobs that count as one action: they ask nothing of SageMaker, and take a fraction of the time."""
MAX_VICTIMS = 80
"""Jobs that one Preempt decision stops or shrinks: it is committed as one transaction, which holds 100 items."""


@dataclass(slots=True)
class PlanBuilder:
    """The decisions of a plan in the making. Thrown away with it.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        figures: what is free, promised, expected and allowed; every decision moves them.
        placer: chooses among alternatives that fit.
        refused: why the manager makes no pool for infeasible jobs, by name.
        decisions: in the order in which they were made.
        untils: until when reasons hold that are a matter of time.
        actions: starts, stops and resizes so far; the policy bounds them.
        image_starts: starts of image jobs, of which several are one action.
        reclaim: how blocked jobs could get units.
        sizable: where in `decisions` the starts are that could have more than the least size.
    """

    snapshot: Snapshot
    now: datetime
    state: PlanState
    selector: PoolSelector
    refused: Mapping[str, str] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    recheck_times: list[datetime] = field(default_factory=list)
    actions: int = 0
    image_starts: int = 0
    reclaim: ReclaimOptions = field(init=False)
    elastic_starts: list[int] = field(default_factory=list)
    _shrunk_by: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reclaim = ReclaimOptions(self.state)

    def consider(self, job: Job) -> None:
        """Decide about one waiting job; its own Start or Wait comes last."""
        state = self.state
        state.look_as(job)
        possible = [units for units in job.demand.alternatives if state.ledger.fits_when_empty(units)]
        if not possible:
            self._wait(
                job, infeasible_reason(job, self.snapshot.pools, state.ledger.caps, self.refused.get(job.name, ""))
            )
        elif backing_off(job, self.now):
            self._wait(job, BackingOff(job.retry_at or self.now, _cause(job)))
        else:
            refused = [state.refusal(job, units) for units in possible]
            open_ = [units for units, reason in zip(possible, refused, strict=True) if reason is None]
            if open_:
                self._consider_open(job, open_)
            else:
                self._consider_refused(job, possible, next(reason for reason in refused if reason is not None))

    def _consider_refused(self, job: Job, possible: list[Units], reason: Reason) -> None:
        """A share at its bound may still have lower jobs of its own step aside; every other rule just has to be met."""
        at_share_limit = [units for units in possible if self.state.crowded(job, units)]
        soon = [units for units in at_share_limit if not self.state.missing(job, units)]
        if soon:
            self._wait_for_release(job, self.selector.order_for_wait(job, soon)[0])
        elif at_share_limit:
            self._reclaim_or_block(job, at_share_limit, otherwise=reason)
        else:
            self._wait(job, reason)

    def _consider_open(self, job: Job, open_: list[Units]) -> None:
        """Decide about a job that no rule keeps from starting."""
        state = self.state
        if self.snapshot.warm and self._start_warm(job, open_):
            return
        behind = [state.behind(job, units) for units in open_]
        passing = [units for units, reason in zip(open_, behind, strict=True) if reason is None]
        if not passing:
            self._block(job, open_, next(reason for reason in behind if reason is not None))
        elif fitting := [units for units in passing if state.fits_now(job, units)]:
            self._start(job, fitting)
        elif soon := [units for units in passing if state.fits_soon(job, units)]:
            self._wait_for_release(job, self.selector.order_for_wait(job, soon)[0])
        else:
            self._reclaim_or_block(job, passing)

    def _start_warm(self, job: Job, open_: list[Units]) -> bool:
        """Start the job on a warm pool that matches it, which takes nothing from anybody; whether there was one."""
        state = self.state
        found = self._warm_match(job, open_)
        if found is None or self.limit_reached():
            return False
        units, pool = found
        self.actions += 1
        state.warm.use(pool)
        state.take(job, units)
        self.decisions.append(Start(job, units, warm=pool))
        return True

    def _warm_match(self, job: Job, open_: list[Units]) -> tuple[Units, WarmPool] | None:
        """The first warm pool that matches, unless something that the job names before it is free.

        Pools that only cover its resources are all alike to it. Whichever of them the placement policy chose, SageMaker
        would start it on a warm pool there, so that none may be passed over.
        """
        state, prefer_available = self.state, self.selector.prefer_available(job, open_)
        named = [units for units in job.demand.named if units in prefer_available]
        for units in open_:
            if (pool := state.warm.match(job, units)) is not None:
                return units, pool
            if units in named and state.fits_now(job, units) and state.behind(job, units) is None:
                return None
        return None

    def _start(self, job: Job, fitting: list[Units]) -> None:
        if self.limit_reached():
            self.state.keep(job, fitting[0], self.now)
            self._wait(job, NextPass())
            return
        self._count(job)
        placement = self.selector.place(job, fitting, lambda pool: self.state.now_there(job, pool))
        self.state.start(job, placement.units)
        if job.elastic is not None:
            self.elastic_starts.append(len(self.decisions))
        taken, instead = (placement.units, placement.choices), placement.instead_of
        self.decisions.append(Start(job, *taken, cursors=placement.cursors, instead_of=instead))

    def _count(self, job: Job) -> None:
        """Put a start down to what a pass may do."""
        if job.image_work is None:
            self.actions += 1
        else:
            self.image_starts += 1
            self.actions += self.image_starts % IMAGE_STARTS == 0

    def _wait_for_release(self, job: Job, units: Units) -> None:
        state = self.state
        short = (pool for pool, count in units.items() if count > state.now_there(job, pool))
        pools = tuple(sorted(short)) or tuple(sorted(units))
        lapses = [state.ledger.lapse[pool] for pool in pools if pool in state.ledger.lapse]
        until = min(lapses, default=self._hold_until())
        state.keep(job, units, until)
        self._wait(job, WaitsForRelease(pools, until))

    def _reclaim_or_block(self, job: Job, open_: list[Units], otherwise: Reason | None = None) -> None:
        """Others give way to the job where they may; else it is blocked, or waits for `otherwise`."""
        open_ = self.selector.order_for_wait(job, open_)
        ways = [self.reclaim.option(job, units) for units in open_]
        able = [
            (option.choice.highest_rank, option.cost, index) for index, option in enumerate(ways) if option.sufficient
        ]
        if not able and otherwise is not None:
            self._wait(job, otherwise)
        elif not able:
            self._wait_for_protected(job, open_, next((option for option in ways if option.choice.protected), None))
        elif (since := self.state.may_preempt_since(job)) > self.now:
            self._block(job, open_, PreemptsLater(since))
        elif self.limit_reached():
            self.state.ledger.bar(job, self.state.ranking.rank(job))
            self._wait(job, NextPass())
        else:
            self._reclaim(job, ways[min(able)[2]])

    def _wait_for_protected(self, job: Job, open_: list[Units], option: ReclaimOption | None) -> None:
        """Nobody may step aside now; where that is only a matter of time, that time is reserved."""
        state = self.state
        if option is not None and option.choice.until is not None and state.reservations.reservable([option.units]):
            state.reservations.reserve_at(job, option.units, option.choice.until, state.expected_ends.run_time(job))
            self._wait(job, _protected(option.choice))
        else:
            self._block(job, open_, None if option is None else _protected(option.choice))

    def _reclaim(self, job: Job, option: ReclaimOption) -> None:
        """End the warm pools, have jobs shrink and the victims step aside, and keep what they free."""
        state, until = self.state, self._hold_until()
        hold, victims, pools = Hold(option.units, until), option.choice.victims, option.warm.pools
        self.actions += len(victims) + len(pools) + len(option.shrinks)
        state.warm.end(pools)
        for pool in pools:
            state.ledger.release_later(pool.units, until)
            self.decisions.append(EndWarm(job, pool, hold))
        fresh = [resize for chosen in option.shrinks if (resize := self._shrink(job, chosen, until)) is not None]
        state.free(victims, until)
        self.reclaim.remove(victims)
        state.keep(job, option.units, until)
        items = [*fresh, *victims]
        for first in range(0, len(items), MAX_VICTIMS):
            some = items[first : first + MAX_VICTIMS]
            stop = tuple(item for item in some if isinstance(item, Job))
            self._note_shrunk(shrink := tuple(item for item in some if isinstance(item, Resize)))
            self.decisions.append(Preempt(job, stop, hold, shrink))
        self._wait(job, _taken(option, until))

    def _shrink(self, job: Job, chosen: ShrinkChoice, until: datetime) -> Resize | None:
        """Have a job give; None where it gives for an earlier one of this plan already, and just gives more."""
        candidate, name = chosen.candidate, chosen.candidate.job.name
        self.state.shrink(candidate.job, {candidate.pool: chosen.freed}, until)
        self.reclaim.shrink(chosen)
        if (index := self._shrunk_by.get(name)) is None:
            return Resize(candidate.job, chosen.size, Cause.SHRINK, freed_for=job.name)
        before = self.decisions[index]
        if isinstance(before, Preempt):
            shrinks = (replace(each, size=chosen.size) if each.job.name == name else each for each in before.shrinks)
            self.decisions[index] = replace(before, shrinks=tuple(shrinks))
        return None

    def _note_shrunk(self, shrinks: tuple[Resize, ...]) -> None:
        """The next decision has these."""
        self._shrunk_by |= {resize.job.name: len(self.decisions) for resize in shrinks}

    def _block(self, job: Job, alternatives: list[Units], reason: Reason | None) -> None:
        """The job cannot go on now: it bars its equals, or is reserved for, as the order wants it."""
        state, reserved = self.state, None
        alternatives = self.selector.order_for_wait(job, alternatives)
        if state.held_for(job, alternatives):
            state.ledger.bar(job, LOWEST_RANK)
        elif state.ranking.strict(job):
            state.ledger.bar(job, state.ranking.rank(job))
        elif state.ranking.reserves and (with_room := state.reservations.reservable(alternatives)):
            reserved = state.reserve(job, with_room)
        self._wait(job, reason or state.shortage_reason(job, alternatives[0], reserved))

    def _wait(self, job: Job, reason: Reason) -> None:
        self.decisions.append(Wait(job, reason))
        if (until := getattr(reason, "until", None)) is not None:
            self.recheck_times.append(until)

    def limit_reached(self) -> bool:
        """Whether this pass has done as much as one pass may."""
        return self.actions >= self.snapshot.policy.most_actions

    def _hold_until(self) -> datetime:
        return self.now + self.snapshot.policy.hold_for


def backing_off(job: Job, now: datetime) -> bool:
    """Whether the job's last start met no capacity, so that it is not tried again yet."""
    return job.retry_at is not None and job.retry_at > now


def _taken(option: ReclaimOption, until: datetime) -> Reason:
    """What is under way for a job that takes what it lacks."""
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
    reason = (None if last is None else last.reason) or "its last start met no capacity"
    # Where it could only have been in one place, the reason needs no place.
    if last is None or not last.lacked or last.ended_at is None or len(job.demand.alternatives) < 2:
        return reason
    return f"{' and '.join(sorted(last.units))} had no capacity at {clock(last.ended_at)}: {reason}"
