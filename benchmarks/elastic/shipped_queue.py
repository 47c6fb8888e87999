"""Replays a trace with elastic jobs with the shipped planner, service and store.

A job is elastic by the tags of its request, and works at the pace of its running instances. With the hook `restart` an
attempt after a resize starts later by the cost of the resize; with `members` the base pauses. Any other later attempt
costs a restart. The simulated SageMaker reports what jobs held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from benchmarks.elastic.members import FOREVER_SECONDS, Members, base_of
from benchmarks.elastic.pool_simulation import PoolSettings
from benchmarks.elastic.results import JobResult, Span
from benchmarks.elastic.workload import SizedJob
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.domain.times import NEVER
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.replay.queue import Replay, ReplaySettings
from trainmaster.local.replay.trace.requests import index_of
from trainmaster.local.simulator import Profile, VirtualClock
from trainmaster.local.virtual_time import next_tick, seconds_at
from trainmaster.service.apply_plan import PassReport

SCALING_SECONDS = 60
"""Minimum time at a size before a running job grows (HyperPod's example of `scalingTimeoutInSeconds`)."""
REPORT_SECONDS, REPORT_NOISE = 300.0, 0.05
"""Time between two reports of a worker, and their relative error."""
NO_LIMIT = timedelta(days=3_650)

_NETWORK = {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}}
"""Training jobs need a VPC to connect to each other."""


class ElasticReplay:
    """One replay.

    Args:
        jobs: in order of submission, none larger than the pool.
        settings: the pool, and the costs of changes.
        policy: settings of the queue.
        hook: the way in which jobs are resized; not `custom`.
    """

    def __init__(
        self,
        jobs: Sequence[SizedJob],
        settings: PoolSettings,
        policy: Policy,
        hook: Hook = Hook.RESTART,
        *,
        reports: bool = True,
    ) -> None:
        self._jobs = jobs
        self._settings = settings
        queue_terms = ReplaySettings(cap=settings.cap, policy=policy, restart_cost=settings.restart_cost)
        self._replay = _ElasticTraceReplay(jobs, queue_terms, hook, self._changed, reports=reports)
        simulator = self._replay.simulator
        simulator.profiles.pace, simulator.profiles.adjust = self._pace, self._adjusted
        self._members = Members(simulator, settings.resize_cost)

    def run(self) -> list[JobResult]:
        """Run to the end. Raises `ReplayFailed`."""
        self._replay.run()
        return [self._result(index) for index in range(len(self._jobs))]

    def _changed(self, training_job_name: str) -> None:
        self._members.note(training_job_name)

    def _pace(self, request: Mapping[str, Any]) -> float:
        size = request["ResourceConfig"]["InstanceCount"] + self._members.at_work(request["TrainingJobName"])
        job = self._jobs[index_of(_job_name(request))]
        return 1.0 if base_of(request["TrainingJobName"]) else job.pace(size)

    def _adjusted(self, request: Mapping[str, Any], profile: Profile) -> Profile:
        """Return the profile of an attempt: a resize delays its start, which the queue can measure."""
        if base_of(request["TrainingJobName"]):
            return replace(profile, training_seconds=FOREVER_SECONDS)
        stored = self._replay.store.find(_job_name(request))
        if stored is None or not stored.past or stored.past[-1].outcome is not Outcome.RESIZED:
            return profile
        return replace(profile, starting_seconds=self._settings.resize_cost, restarting_seconds=0)

    def _cost_after(self, attempt: Attempt) -> float:
        return self._settings.resize_cost if attempt.outcome is Outcome.RESIZED else self._settings.restart_cost

    def _result(self, index: int) -> JobResult:
        attempts = self._replay.held_attempts(index)
        spans, lost = list[Span](), 0.0
        for number, attempt in enumerate(attempts):
            held = self._members.spans(attempt.training_job_name)
            # Sizes that an attempt held for no time do not count.
            costs = [self._settings.resize_cost] * len(held)
            costs[:1] = [self._cost_after(attempts[number - 1]) if number else 0.0][: len(held)]
            lost += sum(min(cost, span.end - span.start) * span.size for cost, span in zip(costs, held, strict=True))
            spans += held
        if not spans:
            ended = seconds_at(attempts[-1].ended_at or attempts[-1].created_at)
            spans = [Span(ended, ended, attempts[-1].size)]
        return JobResult(self._jobs[index], tuple(spans), lost)


