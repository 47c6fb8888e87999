"""The planner alone on a virtual clock: plans are carried out at once by the life cycle's own transitions.

Faster than `world.World`, and without its service, store and simulator; for what hangs on many passes in a row.
It must not hold any rule of the queue.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from builders import NOW, a_snapshot, an_observation
from trainmaster.domain.capacity.units import Pool, total
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, Job, JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.plan import Plan
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.records import Records, booked
from trainmaster.planner.schedule import schedule

MAX_PASSES = 3_000


class Swap(NamedTuple):
    """One job stepped aside for another."""

    victim: str
    winner: str
    at: datetime


class PlannerSim:
    """Jobs, pools and a clock; each job works for some seconds in all, and keeps its work where it writes checkpoints.

    Args:
        pools: what there is.
        policy: the settings in force.
        stops: seconds that a stop takes.
        starts: seconds from a start to instances at work.
    """

    def __init__(
        self, *pools: Pool, policy: Policy | None = None, stops: float = 60, starts: float = 0, now: datetime = NOW
    ) -> None:
        self.pools = {pool.name: pool for pool in pools}
        self.policy = policy or Policy()
        self.stops, self.starts = timedelta(seconds=stops), timedelta(seconds=starts)
        self.now = now
        self.jobs: dict[str, Job] = {}
        self.records = Records()
        self.left: dict[str, timedelta] = {}
        self.stop_takes: dict[str, timedelta] = {}
        self.swaps: list[Swap] = []
        self.passes = 0
        self.plan = Plan()

    # -- people -----------------------------------------------------------------------------------------------------
    def submit(self, *jobs: Job, seconds: float = 600) -> None:
        """Jobs enter the queue now, each with that much work."""
        for job in jobs:
            self.jobs[job.name] = replace(job, entry_time=self.now)
            self.left[job.name] = timedelta(seconds=seconds)

    def job(self, name: str) -> Job:
        return self.jobs[name]

    def reason(self, name: str) -> Reason:
        """Reason for which a job waits in the newest plan."""
        return next(wait.reason for wait in self.plan.waits if wait.job.name == name)

    def running(self) -> set[str]:
        """Names of the jobs that are at work and not being stopped."""
        return {job.name for job in self.jobs.values() if job.state in ACTIVE and not job.stopping}

    def victims(self) -> list[str]:
        """Names of the jobs preempted so far, in that order."""
        return [swap.victim for swap in self.swaps]

    # -- time -------------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Passes at one moment, until nothing changes any more."""
        while self._pass() or self._happen():
            self.passes += 1
            assert self.passes < MAX_PASSES, "the passes do not come to an end"

    def run(self, seconds: float) -> None:
        """Let time pass; there is a pass whenever something happens, or the plan asks for one."""
        end = self.now + timedelta(seconds=seconds)
        self.settle()
        while (moment := self._next()) is not None and moment <= end:
            self.now = moment
            self._happen()
            self.settle()
        self.now = end
        self._happen()
        self.settle()

    def run_until_ended(self, limit: float = 10_000_000) -> None:
        """Let time pass until every job has ended."""
        end = self.now + timedelta(seconds=limit)
        self.settle()
        while not all(job.state in ENDED for job in self.jobs.values()):
            moment = self._next()
            assert moment is not None, {wait.job.name: wait.reason.message() for wait in self.plan.waits}
            assert moment <= end, "it takes too long"
            self.now = moment
            self._happen()
            self.settle()

    def _next(self) -> datetime | None:
        moments = [when for job in self._in(ACTIVE) if (when := self._due(job)) is not None]
        if self.plan.recheck_at is not None:
            moments.append(self.plan.recheck_at)
        return min((moment for moment in moments if moment > self.now), default=None)

    def _due(self, job: Job) -> datetime | None:
        """Time of the next event of an active job."""
        attempt = lifecycle.current(job)
        if attempt.stop_asked_at is not None:
            return attempt.stop_asked_at + self.stop_takes.get(job.name, self.stops)
        if attempt.started_at is None:
            return attempt.created_at + self.starts
        return attempt.started_at + self.left[job.name]

    def _happen(self) -> bool:
        """Play the events that are due now; return True if there were any."""
        due = [job for job in self._in(ACTIVE) if (when := self._due(job)) is not None and when <= self.now]
        for job in due:
            self._end_or_start(job)
        return bool(due)

    def _end_or_start(self, job: Job) -> None:
        attempt = lifecycle.current(job)
        if attempt.stop_asked_at is not None:
            if attempt.started_at is not None and job.checkpointed:
                self.left[job.name] -= attempt.stop_asked_at - attempt.started_at
            self._see(job, Status.STOPPED)
        elif attempt.started_at is None:
            self._see(job, Status.IN_PROGRESS, secondary="Training", started_at=self.now)
        else:
            self._see(job, Status.COMPLETED)

    def _see(self, job: Job, status: Status, **fields: object) -> None:
        after = lifecycle.observe(job, an_observation(job, status=status, **fields), self.now)
        assert after is not None
        self._put(after)

    def _put(self, after: Job) -> None:
        self.records = booked(self.records, self.jobs[after.name], after, self.policy, self.pools)
        self.jobs[after.name] = after

    def _in(self, states: Iterable[JobState]) -> Iterator[Job]:
        return (job for job in self.jobs.values() if job.state in states)

    # -- a pass -----------------------------------------------------------------------------------------------------
    def snapshot(self) -> object:
        read = a_snapshot(
            pools=self.pools,
            active=list(self._in(ACTIVE)),
            waiting=list(self._in(WAITING)),
            policy=self.policy,
            pass_number=self.passes,
        )
        return replace(read, records=self.records)

    def _pass(self) -> bool:
        """One pass; whether it did anything."""
        self.plan = schedule(self.snapshot(), self.now, random.Random(self.passes))
        for preemption in self.plan.preemptions:
            self._put(lifecycle.reserve(self.jobs[preemption.job.name], preemption.reservation))
            for victim in preemption.victims:
                self.swaps.append(Swap(victim.name, preemption.job.name, self.now))
                self._put(lifecycle.preempt(self.jobs[victim.name], preemption.job.name, self.now))
        for start in self.plan.starts:
            self._put(lifecycle.mark_launched(lifecycle.start(self.jobs[start.job.name], start.units, (), self.now)))
        used = total(job.units for job in self._in(ACTIVE))
        over = {name: count for name, count in used.items() if count > self.pools[name].cap}
        assert not over, f"caps exceeded: {over}"
        return bool(self.plan.starts or self.plan.preemptions)
