"""The planner's public function: `schedule(snapshot, now, rng) -> Plan`.

Decides about each waiting job once, in turn; jobs equivalent to a blocked one wait for the same reason. The snapshot
contains all inputs of the plan, and the plan all that a later pass needs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from trainmaster.domain.capacity.reported_quotas import quota_bounds, with_quotas
from trainmaster.domain.capacity.resolve import resolve, with_changes
from trainmaster.domain.jobs.job import Job, backing_off
from trainmaster.domain.plan import Plan, PlannedReservation, Snapshot, Wait
from trainmaster.planner.back_off import awakened, retries_capacity
from trainmaster.planner.blocked_cache import BlockedReasonCache
from trainmaster.planner.elastic.scale_up import ScaleUp
from trainmaster.planner.expansion.expand import plan_expansion
from trainmaster.planner.orders.ranking import in_order
from trainmaster.planner.placement.selector import PoolSelector
from trainmaster.planner.placement.service_loads import least_loaded_first
from trainmaster.planner.placement.widening import widenings
from trainmaster.planner.plan_builder import PlanBuilder
from trainmaster.planner.sharing.turns import turns
from trainmaster.planner.state import PlanState

if TYPE_CHECKING:
    from random import Random

_new_tuple = tuple.__new__
"""Makes a named tuple without its constructor, which takes longer than all else that a job of a deep queue costs."""


def schedule(snapshot: Snapshot, now: datetime, rng: Random) -> Plan:
    """Return what starts, what is preempted or resized, and why the other jobs wait.

    Equal arguments give an equal plan. The plan never exceeds a cap: starts use only units that are free now.

    Args:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        rng: seeded by the pass number, for placement policies that draw.
    """
    snapshot = _without_expired_holds(awakened(resolve(snapshot), now), now)
    expansion = plan_expansion(snapshot, now)
    snapshot = with_changes(snapshot, expansion.decisions)
    bounds = quota_bounds(snapshot.pools, snapshot.catalogue, now)
    snapshot = replace(snapshot, pools=with_quotas(snapshot.pools, bounds)) if bounds else snapshot
    state = PlanState.of(snapshot, now)
    selector = PoolSelector(snapshot, rng, state.shortages)
    builder = PlanBuilder(snapshot, now, state, selector, expansion.refused, bounds, [*expansion.decisions])
    planning = _Planning(snapshot, now, state, builder, BlockedReasonCache(snapshot, by_past=state.order.reserves))
    planning.restore_holds()
    planning.restore_retries()
    planning.decide(planning.turns())
    planning.grow()
    return planning.plan()


def _without_expired_holds(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return the snapshot without reservations that have ended: their jobs are like others again."""
    expired = {job.name for job in snapshot.special if job.reservation is not None and job.reservation.until <= now}
    if not expired:
        return snapshot
    waiting = tuple([job.changed(reservation=None) if job.name in expired else job for job in snapshot.waiting])
    return replace(snapshot, waiting=waiting)


@dataclass(slots=True)
class _Planning:
    """The steps of one plan."""

    snapshot: Snapshot
    now: datetime
    state: PlanState
    builder: PlanBuilder
    cache: BlockedReasonCache

    def plan(self) -> Plan:
        """Return the decisions, and the time at which the plan could change by itself."""
        made = self.state.reservations.made
        reserved = tuple(PlannedReservation(r.job.name, r.units, r.expected) for r in made if r.expected is not None)
        rules_at = self._first((*self.builder.recheck_times, self.state.ranking.changes_at()))
        recheck_at = self._first((rules_at, *self.builder.expected_times, *(r.at for r in made)))
        return Plan(tuple(self.builder.decisions), recheck_at, reserved, rules_at)

    def _first(self, times: Iterable[datetime | None]) -> datetime | None:
        return min((moment for moment in times if moment is not None and moment > self.now), default=None)

    def restore_holds(self) -> None:
        """Keep what earlier passes freed for waiting jobs."""
        for job in in_order(job for job in self.snapshot.special if job.reservation is not None):
            if (hold := self.state.active_hold(job)) is not None and not backing_off(job, self.now):
                self.state.restore_reservation(job, hold)

    def restore_retries(self) -> None:
        """Keep jobs of lower priority behind those that found no capacity and have been started again."""
        for job in self.snapshot.active:
            if retries_capacity(job):
                self.state.back_off(job, [job.units])

    def turns(self) -> Iterator[Job]:
        """Return the waiting jobs in the order in which the plan decides about them."""
        state, ranking = self.state, self.state.ranking
        ordered = ranking.waiting_in_order()
        if self.snapshot.warm:
            equals = (list(run) for _, run in groupby(ordered, key=ranking.rank))
            runs = (run if ranking.strict(run[0]) else state.warm.matching_first(run) for run in equals)
            ordered = [job for run in runs for job in run]
        if not state.order.strict:
            ordered = least_loaded_first(ordered, self.snapshot, ranking.tier)
        return turns(ordered, state.shares, state.order.usage(self.snapshot, self.now))

    def decide(self, jobs: Iterable[Job]) -> None:
        """Decide about these jobs in turn; jobs equivalent to a blocked one only get its reason."""
        cache, common_rank, claims = self.cache, self.state.ranking.common_rank, self.state.ledger.claims
        key_of, known, waits = cache.key, cache.reason, self.builder.decisions.append
        for job in jobs:
            if claims and job.name in claims:
                # The decision about this job may release units to jobs that would not fit before.
                cache.clear()
            key = key_of(job, common_rank(job))
            if (reason := known(key)) is not None:
                waits(_new_tuple(Wait, (job, reason)))
            else:
                self._decide_one(job, key)

    def grow(self) -> None:
        """Give idle units to elastic jobs, of which nearly all queues have none, and to running jobs of other kinds."""
        state, builder = self.state, self.builder
        if (builder.elastic_starts or state.elastic_jobs) and self.snapshot.policy.resizes.enabled:
            decided, left = builder.decisions, builder.actions_left()
            growth = ScaleUp(self.snapshot, self.now, state, decided, builder.elastic_starts, left).run()
            builder.add_growth(growth)
        builder.decisions.extend([*widenings(self.snapshot, state, builder.decisions)])

    def _decide_one(self, job: Job, key: Hashable) -> None:
        reserved = len(self.state.reservations.made)
        self.builder.decide(job)
        if reserved == len(self.state.reservations.made):
            self.cache.note(key, getattr(self.builder.decisions[-1], "reason", None))
