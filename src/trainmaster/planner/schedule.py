"""What a pass decides: the one public function of the planner.

Jobs are considered in queue order. Each starts where it fits; waits where enough is on the way; else takes what
it lacks from jobs of lower priority; else waits and says for what. It must not read a clock or remember anything:
all it needs is in the snapshot, all it wants remembered is in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Hold, Job
from trainmaster.domain.plan import Decision, Plan, Preempt, Snapshot, Start, Wait
from trainmaster.domain.reasons import (
    BackingOff,
    Behind,
    CanNeverFit,
    KeptForOther,
    NextPass,
    Preempts,
    Reason,
    WaitsForCapacity,
    WaitsForRelease,
)
from trainmaster.planner.fit import Claim, Ledger, open_ledger
from trainmaster.planner.order import by_priority, in_order
from trainmaster.planner.place import place
from trainmaster.planner.preempt import Candidates

if TYPE_CHECKING:
    from random import Random

MOST_VICTIMS = 80
"""Victims of one Preempt decision: it is committed as one transaction, which holds 100 items."""


def schedule(snapshot: Snapshot, now: datetime, rng: Random) -> Plan:  # noqa: ARG001 -- for policies that draw
    """Decide what starts, what steps aside, and why the rest waits.

    Args:
        snapshot: all that the pass read.
        now: the time of the pass, UTC.
        rng: seeded by the pass number, for policies that draw.

    Equal arguments give an equal plan. The plan never exceeds a cap: starts use only units that are free now.
    """
    candidates = Candidates.among(snapshot, now, lambda job: (job.priority,))
    planning = _Planning(snapshot, now, open_ledger(snapshot, now), candidates)
    decisions: list[Decision] = []
    for _, jobs in by_priority(in_order(snapshot.waiting)):
        planning.respect_holds(jobs)
        for job in jobs:
            decisions.extend(planning.decide(job))
    return Plan(tuple(decisions))


@dataclass(slots=True)
class _Planning:
    snapshot: Snapshot
    now: datetime
    ledger: Ledger
    candidates: Candidates
    actions: int = 0

    def respect_holds(self, equals: list[Job]) -> None:
        """Holds bind from their holder's priority down.

        A job of higher priority may use the capacity: it could preempt the holder the moment it started, so
        keeping the hold against it would only cost the holder its work (see ADR 0005).
        """
        for job in equals:
            if (hold := self._hold_of(job)) is not None and not self._backing_off(job):
                self.ledger.claim(Claim(job.name, hold.units, hold.until))

    def decide(self, job: Job) -> Iterator[Decision]:
        """The decisions for one waiting job; its own Start or Wait comes last."""
        self.ledger.drop_claim(job.name)
        possible = [units for units in job.demand.alternatives if self.ledger.could_ever(units)]
        if not possible:
            yield Wait(job, self._never(job))
        elif self._backing_off(job):
            yield Wait(job, BackingOff(job.retry_at or self.now, _cause(job)))
        elif not (open_ := [units for units in possible if self._may_take(job, units)]):
            yield Wait(job, self._behind(job, possible))
        elif fitting := [units for units in open_ if self.ledger.fits_now(units)]:
            yield self._start(job, fitting)
        elif soon := [units for units in open_ if self.ledger.fits_soon(units)]:
            yield self._wait_for_release(job, soon[0])
        else:
            yield from self._preempt_or_wait(job, open_)

    def _start(self, job: Job, fitting: list[Units]) -> Decision:
        if self._spent():
            self.ledger.claim(Claim(job.name, fitting[0], self.now))
            return Wait(job, NextPass())
        self.actions += 1
        placement = place(job, fitting)
        self.ledger.take(placement.units)
        return Start(job, placement.units, placement.choices)

    def _wait_for_release(self, job: Job, units: Units) -> Decision:
        pools = tuple(sorted(pool for pool, count in units.items() if count > self.ledger.now(pool)))
        until = min(self.ledger.lapse.get(pool, self.now + self.snapshot.policy.hold_for) for pool in pools)
        self.ledger.claim(Claim(job.name, units, until))
        return Wait(job, WaitsForRelease(pools, until))

    def _preempt_or_wait(self, job: Job, alternatives: list[Units]) -> Iterator[Decision]:
        found = [(units, self.candidates.victims(job, self.ledger.missing(units))) for units in alternatives]
        within_reach = [(units, choice) for units, choice in found if choice.victims]
        if not within_reach:
            yield Wait(job, self._short(alternatives[0]))
            self.ledger.bar(job)
        elif self._spent():
            yield Wait(job, NextPass())
            self.ledger.bar(job)
        else:
            # The alternative whose victims matter least: by their best standing, then by the work they lose.
            units, choice = min(within_reach, key=lambda entry: (entry[1].highest, entry[1].cost))
            yield from self._preempt(job, units, choice.victims)

    def _preempt(self, job: Job, units: Units, victims: tuple[Job, ...]) -> Iterator[Decision]:
        self.actions += len(victims)
        until = self.now + self.snapshot.policy.hold_for
        self.candidates.remove(victims)
        self.ledger.free_soon(victims, until)
        self.ledger.claim(Claim(job.name, units, until))
        for first in range(0, len(victims), MOST_VICTIMS):
            yield Preempt(job, victims[first : first + MOST_VICTIMS], Hold(units, until))
        yield Wait(job, Preempts(tuple(victim.name for victim in victims), until))

    def _hold_of(self, job: Job) -> Hold | None:
        return job.hold if job.hold is not None and job.hold.until > self.now else None

    def _may_take(self, job: Job, units: Units) -> bool:
        """A blocked job keeps its equals from its pools, but not from what was freed for them before."""
        hold = self._hold_of(job)
        return (hold is not None and hold.units == units) or self.ledger.barrier(job, units) is None

    def _backing_off(self, job: Job) -> bool:
        return job.retry_at is not None and job.retry_at > self.now

    def _spent(self) -> bool:
        return self.actions >= self.snapshot.policy.most_actions

    def _never(self, job: Job) -> Reason:
        caps = self.ledger.caps
        lacking = (
            CanNeverFit(pool, count, caps.get(pool, 0))
            for pool, count in job.demand.alternatives[0].items()
            if count > caps.get(pool, 0)
        )
        return next(lacking)

    def _behind(self, job: Job, possible: list[Units]) -> Reason:
        barrier = next(found for units in possible if (found := self.ledger.barrier(job, units)) is not None)
        return Behind(barrier[1].name, barrier[0])

    def _short(self, units: Units) -> Reason:
        pool, needed = next((p, n) for p, n in units.items() if n > self.ledger.soon(p))
        claim = self.ledger.claimant(pool)
        if claim is not None and self.ledger.free.get(pool, 0) >= needed:
            return KeptForOther(claim.job, pool, claim.until, needed, max(self.ledger.now(pool), 0))
        return WaitsForCapacity(pool, needed, max(self.ledger.now(pool), 0))


def _cause(job: Job) -> str:
    reason = None if job.attempt is None else job.attempt.reason
    return reason or "its last start met no capacity"
