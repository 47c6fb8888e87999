"""The shipped queue over a trace with elastic jobs: planner, service and store are those that are deployed.

A job is elastic by the tags that a user would give, and works at the pace of the instances that are at work for it.
With the hook `restart` an attempt that follows a resize takes that much longer to start, with `members` the base
pauses; any other attempt that follows one pays for a restart. What jobs held is read from SageMaker's side. It must
not decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from benchmarks.elastic.members import FOREVER_SECONDS, Members, base_of
from benchmarks.elastic.pool_simulation import Terms
from benchmarks.elastic.results import Course, Span
from benchmarks.elastic.workload import SizedJob
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.replay.queue import Replay, ReplaySettings
from trainmaster.local.replay.trace.requests import index_of
from trainmaster.local.simulator import Profile, VirtualClock
from trainmaster.local.virtual_time import next_tick, seconds_at
from trainmaster.service.apply_plan import PassReport

SCALING_SECONDS = 60
"""A running job grows once its size has lasted for so long (HyperPod's example of `scalingTimeoutInSeconds`)."""

_NETWORK = {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}}
"""What training jobs that meet need to reach each other."""


class ElasticReplay:
    """One run of the queue.

    Args:
        jobs: in order of submission, none larger than the pool.
        terms: the pool, and what changes cost.
        policy: the queue's settings.
        hook: how jobs are resized; not `custom`.
    """

    def __init__(self, jobs: Sequence[SizedJob], terms: Terms, policy: Policy, hook: Hook = Hook.RESTART) -> None:
        self._jobs = jobs
        self._terms = terms
        queue_terms = ReplaySettings(cap=terms.cap, policy=policy, restart_cost=terms.restart_cost)
        self._replay = _Elastic(jobs, queue_terms, hook, self._changed)
        simulator = self._replay.simulator
        simulator.profiles.pace, simulator.profiles.adjust = self._pace, self._tailored
        self._members = Members(simulator, terms.resize_cost)

    def play(self) -> list[Course]:
        """Run to the end. Raises `ReplayFailed`."""
        self._replay.play()
        return [self._course(index) for index in range(len(self._jobs))]

    def _changed(self, training_job_name: str) -> None:
        self._members.note(training_job_name)

    def _pace(self, request: Mapping[str, Any]) -> float:
        size = request["ResourceConfig"]["InstanceCount"] + self._members.at_work(request["TrainingJobName"])
        job = self._jobs[index_of(_job_name(request))]
        return 1.0 if base_of(request["TrainingJobName"]) else job.pace(size)

    def _tailored(self, request: Mapping[str, Any], profile: Profile) -> Profile:
        """What going on costs: a resize as the time until it is at work, which the queue can measure."""
        if base_of(request["TrainingJobName"]):
            return replace(profile, training_seconds=FOREVER_SECONDS)
        stored = self._replay.store.find(_job_name(request))
        if stored is None or not stored.past or stored.past[-1].outcome is not Outcome.RESIZED:
            return profile
        return replace(profile, starting_seconds=self._terms.resize_cost, restarting_seconds=0)

    def _cost_after(self, attempt: Attempt) -> float:
        return self._terms.resize_cost if attempt.outcome is Outcome.RESIZED else self._terms.restart_cost

    def _course(self, index: int) -> Course:
        attempts = self._replay.held_attempts(index)
        spans, lost = list[Span](), 0.0
        for number, attempt in enumerate(attempts):
            held = self._members.spans(attempt.training_job_name)
            # What an attempt did not hold for any time is no part of its course.
            costs = [self._terms.resize_cost] * len(held)
            costs[:1] = [self._cost_after(attempts[number - 1]) if number else 0.0][: len(held)]
            lost += sum(min(cost, span.end - span.start) * span.size for cost, span in zip(costs, held, strict=True))
            spans += held
        if not spans:
            ended = seconds_at(attempts[-1].ended_at or attempts[-1].created_at)
            spans = [Span(ended, ended, attempts[-1].size)]
        return Course(self._jobs[index], tuple(spans), lost)


class Saving(MemoryStore):
    """A store that knows of every running job that its work is saved as of now, and that no limit is about to end it.

    The simulated scripts save when they are told to stop, so a stop loses nothing. In AWS the tick looks at each job's
    checkpoints every five minutes; here there is no S3 to look at. And the traces tell of no limits, so that none is
    kept here: a job that is at work with one GPU for longer than SageMaker's 28 days would else count as about to end.

    Args:
        clock: tells the time.
        given: as for the store in memory.
    """

    def __init__(self, clock: VirtualClock, **given: Any) -> None:
        super().__init__(**given)
        self._clock = clock

    def begin_pass(self) -> Snapshot:
        """As it is, with the checkpoints that a look would find."""
        snapshot, now = super().begin_pass(), self._clock.now()
        return replace(snapshot, active=tuple(_saved(job, now) for job in snapshot.active))


class _Elastic(Replay):
    """A replay whose elastic jobs are submitted with the tags that make them so; it tells what changes in SageMaker."""

    def __init__(
        self, jobs: Sequence[SizedJob], terms: ReplaySettings, hook: Hook, changed: Callable[[str], None]
    ) -> None:
        super().__init__([job.trace for job in jobs], terms, make_store=lambda **given: Saving(self.clock, **given))
        self._sized, self._hook, self._changed_too = jobs, hook, changed

    def request(self, index: int) -> dict[str, Any]:
        """The trace's job, with its sizes."""
        made, sizes = super().request(index), self._sized[index].sizes
        if len(sizes) == 1:
            return made
        options = {"min-instances": sizes[0], "max-instances": sizes[-1], "scaling-timeout": SCALING_SECONDS}
        options["resize-by"] = self._hook.value
        tags = [{"Key": f"trainmaster:{key}", "Value": str(value)} for key, value in options.items()]
        return made | {"Tags": tags} | (_NETWORK if self._hook is Hook.MEMBERS else {})

    def next_wake(self, report: PassReport, now: datetime) -> datetime | None:
        """Also where members are still to be created or stopped, which the next tick's pass does."""
        found = super().next_wake(report, now)
        if self._hook is not Hook.MEMBERS or not any(map(_moves, self.store.read_snapshot().active)):
            return found
        return min(filter(None, (found, next_tick(now, now))))

    def _note(self, training_job_name: str) -> None:
        super()._note(training_job_name)
        self._changed_too(training_job_name)


def _saved(job: Job, now: datetime) -> Job:
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.started_at >= now:
        return job
    return replace(
        job, attempt=replace(attempt, saved_at=now), max_runtime=job.max_runtime + (now - attempt.started_at)
    )


def _moves(job: Job) -> bool:
    return job.attempt is not None and any(not member.launched or member.leaving for member in job.attempt.members)


def _job_name(request: Mapping[str, Any]) -> str:
    name: str = request["TrainingJobName"]
    return name.partition(STAMP)[0]
