"""What becomes of one waiting job: it starts, others give way to it, or it waits, with the reason.

It starts where it fits and delays nobody who is reserved for; waits where enough is on the way; else takes what it
lacks from warm pools and from jobs that it may displace; else is reserved for. It must not choose whose turn it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Hold, Job
from trainmaster.domain.plan import Decision, EndWarm, Preempt, Snapshot, Start, Wait
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
from trainmaster.domain.warm import WarmPool
from trainmaster.planner.figures import Figures
from trainmaster.planner.place import Placer
from trainmaster.planner.preempt import Choice
from trainmaster.planner.shortage import never
from trainmaster.planner.warm import InTheWay

ABSOLUTE: tuple[int, ...] = ()
"""A standing below all others: who bars the rest with it is passed by nobody."""
MOST_VICTIMS = 80
"""Victims of one Preempt decision: it is committed as one transaction, which holds 100 items."""


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
class Deciding:
    """The decisions of a plan in the making. Thrown away with it.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        figures: what is free, promised, expected and allowed; every decision moves them.
        placer: chooses among alternatives that fit.
        refused: why the manager makes no pool for infeasible jobs, by name.
        decisions: in the order in which they were made.
        untils: until when reasons hold that are a matter of time.
        actions: starts and stops so far; the policy bounds them.
    """

    snapshot: Snapshot
    now: datetime
    figures: Figures
    placer: Placer
    refused: Mapping[str, str] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    untils: list[datetime] = field(default_factory=list)
    actions: int = 0

    def consider(self, job: Job) -> None:
        """Decide about one waiting job; its own Start or Wait comes last."""
        figures = self.figures
        figures.look_as(job)
        possible = [units for units in job.demand.alternatives if figures.ledger.could_ever(units)]
        if not possible:
            self._wait(job, never(job, self.snapshot.pools, figures.ledger.caps, self.refused.get(job.name, "")))
        elif backing_off(job, self.now):
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
            self._wait_for_release(job, self.placer.queue(job, soon)[0])
        elif crowded:
            self._make_way(job, crowded, otherwise=reason)
        else:
            self._wait(job, reason)

    def _consider_open(self, job: Job, open_: list[Units]) -> None:
        """Decide about a job that no rule keeps from starting."""
        figures = self.figures
        if self.snapshot.warm and self._start_warm(job, open_):
            return
        behind = [figures.behind(job, units) for units in open_]
        passing = [units for units, reason in zip(open_, behind, strict=True) if reason is None]
        if not passing:
            self._block(job, open_, next(reason for reason in behind if reason is not None))
        elif fitting := [units for units in passing if figures.fits_now(job, units)]:
            self._start(job, fitting)
        elif soon := [units for units in passing if figures.fits_soon(job, units)]:
            self._wait_for_release(job, self.placer.queue(job, soon)[0])
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
        """The first warm pool that matches, unless something that the job names before it is free.

        Pools that only cover its resources are all alike to it. Whichever of them the placement policy chose, SageMaker
        would start it on a warm pool there, so that none may be passed over.
        """
        figures, named = self.figures, job.demand.named
        for units in open_:
            if (pool := figures.warm.match(job, units)) is not None:
                return units, pool
            if units in named and figures.fits_now(job, units) and figures.behind(job, units) is None:
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
        open_ = self.placer.queue(job, open_)
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
        if way is not None and way.choice.until is not None and figures.reservations.room([way.units]):
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
        alternatives = self.placer.queue(job, alternatives)
        if figures.held_for(job, alternatives):
            figures.ledger.bar(job, ABSOLUTE)
        elif figures.ranking.strict(job):
            figures.ledger.bar(job, figures.ranking.standing(job))
        elif figures.ranking.reserves and (with_room := figures.reservations.room(alternatives)):
            reserved = figures.reserve(job, with_room)
        self._wait(job, reason or figures.short(job, alternatives[0], reserved))

    def _wait(self, job: Job, reason: Reason) -> None:
        self.decisions.append(Wait(job, reason))
        if (until := getattr(reason, "until", None)) is not None:
            self.untils.append(until)

    def _spent(self) -> bool:
        return self.actions >= self.snapshot.policy.most_actions

    def _lapse(self) -> datetime:
        return self.now + self.snapshot.policy.hold_for


def backing_off(job: Job, now: datetime) -> bool:
    """Whether the job's last start met no capacity, so that it is not tried again yet."""
    return job.retry_at is not None and job.retry_at > now


def _protected(choice: Choice) -> Reason:
    return Protected(tuple(job.name for job in choice.protected), choice.until)


def _cause(job: Job) -> str:
    reason = None if job.attempt is None else job.attempt.reason
    return reason or "its last start met no capacity"
