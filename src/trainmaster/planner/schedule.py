"""What a pass decides: the one public function of the planner.

Jobs are considered in turn, each once (`builder.py` says what becomes of it); those that are like one that is
blocked wait for the same reason. It must not read a clock or remember anything: all it needs is in the snapshot, all
it wants remembered is in the plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from trainmaster.domain.capacity.resolve import resolve, with_changes
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Plan, Reservation, Snapshot, Wait
from trainmaster.domain.policy.settings import Order
from trainmaster.planner.blocked_cache import BlockedReasonCache
from trainmaster.planner.elastic.scale_up import ScaleUp
from trainmaster.planner.expansion.expand import plan_expansion
from trainmaster.planner.orders.ranking import in_order
from trainmaster.planner.placement.endpoint_loads import least_loaded_first
from trainmaster.planner.placement.selector import PoolSelector
from trainmaster.planner.plan_builder import PlanBuilder, backing_off
from trainmaster.planner.sharing.turns import turns
from trainmaster.planner.state import PlanState

if TYPE_CHECKING:
    from random import Random


def schedule(snapshot: Snapshot, now: datetime, rng: Random) -> Plan:
    """Decide what starts, what steps aside, and why the rest waits.

    Args:
        snapshot: all that the pass read.
        now: the time of the pass, UTC.
        rng: seeded by the pass number, for policies that draw.

    Equal arguments give an equal plan. The plan never exceeds a cap: starts use only units that are free now.
    """
    snapshot = resolve(snapshot)
    expansion = plan_expansion(snapshot, now)
    snapshot = with_changes(snapshot, expansion.decisions)
    state, selector = PlanState.of(snapshot, now), PoolSelector(snapshot, rng, now)
    builder = PlanBuilder(snapshot, now, state, selector, expansion.refused, [*expansion.decisions])
    planning = _Planning(snapshot, now, state, builder, BlockedReasonCache(snapshot, by_past=state.ranking.reserves))
    planning.respect_holds()
    planning.consider(planning.turns())
    planning.grow()
    return planning.plan()


@dataclass(slots=True)
class _Planning:
    """A plan in the making."""

    snapshot: Snapshot
    now: datetime
    state: PlanState
    builder: PlanBuilder
    alike: BlockedReasonCache

    def plan(self) -> Plan:
        """What has been decided, and when it could change by itself."""
        decisions = self.builder.decisions
        reserved = tuple(Reservation(each.job.name, each.units, each.at) for each in self.state.reservations.made)
        moments = (*self.builder.recheck_times, *(each.at for each in reserved), self.state.ranking.changes_at())
        later = (moment for moment in moments if moment is not None and moment > self.now)
        return Plan(tuple(decisions), min(later, default=None), reserved)

    def respect_holds(self) -> None:
        """What was freed for a job is kept for it."""
        # In queue order, whatever they were read in. Nearly no job has a hold, and a deep queue has many jobs.
        for job in in_order(job for job in self.snapshot.waiting if job.hold is not None):
            if (hold := self.state.hold_of(job)) is not None and not backing_off(job, self.now):
                self.state.respect(job, hold)

    def turns(self) -> Iterator[Job]:
        """The waiting jobs in the order in which they are considered."""
        state = self.state
        ordered = state.ranking.in_order(self.snapshot.waiting)
        if self.snapshot.warm:
            runs = (list(run) for _, run in groupby(ordered, key=state.ranking.rank))
            ordered = [
                job for run in runs for job in (run if state.ranking.strict(run[0]) else state.warm.matching_first(run))
            ]
        if self.snapshot.policy.order is not Order.FIFO:
            ordered = least_loaded_first(ordered, self.snapshot, state.ranking.tier)
        return turns(ordered, state.shares)

    def consider(self, jobs: Iterable[Job]) -> None:
        """Decide about these waiting jobs in turn; those that are like one that is blocked are not looked at."""
        alike, rank, claims = self.alike, self.state.ranking.common_rank, self.state.ledger.claims
        kind_of, known, waits = alike.kind, alike.reason, self.builder.decisions.append
        for job in jobs:
            if job.name in claims:
                # What was kept for this job may be there for others that found nothing before.
                alike.forget()
            kind = kind_of(job, rank(job))
            if (reason := known(kind)) is not None:
                waits(Wait(job, reason))
            else:
                self._look_at(job, kind)

    def grow(self) -> None:
        """What is idle now is for elastic jobs; nothing to do for nearly all queues."""
        builder = self.builder
        if (builder.elastic_starts or self.state.elastic_jobs) and self.snapshot.policy.resizes.enabled:
            ScaleUp(self.snapshot, self.now, self.state, builder).run()

    def _look_at(self, job: Job, kind: Hashable) -> None:
        reserved = len(self.state.reservations.made)
        self.builder.consider(job)
        if reserved == len(self.state.reservations.made):
            self.alike.note(kind, getattr(self.builder.decisions[-1], "reason", None))
