"""The last step of a plan: what is idle once all waiting jobs have been considered goes to elastic jobs.

First to those that lack a lost member, then to those that this very plan starts, then to those at work: the best
standing first, of equals where it brings most. They take nothing that anybody is promised and stand behind all whom
they could have to give it back to. It must not consider waiting jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.elastic.sizes import Cause, Elastic
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Preempt, Resize, Snapshot, Start, Wait
from trainmaster.domain.reasons.capacity import BackingOff, CanNeverFit, Infeasible, ReservedForOther, WaitsForCapacity
from trainmaster.domain.reasons.rules import BudgetSpent, Draining, GroupFull, PlanClosed, ShareFull, UserFull
from trainmaster.domain.times import NEVER
from trainmaster.planner.elastic.resize import (
    can_grow,
    cause_of,
    cost_of,
    elastic_of,
    gain_of,
    larger_sizes,
    ready_at,
    repair_size,
    time_left,
)
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.plan_builder import PlanBuilder
from trainmaster.planner.state import PlanState

_NOT_WAITING_FOR_UNITS = CanNeverFit | Infeasible | Draining | PlanClosed | BudgetSpent | GroupFull
"""Reasons of jobs that would wait however many units were free."""
_WAITING_FOR_OWN_SHARE = ShareFull | UserFull
"""Reasons of jobs that wait for units of their own share alone."""


class _WaitingDemand(NamedTuple):
    """Who of a share waits for units of a pool.

    Attributes:
        standing, priority: the best of theirs.
        owner: whether any could claim units as its share's own.
        at: before when none of them will start, whoever gives what; the past where that is not known.
    """

    rank: PreemptionRank
    priority: int
    owner: bool
    at: datetime

    def joined(self, other: _WaitingDemand) -> _WaitingDemand:
        """The line with another job."""
        best, priority = max(self.rank, other.rank), max(self.priority, other.priority)
        return _WaitingDemand(best, priority, self.owner or other.owner, min(self.at, other.at))


class _GrowthLimit(NamedTuple):
    """What a job may grow to.

    Attributes:
        size: the largest that it may have now.
        until: when the first who waits could have it shrink again; `NEVER` for nobody.
    """

    size: int
    until: datetime


@dataclass(slots=True)
class ScaleUp:
    """One plan's growth. Thrown away with it.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        figures: as they are once all waiting jobs have been considered.
        deciding: what has been decided; growth is added.
    """

    snapshot: Snapshot
    now: datetime
    state: PlanState
    builder: PlanBuilder
    _waiting: dict[str, dict[str, _WaitingDemand]] | None = None
    _kept_for_retries: dict[str, int] = field(default_factory=dict)
    _ends: dict[str, datetime] = field(default_factory=dict)

    def run(self) -> None:
        """Give what is idle to elastic jobs."""
        # Nobody's hold yields to a job that just wants more.
        self.state.ledger.waived = {}
        touched = self._changed_jobs()
        at_work = (job for job in self.state.elastic_jobs if job.name not in touched)
        able = [(job, *found) for job in at_work if can_grow(job) and (found := elastic_of(job)) is not None]
        able.sort(key=lambda each: self._sort_key(*each))
        for job, elastic, attempt in able:
            self._repair(job, elastic, attempt)
        for index in self.builder.elastic_starts:
            self._enlarge(index)
        for job, elastic, attempt in able:
            if attempt.faulty_since is None and attempt.size in elastic.sizes:
                self._grow(job, elastic, attempt)

    def _changed_jobs(self) -> set[str]:
        """Jobs that give, or step aside, by this plan."""
        found = (each for each in self.builder.decisions if isinstance(each, Preempt))
        return {job.name for each in found for job in (*each.victims, *(shrink.job for shrink in each.shrinks))}

    def _sort_key(self, job: Job, elastic: Elastic, attempt: Attempt) -> tuple[object, ...]:
        """The best standing first, then where each instance more would bring most, then by name."""
        sizes = larger_sizes(elastic, attempt.size)
        gain, cost = self._gain(job, sizes[0]) if sizes else (0.0, 0.0)
        brings = (gain - cost) / (sizes[0] - attempt.size) if sizes else 0.0
        return (*(-part for part in self.state.ranking.rank(job)), -brings, job.name)

    def _repair(self, job: Job, elastic: Elastic, attempt: Attempt) -> None:
        """Replace a lost member, without delay; or go down to a legal size where no replacement came."""
        if attempt.faulty_since is not None:
            self._recheck(attempt.faulty_since + elastic.faulty_scale_down_timeout)
            room = self._max_growth(job, attempt.size, larger_sizes(elastic, attempt.size, attempt.wanted))
            if room is not None:
                self._decide(job, attempt, room.size, cause_of(attempt))
                return
        if (size := repair_size(elastic, attempt, self.now)) is not None and not self.builder.limit_reached():
            self.builder.actions += 1
            self.builder.decisions.append(Resize(job, size, Cause.REPAIR))

    def _enlarge(self, index: int) -> None:
        """Let a job that this plan starts begin with more: that costs no pause."""
        start = self.builder.decisions[index]
        if not isinstance(start, Start) or start.job.elastic is None or len(start.units) != 1 or start.choices:
            return
        (pool, count), job = next(iter(start.units.items())), start.job
        room = self._max_growth(job, count, larger_sizes(start.job.elastic, count), pool)
        if room is not None:
            self.state.grow(job, {pool: room.size - count}, self.state.expected_end(job))
            self.builder.decisions[index] = replace(start, units={pool: room.size})

    def _grow(self, job: Job, elastic: Elastic, attempt: Attempt) -> None:
        """Let a job at work grow, where it has been as it is for long enough and that is worth its pause."""
        room = self._max_growth(job, attempt.size, larger_sizes(elastic, attempt.size))
        if room is None:
            return
        gain, cost = self._gain(job, room.size, room.until)
        if gain < self.snapshot.policy.resizes.payback * cost:
            return
        if (ready := ready_at(elastic, job, attempt)) > self.now:
            self._recheck(ready)
        else:
            self._decide(job, attempt, room.size, cause_of(attempt))

    def _decide(self, job: Job, attempt: Attempt, size: int, cause: Cause) -> None:
        if self.builder.limit_reached():
            return
        self.builder.actions += 1
        pool = next(iter(attempt.units))
        self.state.grow(job, {pool: size - attempt.size}, self.state.expected_ends.end(job))
        self.builder.decisions.append(Resize(job, size, cause))

    def _gain(self, job: Job, size: int, until: datetime = NEVER) -> tuple[float, float]:
        """What growing to this size brings until then at most, and what it costs, accelerator-seconds."""
        snapshot = self.snapshot
        left = min(time_left(job, self.state.expected_ends.end(job), self.now), until - self.now)
        cost = cost_of(job, snapshot.records.history, snapshot.pools, self.now)
        return gain_of(job, size, left, snapshot.pools), cost

    def _recheck(self, moment: datetime) -> None:
        if moment > self.now:
            self.builder.recheck_times.append(moment)

    # -- what it may have --------------------------------------------------------------------------------------------

    def _max_growth(
        self, job: Job, present: int, sizes: tuple[int, ...], pool: str | None = None
    ) -> _GrowthLimit | None:
        """The largest of these sizes that the job may have now; None for none."""
        pool = next(iter(job.units)) if pool is None else pool
        idle = self.state.now_there(job, pool) if sizes else 0
        if idle <= 0 or (until := self._reclaimable_at(job, pool)) <= self.now:
            return None
        idle -= self._kept_for_retries.get(pool, 0)
        fitting = (size for size in sizes if size - present <= idle and self._allowed(job, {pool: size - present}))
        return next((_GrowthLimit(size, until) for size in fitting), None)

    def _allowed(self, job: Job, more: Units) -> bool:
        """Whether no rule, barrier or reservation keeps the job from so much more."""
        state = self.state
        if state.limits.refuses_more(job, more) or state.shares.refuses_more(job, more):
            return False
        if state.has_training_plans and state.closed(job, more) is not None:
            return False
        if state.ledger.barrier(job, state.ranking.at_work(job), more) is not None:
            return False
        end = state.expected_ends.end(job) if job.units else state.expected_end(job)
        return state.reservations.conflict(more, end) is None

    def _reclaimable_at(self, job: Job, pool: str) -> datetime:
        """When the first who waits for the pool may start and have the job shrink for it; the past for at once.

        Who waits for others' ends is not kept waiting by what is idle until then: those of them that grow end sooner.
        """
        rank, shares = self.state.ranking.rank(job), self.state.shares
        equals, first = self.snapshot.policy.resizes.shrink_equals, NEVER
        for share, demand in self._waiting_for(pool).items():
            if shares.enabled and share != job.share:
                first = min(first, demand.at) if demand.owner else first
            elif demand.rank > rank or (equals and demand.priority >= job.priority):
                first = min(first, demand.at)
        return first

    def _waiting_for(self, pool: str) -> dict[str, _WaitingDemand]:
        """Who waits for units of a pool, by share where shares are in play."""
        if self._waiting is None:
            self._waiting = {}
            for decision in self.builder.decisions:
                if isinstance(decision, Wait) and not isinstance(decision.reason, _NOT_WAITING_FOR_UNITS):
                    self._note(decision, self._waiting)
        return self._waiting.get(pool, {})

    def _note(self, wait: Wait, waiting: dict[str, dict[str, _WaitingDemand]]) -> None:
        job, state = wait.job, self.state
        enabled = state.shares.enabled
        owner = enabled and not isinstance(wait.reason, _WAITING_FOR_OWN_SHARE) and state.shares.any_within_nominal(job)
        demand = _WaitingDemand(state.ranking.rank(job), job.priority, owner, self._not_before(wait))
        for pool in job.demand.pools:
            demands, share = waiting.setdefault(pool, {}), job.share if enabled else ""
            demands[share] = demand if share not in demands else demands[share].joined(demand)
        if isinstance(wait.reason, BackingOff):
            # It is tried again soon; what it would start on must not be gone each time.
            for pool, count in self._worst_of(job):
                self._kept_for_retries[pool] = self._kept_for_retries.get(pool, 0) + count

    def _not_before(self, wait: Wait) -> datetime:
        """Before when the job will not start: where it waits for others to end, not before the next of them does."""
        if not isinstance(wait.reason, WaitsForCapacity | ReservedForOther):
            return self.now
        return min(map(self._next_end, wait.job.demand.pools), default=self.now)

    def _next_end(self, pool: str) -> datetime:
        """When the first job that holds units of a pool is expected to end."""
        if pool not in self._ends:
            holders = (job for job in self.snapshot.active if pool in job.units)
            self._ends[pool] = min(map(self.state.expected_ends.end, holders), default=self.now)
        return self._ends[pool]

    @staticmethod
    def _worst_of(job: Job) -> Iterator[tuple[str, int]]:
        """What the job needs of each pool that it could start in."""
        for pool in job.demand.pools:
            yield pool, max(units.get(pool, 0) for units in job.demand.alternatives)
