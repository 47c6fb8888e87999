"""A planner simulation of elastic jobs: members join and leave, restarts stop and start, each taking its time.

Work is counted in instance-seconds at the least size, and a larger job does more of it at once. It must not hold any
rule of the queue; what has to hold in every pass is checked here.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from builders import an_observation
from planner_sim import PlannerSim
from trainmaster.domain.elastic.sizes import Cause, Hook
from trainmaster.domain.errors import Refused
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.plan import Preempt, Resize, Wait
from trainmaster.domain.reasons.capacity import CanNeverFit, ReservedForOther, WaitsForCapacity
from trainmaster.domain.requests.elastic.size_change import SizeBounds

LATER = timedelta(hours=1)
ROUNDING = timedelta(milliseconds=1)
"""Work that is left only because times are told to the microsecond."""


class Resized(NamedTuple):
    """One decision to resize a job."""

    at: datetime
    job: str
    before: int
    size: int
    cause: Cause
    freed_for: str


class ElasticPlannerSim(PlannerSim):
    """A planner simulation of one pool at a time, with resizes.

    Args:
        moves: seconds that a member takes to join or to leave.
    """

    def __init__(self, *pools: object, moves: float = 30, **fields: object) -> None:
        super().__init__(*pools, **fields)
        self.moves = timedelta(seconds=moves)
        self.resizes: list[Resized] = []
        self._counted: dict[str, datetime] = {}

    def size(self, name: str) -> int:
        """Instances that a job holds."""
        return sum(self.job(name).units.values())

    def sizes(self) -> dict[str, int]:
        """The same of all active jobs."""
        return {job.name: self.size(job.name) for job in self._in(ACTIVE)}

    def change_bounds(self, name: str, minimum: int, maximum: int) -> bool:
        """A person sets other bounds; returns False if they were refused."""
        job = self.job(name)
        try:
            elastic = SizeBounds(minimum, maximum).apply(lifecycle.elastic_of(job))
            self._count(job)
            self._put(lifecycle.set_bounds(job, elastic, self.now, "ada"))
        except Refused:
            return False
        return True

    def lose_member(self, name: str) -> None:
        """The newest member of a job is lost now."""
        self._count(self.jobs[name])
        member = lifecycle.current(self.job(name)).members[-1]
        self._put(lifecycle.remove_member(self.job(name), member.training_job_name, self.now, "lost", lost=True))

    def accept_smaller_size(self) -> None:
        """Do as the service does with jobs whose lost member has not been replaced in time."""
        for job in list(self._in(ACTIVE)):
            attempt = lifecycle.current(job)
            if job.elastic is None or attempt.faulty_since is None or job.state is not JobState.RUNNING:
                continue
            over = self.now >= attempt.faulty_since + job.elastic.faulty_scale_down_timeout
            if over and attempt.size in job.elastic.sizes:
                self._put(lifecycle.accept_smaller_size(job, self.now))

    # -- time -------------------------------------------------------------------------------------------------------
    def _rate(self, job: Job) -> float:
        """Seconds of work, at the least size, that the job does in a second."""
        attempt = lifecycle.current(job)
        if attempt.started_at is None or attempt.stop_asked_at is not None or attempt.base_ended_at is not None:
            return 0.0
        if job.elastic is None:
            return 1.0
        here = sum(1 for member in attempt.members if member.started_at is not None)
        base = attempt.size - len(attempt.members)
        return (base + here) / job.elastic.min_instances

    def _count(self, job: Job) -> None:
        """Work done until now."""
        since = self._counted.get(job.name, self.now)
        self._counted[job.name] = self.now
        self.left[job.name] -= (self.now - since) * self._rate(job)

    def _due(self, job: Job) -> datetime | None:
        if job.elastic is None:
            return super()._due(job)
        attempt, moments = lifecycle.current(job), []
        for member in attempt.members:
            if member.leaving:
                moments.append((member.drain_asked_at or member.left_at or self.now) + self.moves)
            elif member.started_at is None:
                moments.append(member.created_at + self.moves)
        if attempt.base_ended_at is not None:
            moments.append(attempt.base_ended_at + self.moves)
        elif attempt.stop_asked_at is not None:
            moments.append(attempt.stop_asked_at + self.stops)
        elif attempt.started_at is None:
            moments.append(attempt.created_at + self.starts)
        else:
            counted = self._counted.get(job.name, attempt.started_at)
            moments.append(counted + self.left[job.name] / self._rate(job))
            if attempt.resizing is not None and job.elastic.hook is Hook.CUSTOM:
                moments.append(attempt.resizing.asked_at + self.moves)
        return max(min(moments), self.now)

    def _end_or_start(self, job: Job) -> None:
        if job.elastic is None:
            super()._end_or_start(job)
            return
        self._count(job)
        attempt = lifecycle.current(job)
        moved = self._member_due(job)
        if moved is not None:
            self._put(moved)
        elif attempt.base_ended_at is not None:
            self._see(job, Status.COMPLETED)
        elif attempt.stop_asked_at is not None and attempt.stop_asked_at + self.stops <= self.now:
            self._see(job, Status.STOPPED)
        elif attempt.started_at is None:
            self._see(job, Status.IN_PROGRESS, secondary="Training", started_at=self.now)
        elif self.left[job.name] <= ROUNDING:
            self._see(job, Status.COMPLETED)
        elif attempt.resizing is not None and job.elastic.hook is Hook.CUSTOM:
            self._put(lifecycle.complete_resize(job, self.now, attempt.resizing.after))

    def _member_due(self, job: Job) -> Job | None:
        for member in lifecycle.current(job).members:
            name = member.training_job_name
            if member.leaving:
                if (member.drain_asked_at or member.left_at or self.now) + self.moves <= self.now:
                    return lifecycle.remove_member(job, name, self.now, "has left", lost=False)
            elif member.started_at is None and member.created_at + self.moves <= self.now:
                seen = an_observation(job, training_job_name=name, secondary="Training", started_at=self.now)
                return lifecycle.observe(job, seen, self.now)
        return None

    # -- a pass -----------------------------------------------------------------------------------------------------
    def _pass(self) -> bool:
        for job in list(self._in(ACTIVE)):
            if job.elastic is not None:
                self._count(job)
        before = dict(self.jobs)
        moved = super()._pass()
        shrinks = [(each, p.job) for p in self.plan.preemptions for each in p.shrinks]
        for resize, _ in shrinks:
            self._resize(resize)
        for resize in self.plan.resizes:
            self._resize(resize)
        self._check_caps()
        for preemption in self.plan.preemptions:
            self._check_way(preemption, before)
        for resize in self.plan.resizes:
            self._check_growth(resize)
        return moved or bool(shrinks or self.plan.resizes)

    def _resize(self, resize: Resize) -> None:
        job = self.jobs[resize.job.name]
        before = lifecycle.current(job).size
        self.resizes.append(Resized(self.now, job.name, before, resize.size, resize.cause, resize.freed_for))
        assert resize.size in job.sizes
        until = self.now + LATER
        beneficiary = resize.freed_for or None
        self._put(lifecycle.resize(job, resize.size, resize.cause, self.now, until=until, freed_for=beneficiary))

    def _check_caps(self) -> None:
        for name, pool in self.pools.items():
            assert sum(job.units.get(name, 0) for job in self._in(ACTIVE)) <= pool.cap

    def _check_way(self, preemption: Preempt, before: dict[str, Job]) -> None:
        """Stopped and shrunk jobs free enough in the end, and no job is stopped if shrinking would have sufficed."""
        for pool, count in preemption.reservation.units.items():
            staying = sum(job.staying.get(pool, 0) for job in self._in(ACTIVE))
            assert staying + count <= self.pools[pool].cap, "stopped or shrunk for a job that could not start"
        for victim in preemption.victims:
            for pool in victim.units:
                freed = sum(v.staying.get(pool, 0) for v in preemption.victims)
                freed += sum(before[s.job.name].units.get(pool, 0) - s.size for s in preemption.shrinks)
                could = sum(self._could_give(job, pool, preemption) for job in before.values())
                assert could < freed, "stopped though shrinking would do"

    def _could_give(self, job: Job, pool: str, preemption: Preempt) -> int:
        """Units that a job could have given for this decision; units that it gives for another one do not count."""
        if job.elastic is None or job.state is not JobState.RUNNING or pool not in job.units or self.policy.shares:
            return 0
        touched = {s.job.name for p in self.plan.preemptions if p is not preemption for s in p.shrinks}
        outranked = job.priority < preemption.job.priority
        stops = lifecycle.current(job).stop_asked_at is not None
        return 0 if job.name in touched or stops or not outranked else self.size_of(job) - job.sizes[0]

    @staticmethod
    def size_of(job: Job) -> int:
        return lifecycle.current(job).size

    def _check_growth(self, resize: Resize) -> None:
        """No job grows while one waits for the pool that could have it shrink again, unless that waits for others."""
        if resize.cause is not Cause.GROW or self.policy.shares:
            return
        for wait in self.plan.waits:
            self._check_wait(resize.job, wait)

    def _next_expected_end(self, job: Job) -> datetime:
        """Of those that hold units where the job does: the plays teach no run times, so each may run its whole time."""
        began = (other.attempt for other in self._in(ACTIVE) if not set(other.units).isdisjoint(job.units))
        return min(attempt.created_at for attempt in began if attempt is not None) + job.max_runtime

    def _check_wait(self, job: Job, wait: Wait) -> None:
        if isinstance(wait.reason, CanNeverFit) or set(wait.job.demand.pools).isdisjoint(job.units):
            return
        # A job that waits for others' ends is not delayed by one that grows until then and shrinks for it afterwards.
        if isinstance(wait.reason, WaitsForCapacity | ReservedForOther) and self._next_expected_end(job) > self.now:
            return
        assert wait.job.priority <= job.priority
        assert not (self.policy.resizes.shrink_equals and wait.job.priority == job.priority)
