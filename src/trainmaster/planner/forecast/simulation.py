"""A simulation of the queue: plans are applied as they are made, and jobs end when expected.

Each decision is the planner's, and each change is a transition of the lifecycle. SageMaker is assumed to start jobs at
once, and no job arrives. Elastic jobs shrink but do not grow, which delays no job.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.domain.capacity.resolve import with_changes
from trainmaster.domain.capacity.units import reclaimed_at
from trainmaster.domain.capacity.warm_pools import WarmPool, counting
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import WAITING, Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.plan import Plan, Resize, Snapshot, Start
from trainmaster.planner.back_off import awakened_by, may_lack_again, retries_capacity
from trainmaster.planner.forecast.unfinished import counting_unfinished
from trainmaster.planner.orders import order_of
from trainmaster.planner.reservations.expected_ends import MEDIAN, OVERDUE_GRACE, STOP_DURATION, ExpectedEnds

if TYPE_CHECKING:
    from random import Random

Scheduler = Callable[[Snapshot, datetime, "Random"], Plan]

GRAINS = (0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.25)
"""Rounding of times, as a fraction of the simulated time: events a day from now need no precision of seconds."""
FINE_UP_TO = 2_000
"""Jobs at which that fraction would be 1, were it not limited; with fewer jobs it is finer."""


@dataclass(slots=True)
class QueueSimulation:
    """The queue at one moment of a simulation.

    Attributes:
        snapshot: what the planner would read then.
        begun: when the simulation began.
        expected_ends: when jobs end, at one quantile of one or two histories; the latest counts.
        moment: the planner's current time; no earlier than any event so far.
        since: when the decisions of this moment take effect: the middle of the events that are rounded together.
        grain: the rounding of times.
        ends: when active jobs release their units, by name.
        shrinking: when active jobs that are shrinking have their new size, by name.
        left: remaining run times of preempted jobs, by name.
        beginning: when jobs that are tried again after AWS lacked capacity begin to work, by name.
    """

    snapshot: Snapshot
    begun: datetime
    expected_ends: Sequence[ExpectedEnds]
    moment: datetime
    since: datetime
    grain: float
    ends: dict[str, datetime] = field(default_factory=dict)
    shrinking: dict[str, datetime] = field(default_factory=dict)
    left: dict[str, timedelta] = field(default_factory=dict)
    beginning: dict[str, datetime] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime, quantile: float, grain: float | None = None) -> QueueSimulation:
        """Return a simulation from now in which jobs run for this quantile of their class.

        The default grain makes a simulation of many jobs take no more time than one of few.
        """
        grain = _grain_of(snapshot) if grain is None else grain
        slow = [ExpectedEnds(counting_unfinished(snapshot, now), now, quantile)] if quantile > MEDIAN else []
        simulation = cls(snapshot, now, [ExpectedEnds(snapshot, now, quantile), *slow], now, now, grain)
        simulation.ends = {job.name: simulation._end(job) for job in snapshot.active}
        simulation.shrinking = {job.name: _shrunk_at(job, now) for job in snapshot.active if _shrinks(job)}
        simulation.beginning = {
            job.name: _begins_at(job, snapshot, now) for job in snapshot.active if retries_capacity(job)
        }
        return simulation

    @property
    def size(self) -> int:
        """Jobs that a plan has to look at now."""
        return len(self.snapshot.active) + len(self.snapshot.waiting)

    def apply(self, plan: Plan) -> None:
        """Apply the decisions of a plan."""
        self.snapshot = with_changes(self.snapshot, plan.of_pools)
        active = {job.name: job for job in self.snapshot.active}
        waiting = {job.name: job for job in self.snapshot.waiting}
        for start in plan.starts:
            del waiting[start.job.name]
            active[start.job.name] = self._started(start)
        for preemption in plan.preemptions:
            waiting[preemption.job.name] = lifecycle.reserve(waiting[preemption.job.name], preemption.reservation)
            for victim in preemption.victims:
                active[victim.name] = self._preempted(active[victim.name], preemption.job.name)
            for resize in preemption.shrinks:
                active[resize.job.name] = self._shrinking(resize)
        for ended in plan.warm_ends:
            waiting[ended.job.name] = lifecycle.reserve(waiting[ended.job.name], ended.reservation)
        warm = self._warm_after(plan) if self.snapshot.warm else ()
        moved = [self.snapshot.cursors, *(start.cursors for start in plan.starts if start.cursors is not None)]
        self.snapshot = replace(
            self.snapshot, active=tuple(active.values()), waiting=tuple(waiting.values()), warm=warm, cursors=moved[-1]
        )

    def advance(self, plan: Plan) -> bool:
        """Advance to the next event and those rounded to the same time; return False if there is none."""
        next_ = min(self._upcoming(plan), default=None)
        if next_ is None:
            return False
        self.moment = self._rounded_up(max(next_, self.moment))
        happens = (*self.ends.values(), *self.shrinking.values(), *self.beginning.values())
        last = max((item for item in happens if item <= self.moment), default=next_)
        self.since = max(next_ + (last - next_) / 2, self.since)
        self._begin_due_jobs()
        self._finish_due_shrinks()
        self._end_due_jobs()
        return True

    def run_time(self, job: Job) -> timedelta:
        """Return how long a waiting job holds units once it starts."""
        left = self.left.get(job.name)
        return self._scaled(job, max(ends.run_time(job) for ends in self.expected_ends)) if left is None else left

    def _upcoming(self, plan: Plan) -> Iterator[datetime]:
        yield from self.ends.values()
        yield from self.shrinking.values()
        yield from self.beginning.values()
        yield from (job.retry_at for job in self.snapshot.waiting if job.retry_at and job.retry_at > self.moment)
        yield from map(_gone, self.snapshot.warm)
        # What the planner expects to end is known here.
        if plan.rules_at is not None:
            yield plan.rules_at

    def _rounded_up(self, next_: datetime) -> datetime:
        """Return the time rounded up; rounded times lie further apart the later they are."""
        seconds = (next_ - self.begun).total_seconds()
        if seconds <= 1 or not self.grain:
            return next_
        step = math.log1p(self.grain)
        shown = math.exp(math.ceil(math.log(seconds) / step - 1e-9) * step)
        return max(next_, self.begun + timedelta(seconds=shown))

    def _begin_due_jobs(self) -> None:
        """Have the jobs work that are due: AWS had capacity for them, so others need not stand back any more."""
        due = {name: self.beginning.pop(name) for name, at in list(self.beginning.items()) if at <= self.moment}
        if due:
            begins = (job for job in self.snapshot.active if job.name in due)
            begun = {job.name: _after(job, Status.IN_PROGRESS, due[job.name]) for job in begins}
            active = tuple(begun.get(job.name) or job for job in self.snapshot.active)
            self.snapshot = replace(self.snapshot, active=active)

    def _finish_due_shrinks(self) -> None:
        """Finish the shrinks that are due."""
        done = {name for name, at in self.shrinking.items() if at <= self.moment}
        if done:
            active = (self._shrunk(job) if job.name in done else job for job in self.snapshot.active)
            self.snapshot = replace(self.snapshot, active=tuple(active))

    def _end_due_jobs(self) -> None:
        """End the jobs that are due."""
        ended = [job for job in self.snapshot.active if self.ends[job.name] <= self.moment]
        remaining = [job for job in self.snapshot.active if self.ends[job.name] > self.moment]
        stopped = ((job, _after(job, Status.STOPPED, self.moment)) for job in ended if job.stopping)
        back = [after for _, after in stopped if after is not None and after.state in WAITING]
        self._record_usage(ended)
        for job in ended:
            del self.ends[job.name]
            self.shrinking.pop(job.name, None)
        warm = tuple(pool for pool in self.snapshot.warm if _gone(pool) > self.moment)
        freed = {pool for job in ended for pool in job.units}
        waiting = awakened_by((*self.snapshot.waiting, *back), freed, self.moment)
        self.snapshot = replace(self.snapshot, active=tuple(remaining), waiting=waiting, warm=warm)

    def _record_usage(self, ended: Sequence[Job]) -> None:
        """Record the usage of ended attempts, if any decision depends on it."""
        policy, records = self.snapshot.policy, self.snapshot.records
        if not order_of(policy).by_usage and all(share.budget is None for share in policy.shares.values()):
            return
        usage = records.usage
        for job in ended:
            after = _after(job, Status.STOPPED if job.stopping else Status.COMPLETED, self.moment)
            usage = usage if after is None else usage.after(job, after, policy, self.snapshot.pools)
        self.snapshot = replace(self.snapshot, records=replace(records, usage=usage))

    def _started(self, start: Start) -> Job:
        back = reclaimed_at(start.units, self.snapshot.pools)
        units = start.job.demand.alternatives[0] if start.job.elastic is not None else start.units
        job = lifecycle.start(start.job, units, start.choices, self.since, reclaimed_at=back)
        self.ends[job.name] = _earlier(self.since + self.run_time(start.job), back)
        if may_lack_again(start.job):
            self.beginning[job.name] = _begins_at(job, self.snapshot, self.since)
            return job
        return _after(job, Status.IN_PROGRESS, self.since) or job

    def _preempted(self, job: Job, beneficiary: str) -> Job:
        if job.checkpointed:
            self.left[job.name] = max(self.ends[job.name] - self.since, timedelta(0))
        self.ends[job.name] = self.since + self._stop_duration
        self.shrinking.pop(job.name, None)
        return lifecycle.preempt(job, beneficiary, self.moment)

    def _shrinking(self, resize: Resize) -> Job:
        """Return the job from when it is asked to shrink."""
        at, until = self.moment, self.moment + self._stop_duration
        self.shrinking[resize.job.name] = until
        return lifecycle.resize(resize.job, resize.size, resize.cause, at, until=until, freed_for=resize.freed_for)

    def _shrunk(self, job: Job) -> Job:
        """Return the job after its shrink; it runs slower from then on."""
        at, attempt, elastic = self.shrinking.pop(job.name), lifecycle.current(job), lifecycle.elastic_of(job)
        before, after = attempt.size, lifecycle.resizing_of(job).after
        if elastic.hook is Hook.RESTART:
            stopped = _after(job, Status.STOPPED, at)
            job = job if stopped is None else _after(stopped, Status.IN_PROGRESS, at) or stopped
        elif elastic.hook is Hook.MEMBERS:
            for member in [member for member in attempt.members if member.leaving]:
                job = lifecycle.remove_member(job, member.training_job_name, at, "has left", lost=False)
        else:
            job = lifecycle.complete_resize(job, at, after)
        self.ends[job.name] = at + max(self.ends[job.name] - at, timedelta(0)) * (before / after)
        return job

    def _warm_after(self, plan: Plan) -> tuple[WarmPool, ...]:
        """Return the warm pools after a plan: a used one belongs to its job, and one to be ended is releasing."""
        used = {start.warm.training_job_name for start in plan.starts if start.warm is not None}
        ending = {ended.warm.training_job_name for ended in plan.warm_ends}
        return tuple(
            replace(pool, ending_since=self.since) if pool.training_job_name in ending else pool
            for pool in counting(self.snapshot.warm, self.snapshot.active)
            if pool.training_job_name not in used
        )

    def _end(self, job: Job) -> datetime:
        end = max(ends.end(job) for ends in self.expected_ends)
        if not job.stopping:
            end = self.begun + self._scaled(job, end - self.begun)
        return _earlier(end, None if job.attempt is None else job.attempt.reclaimed_at)

    @property
    def _stop_duration(self) -> timedelta:
        """Time that a stop takes in this simulation."""
        return STOP_DURATION * (self.expected_ends[0].quantile / MEDIAN)

    def _scaled(self, job: Job, span: timedelta) -> timedelta:
        """Return a span; without any history, a shorter part of the time limit for low quantiles."""
        unknown = not self.snapshot.records.history.kinds and job.work is None
        quantile = self.expected_ends[0].quantile
        return span * quantile if unknown and quantile < MEDIAN else span


def _grain_of(snapshot: Snapshot) -> float:
    wanted = (len(snapshot.active) + len(snapshot.waiting)) / FINE_UP_TO
    return next((grain for grain in GRAINS if grain >= wanted), GRAINS[-1])


def _begins_at(job: Job, snapshot: Snapshot, now: datetime) -> datetime:
    """Return when a job that is being started is expected to work."""
    startup = max(timedelta(seconds=snapshot.records.history.startup(job)), STOP_DURATION)
    return max(lifecycle.current(job).created_at + startup, now + OVERDUE_GRACE)


def _shrunk_at(job: Job, now: datetime) -> datetime:
    """Return when a shrink in progress is expected to finish."""
    return max(lifecycle.resizing_of(job).asked_at + STOP_DURATION, now + OVERDUE_GRACE)


def _shrinks(job: Job) -> bool:
    return bool(job.freeing) and not job.stopping


def _gone(pool: WarmPool) -> datetime:
    """Return when a warm pool has released its units."""
    return pool.until if pool.ending_since is None else pool.ending_since + STOP_DURATION


def _earlier(one: datetime, other: datetime | None) -> datetime:
    return one if other is None else min(one, other)


def _after(job: Job, status: Status, now: datetime) -> Job | None:
    name = "" if job.attempt is None else job.attempt.base_name
    secondary = "Training" if status is Status.IN_PROGRESS else ""
    return lifecycle.observe(job, Observation(training_job_name=name, status=status, secondary=secondary), now)
