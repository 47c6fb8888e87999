"""The last step of a plan: idle units go to elastic jobs after every waiting job is decided.

They go first to jobs that lost a member, then to jobs that this plan starts, then to running jobs: the best rank first,
and among equals the job that gains most. They take no units that are kept for a job, and none that a waiting job could
reclaim at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.elastic.scaling import LINEAR, ScalingCurve, is_faster
from trainmaster.domain.elastic.sizes import Cause, Elastic
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Decision, Preempt, Resize, Snapshot, Start, Wait
from trainmaster.domain.reasons.capacity import (
    BackingOff,
    CanNeverFit,
    Infeasible,
    KindRefused,
    QuotaTooSmall,
    ReservedForOther,
    WaitsForCapacity,
)
from trainmaster.domain.reasons.rules import BudgetSpent, Draining, GroupFull, PlanClosed, ShareFull, UserFull
from trainmaster.domain.times import NEVER
from trainmaster.planner.elastic.division import Grower, divide
from trainmaster.planner.elastic.resize import (
    can_grow,
    cause_of,
    cost_of,
    elastic_of,
    gain_of,
    larger_sizes,
    pause_of,
    ready_at,
    repair_size,
    time_left,
)
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.state import JobView, PlanState

SHORTER_FIRST = 0.5
"""Power of the work that a job has left by which its gain is divided: 0 does the most work, 1 ends the most jobs."""
MIN_WORK_LEFT = 600.0
"""Seconds of one instance: jobs that are nearly done count alike."""

NOT_WAITING_FOR_UNITS = (
    CanNeverFit | Infeasible | QuotaTooSmall | KindRefused | Draining | PlanClosed | BudgetSpent | GroupFull
)
"""Reasons of jobs that would wait however many units were free, or may keep none from others."""
WAITING_FOR_OWN_SHARE = ShareFull | UserFull
"""Reasons of jobs that wait only for units of their own share."""


class _WaitingDemand(NamedTuple):
    """The waiting jobs of one share that ask for units of a pool.

    Attributes:
        rank: the highest preemption rank among them.
        priority: the highest priority among them.
        owner: whether any of them could claim units as its share's own.
        at: the time before which none of them will start; `now` if unknown.
    """

    rank: PreemptionRank
    priority: int
    owner: bool
    at: datetime

    def joined(self, other: _WaitingDemand) -> _WaitingDemand:
        """Return the demand of both."""
        best, priority = max(self.rank, other.rank), max(self.priority, other.priority)
        return _WaitingDemand(best, priority, self.owner or other.owner, min(self.at, other.at))


class _GrowthLimit(NamedTuple):
    """The most that a job may grow.

    Attributes:
        size: the largest size that it may have now.
        until: when a waiting job could first have it shrink again; `NEVER` if none could.
    """

    size: int
    until: datetime


class _Candidate(NamedTuple):
    """A job among which idle instances are divided.

    Attributes:
        idle: idle instances of its pool.
        until: when a waiting job could first have it shrink again.
        starts: whether it starts in this plan, so that more instances cost it no pause.
    """

    job: Job
    grower: Grower
    idle: int
    until: datetime
    starts: bool


_Running = tuple[Job, Elastic, Attempt]
_Starting = tuple[Start, Elastic, str, int]


@dataclass(slots=True)
class Growth:
    """The decisions of this step.

    Attributes:
        starts: starts with more units, by their index in the plan's decisions.
        resizes: running jobs that change their size.
        recheck_times: when more could be decided.
    """

    starts: dict[int, Start] = field(default_factory=dict)
    resizes: list[Resize] = field(default_factory=list)
    recheck_times: list[datetime] = field(default_factory=list)


@dataclass(slots=True)
class ScaleUp:
    """The growth of elastic jobs in one plan.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        state: as of all decisions about waiting jobs.
        decisions: those decisions.
        elastic_starts: indexes of the starts among them that could have more than the minimum size.
        actions_left: resizes that the pass may still make.
    """

    snapshot: Snapshot
    now: datetime
    state: PlanState
    decisions: Sequence[Decision]
    elastic_starts: Sequence[int] = ()
    actions_left: int = 0
    _growth: Growth = field(default_factory=Growth)
    _waiting: dict[str, dict[str, _WaitingDemand]] | None = None
    _kept_for_retries: dict[str, int] = field(default_factory=dict)
    _ends: dict[str, datetime] = field(default_factory=dict)

    def run(self) -> Growth:
        """Return how elastic jobs use the idle units; commits what they take to the state."""
        changed = self._changed_jobs()
        unchanged = (job for job in self.state.elastic_jobs if job.name not in changed)
        able = self._sorted((job, *found) for job in unchanged if can_grow(job) and (found := elastic_of(job)))
        for job, elastic, attempt in able:
            self._repair(job, elastic, attempt)
        whole = [item for item in able if item[2].faulty_since is None and item[2].size in item[0].sizes]
        targets = self._targets(whole)
        for index in self.elastic_starts:
            self._enlarge(index, targets)
        for job, elastic, attempt in whole:
            self._grow(job, elastic, attempt, targets.get(job.name))
        for job, elastic, attempt in whole:
            self._explore(job, elastic, attempt)
            self._step_back(job, elastic, attempt)
        return self._growth

    def _changed_jobs(self) -> set[str]:
        """Return the names of the jobs that this plan shrinks or preempts."""
        found = (decision for decision in self.decisions if isinstance(decision, Preempt))
        return {job.name for p in found for job in (*p.victims, *(shrink.job for shrink in p.shrinks))}

    def _sorted(self, jobs: Iterable[_Running]) -> list[_Running]:
        """Return the jobs by rank down, then by the gain of each further instance down, then by name."""
        by_rank: dict[PreemptionRank, list[_Running]] = {}
        for each in jobs:
            by_rank.setdefault(self.state.ranking.rank(each[0]), []).append(each)
        equals = (by_rank[rank] for rank in sorted(by_rank, reverse=True))
        # Nearly all jobs have a rank of their own, so that no gain is needed.
        ordered = (sorted(run, key=lambda each: self._gain_key(*each)) if len(run) > 1 else run for run in equals)
        return [each for run in ordered for each in run]

    def _gain_key(self, job: Job, elastic: Elastic, attempt: Attempt) -> tuple[float, str]:
        """Return the gain of each further instance down, and the name."""
        sizes = larger_sizes(job, elastic, attempt.size, self.now)
        gain, cost = self._gain(job, sizes[0]) if sizes else (0.0, 0.0)
        brings = (gain - cost) / (sizes[0] - attempt.size) if sizes else 0.0
        return -brings, job.name

    def _repair(self, job: Job, elastic: Elastic, attempt: Attempt) -> None:
        """Bring a job into its bounds, or replace a lost member: without a replacement in time, it gets smaller."""
        if attempt.faulty_since is None and attempt.size < elastic.min_instances:
            self._raise_to_minimum(job, elastic, attempt)
            return
        if attempt.faulty_since is not None:
            self._recheck(attempt.faulty_since + elastic.faulty_scale_down_timeout)
            sizes = larger_sizes(job, elastic, attempt.size, self.now, attempt.wanted)
            limit = self._max_growth(job, attempt.size, sizes)
            if limit is not None:
                self._decide(job, attempt, limit.size, cause_of(attempt))
                return
        if (size := repair_size(job, elastic, attempt, self.now)) is not None and self.actions_left > 0:
            self.actions_left -= 1
            cause = Cause.BOUNDS if attempt.faulty_since is None else Cause.REPAIR
            self._growth.resizes.append(Resize(job, size, cause))

    def _raise_to_minimum(self, job: Job, elastic: Elastic, attempt: Attempt) -> None:
        """Let a job grow to a minimum that was raised above its size, whatever the pause costs."""
        if (ready := ready_at(elastic, job, attempt)) > self.now:
            self._recheck(ready)
        elif self._max_growth(job, attempt.size, (elastic.min_instances,)) is not None:
            self._decide(job, attempt, elastic.min_instances, Cause.BOUNDS)

    def _enlarge(self, index: int, targets: Mapping[str, int]) -> None:
        """Have a job that this plan starts begin with more units, which costs no pause."""
        if (found := self._elastic_start(index)) is None:
            return
        start, elastic, pool, count = found
        job = start.job
        limit = self._max_growth(job, count, larger_sizes(job, elastic, count, self.now, targets.get(job.name)), pool)
        if limit is not None:
            self.state.grow(job, {pool: limit.size - count}, self.state.expected_end(job))
            self._growth.starts[index] = replace(start, units={pool: limit.size})

    def _grow(self, job: Job, elastic: Elastic, attempt: Attempt, target: int | None) -> None:
        """Grow a running job if its size has lasted long enough and the gain is worth the pause."""
        limit = self._max_growth(job, attempt.size, larger_sizes(job, elastic, attempt.size, self.now, target))
        if limit is None:
            return
        gain, cost = self._gain(job, limit.size, limit.until)
        if gain < self.snapshot.policy.resizes.payback * cost:
            return
        if (ready := ready_at(elastic, job, attempt)) > self.now:
            self._recheck(ready)
        else:
            self._decide(job, attempt, limit.size, cause_of(attempt))

    def _explore(self, job: Job, elastic: Elastic, attempt: Attempt) -> None:
        """Let a job try the next size, which its curve says is not worth the pause, while nothing waits for the pool.

        The curve beyond the reported sizes is a guess. The job tries a size once, after it has reported this one; one
        that was slower than a smaller one, again after a long time (`Speed.retry_at`).
        """
        speeds, larger = job.speeds_here, larger_sizes(job, elastic, attempt.size, self.now)
        size = min((each for each in larger if each in speeds.slower), default=min(larger, default=0))
        if attempt.size not in speeds.sizes or (size <= max(speeds.sizes) and size not in speeds.slower):
            return
        if (
            self._is_resized(job)
            or self._waiting_for(next(iter(job.units)))
            or ready_at(elastic, job, attempt) > self.now
        ):
            return
        gain, cost = self._gain(job, size, curve=LINEAR)
        if gain >= self.snapshot.policy.resizes.payback * cost and self._max_growth(job, attempt.size, (size,)):
            self._decide(job, attempt, size, cause_of(attempt))

    def _step_back(self, job: Job, elastic: Elastic, attempt: Attempt) -> None:
        """Have a job return to the smaller size at which it was fastest, if the time that this saves pays the pause."""
        speeds = job.speeds_here
        # Reports from before it came to this size again led to this trial.
        told = speeds.measured_at is not None and speeds.measured_at >= attempt.held_since
        if attempt.size not in speeds.slower or not told or self._is_resized(job):
            return
        rates = {speed.instances: speed.typical for speed in speeds.of_sizes}
        present, smaller = rates[attempt.size], (size for size in job.sizes if size in rates and size < attempt.size)
        size = max(smaller, key=rates.__getitem__, default=attempt.size)
        if not is_faster(rates[size], present) or self.actions_left <= 0 or ready_at(elastic, job, attempt) > self.now:
            return
        left = time_left(job, self.state.expected_ends.end(job), self.now).total_seconds()
        saved, pause = left * (1 - present / rates[size]), pause_of(job, self.snapshot.records.history, self.now)
        if saved >= self.snapshot.policy.resizes.payback * pause:
            self.actions_left -= 1
            self._growth.resizes.append(Resize(job, size, Cause.SLOWER))

    def _is_resized(self, job: Job) -> bool:
        return any(resize.job.name == job.name for resize in self._growth.resizes)

    def _decide(self, job: Job, attempt: Attempt, size: int, cause: Cause) -> None:
        if self.actions_left <= 0:
            return
        self.actions_left -= 1
        pool = next(iter(attempt.units))
        self.state.grow(job, {pool: size - attempt.size}, self.state.expected_ends.end(job))
        self._growth.resizes.append(Resize(job, size, cause))

    def _gain(
        self, job: Job, size: int, until: datetime = NEVER, curve: ScalingCurve | None = None
    ) -> tuple[float, float]:
        """Return what growing to this size gains until a time, and what it costs, in accelerator-seconds."""
        snapshot = self.snapshot
        left = min(time_left(job, self.state.expected_ends.end(job), self.now), until - self.now)
        curve = self.state.curve(job) if curve is None else curve
        cost = cost_of(job, snapshot.records.history, snapshot.pools, self.now, curve)
        return gain_of(job, size, left, snapshot.pools, curve), cost

    def _recheck(self, moment: datetime) -> None:
        if moment > self.now:
            self._growth.recheck_times.append(moment)

    # -- division -----------------------------------------------------------------------------------------------------

    def _targets(self, able: Sequence[_Running]) -> dict[str, int]:
        """Return the size that each job is to have at most, by what it is known to gain; empty if nothing is known.

        A linear job gains the same by each instance, so without reports the first job gets all that it may have.
        """
        starts = [found for index in self.elastic_starts if (found := self._elastic_start(index)) is not None]
        tells = self.snapshot.records.history.tells_curve
        if not any(map(tells, (*(start.job for start, *_ in starts), *(job for job, *_ in able)))):
            return {}
        candidates = [*self._starting_candidates(starts), *self._running_candidates(able)]
        idle = self._idle(candidates)
        sizes = {candidate.job.name: candidate.grower.sizes[0] for candidate in candidates}
        while True:
            targets = divide((candidate.grower for candidate in candidates), idle)
            returns = [(self._return(each, targets[each.job.name]), each.job.name) for each in candidates]
            short = sorted(each for each in returns if each[0] < self.snapshot.policy.resizes.payback)
            if not short:
                return sizes | targets
            # Without the worst of them, the others may get enough.
            dropped = {name for _, name in short[: -(-len(short) // 4)]}
            candidates = [candidate for candidate in candidates if candidate.job.name not in dropped]

    def _idle(self, candidates: Iterable[_Candidate]) -> dict[str, int]:
        """Return the idle instances of each pool. Jobs of one share may have others than those of another.

        What a job may have of them limits its sizes.
        """
        found: dict[str, dict[str, int]] = {}
        for each in candidates:
            share = each.job.share if self.state.shares.enabled else ""
            of_share = found.setdefault(each.grower.pool, {})
            of_share[share] = max(of_share.get(share, 0), each.idle)
        return {
            pool: min(sum(of_share.values()), self.state.ledger.free.get(pool, 0)) for pool, of_share in found.items()
        }

    def _starting_candidates(self, starts: Iterable[_Starting]) -> Iterator[_Candidate]:
        for start, elastic, pool, count in starts:
            limit = self._max_growth(start.job, count, larger_sizes(start.job, elastic, count, self.now), pool)
            if limit is not None:
                yield self._candidate(start.job, pool, count, limit, starts=True)

    def _running_candidates(self, able: Iterable[_Running]) -> Iterator[_Candidate]:
        for job, elastic, attempt in able:
            limit = self._max_growth(job, attempt.size, larger_sizes(job, elastic, attempt.size, self.now))
            if limit is not None and ready_at(elastic, job, attempt) <= self.now:
                yield self._candidate(job, next(iter(job.units)), attempt.size, limit)

    def _candidate(self, job: Job, pool: str, size: int, limit: _GrowthLimit, *, starts: bool = False) -> _Candidate:
        larger = () if job.elastic is None else larger_sizes(job, job.elastic, size, self.now, limit.size)
        sizes = (size, *reversed(larger))
        curve, weight = self.state.curve(job), self._work_left(job, size, starts=starts) ** -SHORTER_FIRST
        grower = Grower(job.name, pool, -job.priority, sizes, lambda instances: weight * curve.speedup(instances))
        idle = self.state.view_for_growth(job).available_now(pool) - self._kept_for_retries.get(pool, 0)
        return _Candidate(job, grower, idle, limit.until, starts)

    def _work_left(self, job: Job, size: int, *, starts: bool) -> float:
        """Return the work that a job has left: seconds of one instance."""
        ends = self.state.expected_ends
        left = ends.run_time(job) if starts else time_left(job, ends.end(job), self.now)
        return max(left.total_seconds() * self.state.curve(job).speedup(size), MIN_WORK_LEFT)

    def _return(self, candidate: _Candidate, size: int) -> float:
        """Return the gain by this size as a multiple of its cost; a start costs no pause."""
        if candidate.starts or size == candidate.grower.sizes[0]:
            return math.inf
        gain, cost = self._gain(candidate.job, size, candidate.until)
        return gain / cost if cost > 0 else math.inf

    def _elastic_start(self, index: int) -> _Starting | None:
        """Return a start that could have more units, with its sizes, pool and instances."""
        start = self.decisions[index]
        if not isinstance(start, Start) or start.job.elastic is None or len(start.units) != 1 or start.choices:
            return None
        ((pool, count),) = start.units.items()
        return start, start.job.elastic, pool, count

    # -- limits ------------------------------------------------------------------------------------------------------

    def _max_growth(
        self, job: Job, present: int, sizes: tuple[int, ...], pool: str | None = None
    ) -> _GrowthLimit | None:
        """Return the largest of these sizes that the job may have now; None if it may have none."""
        pool = next(iter(job.units)) if pool is None else pool
        view = self.state.view_for_growth(job)
        idle = view.available_now(pool) if sizes else 0
        if idle <= 0 or (until := self._reclaimable_at(job, pool)) <= self.now:
            return None
        idle -= self._kept_for_retries.get(pool, 0)
        fitting = (size for size in sizes if size - present <= idle and self._allowed(view, {pool: size - present}))
        return next((_GrowthLimit(size, until) for size in fitting), None)

    def _allowed(self, view: JobView, more: Units) -> bool:
        """Return True if no rule, barrier or reservation keeps the job from that many more units."""
        state, job = self.state, view.job
        if state.limits.refuses_more(job, more) or state.shares.refuses_more(job, more):
            return False
        if state.has_training_plans and view.window_refusal(more) is not None:
            return False
        if state.ledger.barrier(job, state.ranking.rank_when_running(job), more) is not None:
            return False
        end = state.expected_ends.end(job) if job.units else state.expected_end(job)
        return state.reservations.conflict(more, end) is None

    def _reclaimable_at(self, job: Job, pool: str) -> datetime:
        """Return when a job that waits for the pool may first have this job shrink; at or before `now` for at once.

        A job that waits for running jobs to end does not need the idle units until then, and a job that grows on them
        ends sooner.
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
        """Return the demand of waiting jobs on a pool, by share if there are shares."""
        if self._waiting is None:
            self._waiting = {}
            for decision in self.decisions:
                if isinstance(decision, Wait) and not isinstance(decision.reason, NOT_WAITING_FOR_UNITS):
                    self._note(decision, self._waiting)
        return self._waiting.get(pool, {})

    def _note(self, wait: Wait, waiting: dict[str, dict[str, _WaitingDemand]]) -> None:
        job, state = wait.job, self.state
        enabled = state.shares.enabled
        owner = enabled and not isinstance(wait.reason, WAITING_FOR_OWN_SHARE) and state.shares.any_within_nominal(job)
        demand = _WaitingDemand(state.ranking.rank(job), job.priority, owner, self._not_before(wait))
        for pool in job.demand.pools:
            demands, share = waiting.setdefault(pool, {}), job.share if enabled else ""
            demands[share] = demand if share not in demands else demands[share].joined(demand)
        if isinstance(wait.reason, BackingOff):
            # It starts again soon, and must not find its units gone each time.
            for pool, count in self._largest_needs(job):
                self._kept_for_retries[pool] = self._kept_for_retries.get(pool, 0) + count

    def _not_before(self, wait: Wait) -> datetime:
        """Return the time before which the job will not start: the next end, if it waits for running jobs to end."""
        if not isinstance(wait.reason, WaitsForCapacity | ReservedForOther):
            return self.now
        return min(map(self._next_end, wait.job.demand.pools), default=self.now)

    def _next_end(self, pool: str) -> datetime:
        """Return when the first job that holds units of a pool is expected to end."""
        if pool not in self._ends:
            holders = (job for job in self.snapshot.active if pool in job.units)
            self._ends[pool] = min(map(self.state.expected_ends.end, holders), default=self.now)
        return self._ends[pool]

    @staticmethod
    def _largest_needs(job: Job) -> Iterator[tuple[str, int]]:
        """Yield each pool that the job could start in, with the most units that it needs there."""
        for pool in job.demand.pools:
            yield pool, max(units.get(pool, 0) for units in job.demand.alternatives)
