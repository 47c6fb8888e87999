"""Replays a trace with the shipped manager in one pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.policy.settings import Policy
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.replay.forecasts import EstimateRecorder, StartEstimate
from trainmaster.local.replay.report.results import JobResult
from trainmaster.local.replay.trace.requests import (
    POOL,
    Request,
    admit_job,
    default_max_runtime,
    index_of,
    name_of,
    request_of,
)
from trainmaster.local.replay.trace.trace import TraceJob
from trainmaster.local.replay.virtual_queue import (
    RESTART_SECONDS,
    ReplayFailed,
    VirtualQueue,
    reduced_garbage_collection,
)
from trainmaster.local.virtual_time import at, instant_profile, seconds_at

Progress = Callable[[int], None]
"""Called with the number of ended jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Settings of a replay.

    Attributes:
        cap: units of the one pool.
        policy: settings of the queue.
        restart_cost: seconds of all its units that each resume of a preempted job costs.
        questions: maximum number of jobs, evenly spaced, whose estimated start is recorded; queries take time.
    """

    cap: int
    policy: Policy
    restart_cost: float = RESTART_SECONDS
    questions: int = 0


class Replay(VirtualQueue):
    """One replay of a trace.

    Args:
        jobs: in order of submission, none larger than the pool.
        settings: cap, policy, cost of a restart.
        on_progress: called with the number of ended jobs.
        make_store: makes the store from pools and policy.

    Attributes:
        estimates: estimated starts, by the index of the job in the trace.
    """

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        settings: ReplaySettings,
        on_progress: Progress = lambda _: None,
        make_store: Callable[..., MemoryStore] = MemoryStore,
    ) -> None:
        self._jobs = jobs
        self._policy = settings.policy
        self._on_progress = on_progress
        self._default_max_runtime = default_max_runtime(jobs)
        self._pools = {POOL: Pool(POOL, settings.cap)}
        super().__init__(self._pools, settings.policy, instant_profile(settings.restart_cost), make_store=make_store)
        every = ceil(len(jobs) / settings.questions) if settings.questions else 0
        self._recorder = EstimateRecorder(self.store, every)
        self.estimates: dict[int, StartEstimate] = {}
        self._arrived = 0

    def run(self) -> list[JobResult]:
        """Run to the end, and return the results in the order of the trace. Raises `ReplayFailed`."""
        with reduced_garbage_collection():
            while len(self.done) < len(self._jobs):
                first = self._arrived
                self.step()
                self._record_estimates(first)
                self._on_progress(len(self.done))
        return [self._result(index) for index in range(len(self._jobs))]

    def request(self, index: int) -> Request:
        """Return the request of the trace's job with this index."""
        return request_of(self._jobs[index], index)

    def completed(self, index: int) -> Job:
        """Return the job of this index, which must be completed. Raises `ReplayFailed` if it is not."""
        job = self.store.find(name_of(index))
        if job is None or job.state is not JobState.COMPLETED:
            stands = "does not exist" if job is None else f"is {job.state}: {job.failure or 'no reason given'}"
            raise ReplayFailed(f"the job {self._jobs[index].job_id} {stands}")
        return job

    def held_attempts(self, index: int) -> list[Attempt]:
        """Return all attempts of a completed job that held capacity, oldest first. Raises `ReplayFailed`."""
        attempts = self.attempts_of(self.completed(index))
        return [attempt for attempt in attempts if attempt.outcome is not Outcome.RETURNED]

    def next_arrival(self) -> datetime | None:
        """Return the time of the next submission; None after the last."""
        return None if self._arrived == len(self._jobs) else at(self._jobs[self._arrived].submit)

    def admit_due(self, time: datetime) -> bool:
        """Submit the jobs that are due; return whether there were any."""
        first = self._arrived
        while self._arrived < len(self._jobs) and at(self._jobs[self._arrived].submit) <= time:
            job = self._jobs[self._arrived]
            request = self.request(self._arrived)
            self.store.submit(admit_job(request, job, self._default_max_runtime, self._pools, time), request)
            self._arrived += 1
        return self._arrived > first

    def may_act(self) -> bool:
        """Return False while the pool is full, unless a job can take units of equals, which all jobs of a trace are."""
        policy = self._policy
        if policy.order.preempts_equals or policy.resizes.shrink_equals or policy.shares:
            return True
        return self.store.held_units(POOL) < self._pools[POOL].cap

    def label_of(self, job_name: str) -> str:
        """Return the name of a job in the trace."""
        return self._jobs[index_of(job_name)].job_id

    def _record_estimates(self, first: int) -> None:
        """Record the estimated starts of the jobs that have just arrived, from this index on."""
        for index in range(first, self._arrived):
            estimate = self._recorder.record(name_of(index), index, self.clock.now())
            if estimate is not None:
                self.estimates[index] = estimate

    def _result(self, index: int) -> JobResult:
        trace_job, held_attempts = self._jobs[index], self.held_attempts(index)
        spans = tuple(
            (seconds_at(each.created_at), seconds_at(each.ended_at or each.created_at)) for each in held_attempts
        )
        lost = sum(end - start for start, end in spans) - trace_job.duration
        # Times are rounded to microseconds, so smaller differences are no loss.
        return JobResult(trace_job, spans, max(0.0, round(lost, 5)))