class CheckpointedStore(MemoryStore):
    """A store in which the work of every running job is saved as of now, and no limit is about to end a job.

    The simulated scripts save a checkpoint when they are stopped, so a stop loses nothing. On AWS the tick looks at the
    checkpoints in S3 every five minutes; here there is no S3. Traces have no limits either: a job that runs for longer
    than SageMaker's 28 days would count as about to end.

    Args:
        clock: the virtual clock.
        rate: returns the steps a second of a job at a size; None if workers report no speeds.
        given: arguments of the store in memory.
    """

    def __init__(self, clock: VirtualClock, rate: Callable[[Job, int], float] | None = None, **given: Any) -> None:
        super().__init__(**given)
        self._clock = clock
        self._rate = rate
        self._rng = Random(0)
        self._reported_at: dict[str, datetime] = {}
        self._saved: dict[str, tuple[Job, Job]] = {}

    def begin_pass(self) -> Snapshot:
        """Return the snapshot with the work of every running job saved, after the reports of their workers."""
        snapshot, now = super().begin_pass(), self._clock.now()
        return replace(
            snapshot, active=tuple(self._with_checkpoint(self._reported(job, now)) for job in snapshot.active)
        )

    def _with_checkpoint(self, job: Job) -> Job:
        """Return the job with a checkpoint of any time and without a limit; the same object in each pass."""
        attempt = job.attempt
        if attempt is None or attempt.started_at is None or attempt.saved_at is not None:
            return job
        known = self._saved.get(job.name)
        if known is None or known[0] is not job:
            saved = replace(job, attempt=replace(attempt, saved_at=NEVER), max_runtime=NO_LIMIT)
            known = self._saved[job.name] = (job, saved)
        return known[1]

    def _reported(self, job: Job, now: datetime) -> Job:
        """Return the job after a report of its speed, if one is due and tells something new."""
        attempt = job.attempt
        if self._rate is None or job.elastic is None or job.state is not JobState.RUNNING or attempt is None:
            return job
        since = max(attempt.held_since, attempt.started_at or now, self._reported_at.get(job.name, attempt.held_since))
        if (now - since).total_seconds() < REPORT_SECONDS:
            return job
        self._reported_at[job.name] = now
        rate = self._rate(job, attempt.size) * self._rng.lognormvariate(0.0, REPORT_NOISE)
        after = lifecycle.record_speed(job, attempt.size, rate, now)
        return after if after is not None and self.transition([(job, after)]) else job


class _ElasticTraceReplay(Replay):
    """A replay that submits elastic jobs with their tags, and reports changes of training jobs."""

    def __init__(
        self,
        jobs: Sequence[SizedJob],
        settings: ReplaySettings,
        hook: Hook,
        changed: Callable[[str], None],
        *,
        reports: bool,
    ) -> None:
        super().__init__(
            [job.trace for job in jobs],
            settings,
            make_store=lambda **given: CheckpointedStore(self.clock, self._speed if reports else None, **given),
        )
        self._sized, self._hook, self._on_change = jobs, hook, changed

    def _speed(self, job: Job, size: int) -> float:
        return self._sized[index_of(job.name)].speed(size)

    def request(self, index: int) -> dict[str, Any]:
        """Return the request of the trace's job, with its sizes."""
        made, sizes = super().request(index), self._sized[index].sizes
        if len(sizes) == 1:
            return made
        options = {"min-instances": sizes[0], "max-instances": sizes[-1], "scaling-timeout": SCALING_SECONDS}
        options["resize-by"] = self._hook.value
        tags = [{"Key": f"trainmaster:{key}", "Value": str(value)} for key, value in options.items()]
        return made | {"Tags": tags} | (_NETWORK if self._hook is Hook.MEMBERS else {})

    def next_wake(self, report: PassReport, now: datetime) -> datetime | None:
        """Return the next tick also if members must be created or stopped."""
        found = super().next_wake(report, now)
        if self._hook is not Hook.MEMBERS or not any(map(_moves, self.store.read_snapshot().active)):
            return found
        return min(filter(None, (found, next_tick(now, now))))

    def _note(self, training_job_name: str) -> None:
        super()._note(training_job_name)
        self._on_change(training_job_name)


def _moves(job: Job) -> bool:
    return job.attempt is not None and any(not member.launched or member.leaving for member in job.attempt.members)


def _job_name(request: Mapping[str, Any]) -> str:
    name: str = request["TrainingJobName"]
    return name.partition(STAMP)[0]
