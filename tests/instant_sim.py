"""A queue that runs by `schedule` alone: arrivals and ends in, the life cycle's own transitions out.

No store, no SageMaker: stops and starts take no time, so that properties of the planner are seen without anything
else. It must not hold any rule of the queue.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from builders import NOW, an_observation
from trainmaster.domain.capacity.units import Pool, total
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import ENDED, WAITING, Job
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.plan import Plan, Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.records import Records, booked
from trainmaster.planner.schedule import schedule


@dataclass
class InstantSim:
    """Simulation of jobs that arrive at their entry times, each with so many seconds of work."""

    pools: Mapping[str, Pool]
    policy: Policy = field(default_factory=Policy)
    restart: float = 0.0
    learns: bool = True
    watch: Callable[[Snapshot, Plan, datetime], None] = lambda *_: None
    now: datetime = NOW
    jobs: dict[str, Job] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    records: Records = field(default_factory=Records)
    passes: int = 0
    first_starts: dict[str, datetime] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)

    def run(self, arrivals: Iterable[tuple[Job, float]], *, max_passes: int = 5_000) -> InstantSim:
        """Let all jobs arrive and end. Fails where they do not within so many passes."""
        coming = sorted(arrivals, key=lambda each: each[0].entry_time)
        while coming or any(job.state not in ENDED for job in self.jobs.values()):
            while coming and coming[0][0].entry_time <= self.now:
                job, seconds = coming.pop(0)
                self.jobs[job.name], self.work[job.name] = job, seconds
            plan = self.carry_out_passes()
            moments = [self.ends(job) for job in self.active] + [job.entry_time for job, _ in coming[:1]]
            moments += [plan.recheck_at] if plan.recheck_at is not None else []
            assert moments, {job.name: str(job.state) for job in self.jobs.values()}
            assert self.passes < max_passes, "no end in sight"
            self.now = max(min(moments), self.now)
            for job in [job for job in self.active if self.ends(job) <= self.now]:
                self.see(job, Status.COMPLETED)
        return self

    @property
    def active(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.units]

    def snapshot(self) -> Snapshot:
        waiting = sorted((job for job in self.jobs.values() if job.state in WAITING), key=lambda job: job.order)
        return Snapshot(
            pass_number=self.passes,
            pools=self.pools,
            active=tuple(self.active),
            waiting=tuple(waiting),
            policy=self.policy,
            records=self.records,
        )

    def carry_out_passes(self) -> Plan:
        """Passes at one moment, until nothing more comes of them."""
        while True:
            self.passes += 1
            snapshot = self.snapshot()
            plan = schedule(snapshot, self.now, random.Random(self.passes))
            self.watch(snapshot, plan, self.now)
            for preemption in plan.preemptions:
                self.jobs[preemption.job.name] = lifecycle.reserve(
                    self.jobs[preemption.job.name], preemption.reservation
                )
                for victim in preemption.victims:
                    self.jobs[victim.name] = lifecycle.preempt(victim, preemption.job.name, self.now)
                    self.see(self.jobs[victim.name], Status.STOPPED)
            for start in plan.starts:
                self.start(lifecycle.start(self.jobs[start.job.name], start.units, start.choices, self.now))
            if not plan.preemptions and not plan.starts:
                return plan

    def start(self, job: Job) -> None:
        self.first_starts.setdefault(job.name, self.now)
        if job.past:
            self.work[job.name] += self.restart
        seen = an_observation(job, secondary="Training", started_at=self.now)
        self.jobs[job.name] = lifecycle.observe(lifecycle.mark_launched(job), seen, self.now) or job
        for pool, count in total(active.units for active in self.active).items():
            self.peaks[pool] = max(self.peaks.get(pool, 0), count)

    def see(self, job: Job, status: Status) -> None:
        """A training job ends; what it had done of its work stays done."""
        after = lifecycle.observe(job, an_observation(job, status=status), self.now)
        assert after is not None
        self.work[job.name] -= (self.now - self.since(job)).total_seconds()
        if self.learns:
            self.records = booked(self.records, job, after, self.policy, self.pools)
        self.jobs[job.name] = after

    def since(self, job: Job) -> datetime:
        assert job.attempt is not None
        return job.attempt.started_at or self.now

    def ends(self, job: Job) -> datetime:
        return self.since(job) + timedelta(seconds=self.work[job.name])

    def wait_of(self, name: str) -> timedelta:
        """Time that a job has waited before its first start."""
        return self.first_starts[name] - self.jobs[name].entry_time
