"""What a pass decides: the one public function of the planner.

Jobs are considered in turn. Each starts where it fits and delays nobody who is reserved for; waits where enough is
on the way; else takes what it lacks from warm pools and from jobs that it may displace; else is reserved for, and
waits with the reason. It must not read a clock or remember anything: all it needs is in the snapshot, all it wants
remembered is in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Hold, Job
from trainmaster.domain.plan import Decision, EndWarm, Plan, Preempt, Reservation, Snapshot, Start, Wait
from trainmaster.domain.reasons import (
    BackingOff,
    EndsWarmPool,
    NextPass,
    Preempts,
    PreemptsLater,
    Protected,
    Reason,
    WaitsForRelease,
)
from trainmaster.domain.resolving import resolve, with_changes
from trainmaster.domain.warm import WarmPool
from trainmaster.planner.alike import Alike
from trainmaster.planner.expand import changes
from trainmaster.planner.figures import Figures
from trainmaster.planner.place import Placer
from trainmaster.planner.preempt import Choice
from trainmaster.planner.share import turns
from trainmaster.planner.shortage import never
from trainmaster.planner.warm import InTheWay

if TYPE_CHECKING:
    from random import Random

ABSOLUTE: tuple[int, ...] = ()
"""A standing below all others: who bars the rest with it is passed by nobody."""
MOST_VICTIMS = 80
"""Victims of one Preempt decision: it is committed as one transaction, which holds 100 items."""


def schedule(snapshot: Snapshot, now: datetime, rng: Random) -> Plan:
    """Decide what starts, what steps aside, and why the rest waits.

    Args:
        snapshot: all that the pass read.
        now: the time of the pass, UTC.
        rng: seeded by the pass number, for policies that draw.

    Equal arguments give an equal plan. The plan never exceeds a cap: starts use only units that are free now.
    """
    snapshot = resolve(snapshot)
    changed = changes(snapshot, now)
    snapshot = with_changes(snapshot, changed)
    placer = Placer(snapshot, rng)
    planning = _Planning(snapshot, now, Figures.of(snapshot, now), Alike(snapshot), placer, [*changed])
    planning.respect_holds()
    for job in planning.turns():
        planning.consider(job)
    return planning.plan()


@dataclass(frozen=True, slots=True)
class _Way:
    """How a blocked job could get units: what is ended and who steps aside for it."""

    units: Units
    warm: InTheWay
    choice: Choice

    @property
    def open(self) -> bool:
        """Whether that frees all that is missing."""
        return bool(self.choice.victims) or (bool(self.warm.pools) and not self.warm.missing)


@dataclass(slots=True)
class _Planning:
    """A plan in the making."""

    snapshot: Snapshot
    now: datetime
    figures: Figures
    alike: Alike
    placer: Placer
    decisions: list[Decision] = field(default_factory=list)
    actions: int = 0

    def plan(self) -> Plan:
        """What has been decided, and when it could change by itself."""
        reserved = tuple(Reservation(each.job.name, each.units, each.at) for each in self.figures.reservations.made)
        untils = [getattr(decision.reason, "until", None) for decision in self.decisions if isinstance(decision, Wait)]
        moments = (*untils, *(each.at for each in reserved), self.figures.ranking.changes_at())
        later = (moment for moment in moments if moment is not None and moment > self.now)
        return Plan(tuple(self.decisions), min(later, default=None), reserved)

    def respect_holds(self) -> None:
        """What was freed for a job is kept for it."""
        for job in self.snapshot.waiting:
            if (hold := self.figures.hold_of(job)) is not None and not self._backing_off(job):
                self.figures.respect(job, hold)

    def turns(self) -> Iterator[Job]:
        """The waiting jobs in the order in which they are considered."""
        figures = self.figures
        ordered = figures.ranking.in_order(self.snapshot.waiting)
        if self.snapshot.warm:
            runs = (list(run) for _, run in groupby(ordered, key=figures.ranking.standing))
            ordered = [
                job for run in runs for job in (run if figures.ranking.strict(run[0]) else figures.warm.first(run))
            ]
        return turns(ordered, figures.shares)

    def consider(self, job: Job) -> None:
        """Decide about one waiting job; its own Start or Wait comes last."""
        figures = self.figures
        if job.name in figures.ledger.claims:
            # What was kept for this job may be there for others that found nothing before.
            self.alike.forget()
        kind = self.alike.kind(job, figures.ranking.rank(job), by_past=figures.ranking.reserves)
        if (reason := self.alike.reason(kind)) is not None:
            self._wait(job, reason)
            return
        reserved = len(figures.reservations.made)
        self._consider(job)
        if reserved == len(figures.reservations.made):
            self.alike.note(kind, getattr(self.decisions[-1], "reason", None))

    def _consider(self, job: Job) -> None:
        figures = self.figures
        figures.look_as(job)
        possible = [units for units in job.demand.alternatives if figures.ledger.could_ever(units)]
        if not possible:
            self._wait(job, never(job, self.snapshot.pools, figures.ledger.caps))
        elif self._backing_off(job):
            self._wait(job, BackingOff(job.retry_at or self.now, _cause(job)))
        else:
            refused = [figures.refusal(job, units) for units in possible]
            open_ = [units for units, reason in zip(possible, refused, strict=True) if reason is None]
            if open_:
                self._consider_open(job, open_)
            else:
                self._consider_refused(job, possible, next(reason for reason in refused if reason is not None))

    def _consider_refused(self, job: Job, possible: list[Units], reason: Reason) -> None:
        """A share at its bound may still have lower jobs of its own step aside; every other rule just has to be met."""
        crowded = [units for units in possible if self.figures.crowded(job, units)]
        soon = [units for units in crowded if not self.figures.missing(job, units)]
        if soon:
            self._wait_for_release(job, soon[0])
        elif crowded:
            self._make_way(job, crowded, otherwise=reason)
        else:
            self._wait(job, reason)

    def _consider_open(self, job: Job, open_: list[Units]) -> None:
        """Decide about a job that no rule keeps from starting."""
        figures = self.figures
        if self._start_warm(job, open_):
            return
        behind = [figures.behind(job, units) for units in open_]
        passing = [units for units, reason in zip(open_, behind, strict=True) if reason is None]
        if not passing:
            self._block(job, open_, next(reason for reason in behind if reason is not None))
        elif fitting := [units for units in passing if figures.fits_now(job, units)]:
            self._start(job, fitting)
        elif soon := [units for units in passing if figures.fits_soon(job, units)]:
            self._wait_for_release(job, soon[0])
        else:
            self._make_way(job, passing)

    def _start_warm(self, job: Job, open_: list[Units]) -> bool:
        """Start the job on a warm pool that matches it, which takes nothing from anybody; whether there was one."""
        figures = self.figures
        found = self._warm_match(job, open_)
        if found is None or self._spent():
            return False
        units, pool = found
        self.actions += 1
        figures.warm.use(pool)
        figures.take(job, units)
        self.decisions.append(Start(job, units, warm=pool))
        return True

    def _warm_match(self, job: Job, open_: list[Units]) -> tuple[Units, WarmPool] | None:
        """The first warm pool that matches, unless something that the job names before it is free."""
        figures = self.figures
        for units in open_:
            if (pool := figures.warm.match(job, units)) is not None:
                return units, pool
            if figures.fits_now(job, units) and figures.behind(job, units) is None:
                return None
        return None

    def _start(self, job: Job, fitting: list[Units]) -> None:
        if self._spent():
            self.figures.keep(job, fitting[0], self.now)
            self._wait(job, NextPass())
            return
        self.actions += 1
        placement = self.placer.place(job, fitting, lambda pool: self.figures.now_there(job, pool))
        self.figures.start(job, placement.units)
        self.decisions.append(Start(job, placement.units, placement.choices, cursors=placement.cursors))

    def _wait_for_release(self, job: Job, units: Units) -> None:
        figures = self.figures
        short = (pool for pool, count in units.items() if count > figures.now_there(job, pool))
        pools = tuple(sorted(short)) or tuple(sorted(units))
        lapses = [figures.ledger.lapse[pool] for pool in pools if pool in figures.ledger.lapse]
        until = min(lapses, default=self._lapse())
        figures.keep(job, units, until)
        self._wait(job, WaitsForRelease(pools, until))

    def _make_way(self, job: Job, open_: list[Units], otherwise: Reason | None = None) -> None:
        """Others give way to the job where they may; else it is blocked, or waits for `otherwise`."""
        ways = [self._way(job, units) for units in open_]
        able = [(way.choice.highest, way.choice.cost, index) for index, way in enumerate(ways) if way.open]
        if not able and otherwise is not None:
            self._wait(job, otherwise)
        elif not able:
            self._wait_for_protected(job, open_, next((way for way in ways if way.choice.protected), None))
        elif (since := self.figures.may_preempt_since(job)) > self.now:
            self._block(job, open_, PreemptsLater(since))
        elif self._spent():
            self.figures.ledger.bar(job, self.figures.ranking.standing(job))
            self._wait(job, NextPass())
        else:
            self._take(job, ways[min(able)[2]])

    def _wait_for_protected(self, job: Job, open_: list[Units], way: _Way | None) -> None:
        """Nobody may step aside now; where that is only a matter of time, that time is reserved."""
        figures = self.figures
        if way is not None and way.choice.until is not None and figures.reservations.room(job):
            figures.reservations.promise(job, way.units, way.choice.until, figures.expect.run_time(job))
            self._wait(job, _protected(way.choice))
        else:
            self._block(job, open_, None if way is None else _protected(way.choice))

    def _way(self, job: Job, units: Units) -> _Way:
        missing = self.figures.missing(job, units)
        warm = self.figures.warm.in_the_way(job, missing) if self.snapshot.warm else InTheWay(missing=missing)
        choice = self.figures.victims(job, units, warm.missing) if warm.missing else Choice()
        return _Way(units, warm, choice)

    def _take(self, job: Job, way: _Way) -> None:
        """End the warm pools and have the victims step aside, and keep what they free."""
        figures, until = self.figures, self._lapse()
        hold, victims, pools = Hold(way.units, until), way.choice.victims, way.warm.pools
        self.actions += len(victims) + len(pools)
        figures.warm.end(pools)
        for pool in pools:
            figures.ledger.free_soon(pool.units, until)
            self.decisions.append(EndWarm(job, pool, hold))
        figures.free(victims, until)
        figures.keep(job, way.units, until)
        for first in range(0, len(victims), MOST_VICTIMS):
            self.decisions.append(Preempt(job, victims[first : first + MOST_VICTIMS], hold))
        if victims:
            self._wait(job, Preempts(tuple(victim.name for victim in victims), until))
        else:
            self._wait(job, EndsWarmPool(tuple(pool.training_job_name for pool in pools), until))

    def _block(self, job: Job, alternatives: list[Units], reason: Reason | None) -> None:
        """The job cannot go on now: it bars its equals, or is reserved for, as the order wants it."""
        figures, reserved = self.figures, None
        alternatives = self.placer.queue(job, alternatives, lambda pool: figures.soon_there(job, pool))
        if figures.held_for(job, alternatives):
            figures.ledger.bar(job, ABSOLUTE)
        elif figures.ranking.strict(job):
            figures.ledger.bar(job, figures.ranking.standing(job))
        elif figures.ranking.reserves and figures.reservations.room(job):
            reserved = figures.reserve(job, alternatives)
        self._wait(job, reason or figures.short(job, alternatives[0], reserved))

    def _wait(self, job: Job, reason: Reason) -> None:
        self.decisions.append(Wait(job, reason))

    def _backing_off(self, job: Job) -> bool:
        return job.retry_at is not None and job.retry_at > self.now

    def _spent(self) -> bool:
        return self.actions >= self.snapshot.policy.most_actions

    def _lapse(self) -> datetime:
        return self.now + self.snapshot.policy.hold_for


def _protected(choice: Choice) -> Reason:
    return Protected(tuple(job.name for job in choice.protected), choice.until)


def _cause(job: Job) -> str:
    reason = None if job.attempt is None else job.attempt.reason
    return reason or "its last start met no capacity"
