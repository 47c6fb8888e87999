"""Runs the shipped manager over a trace: `service.run_pass` and `service.observe` on a virtual clock.

The store is in memory, SageMaker is simulated, the launcher is the shipped one. One pass runs at each instant with
arrivals or ends. Since AWS has a tick each minute, a pass also runs at the first whole minute at or after the time at
which the plan can change by itself.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.attempt_totals import MAX_PAST_ATTEMPTS
from trainmaster.domain.jobs.job import ENDED, Job, JobState
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.jobs.observation import Observation
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
from trainmaster.local.simulator import SageMakerSimulator, VirtualClock
from trainmaster.local.virtual_time import VirtualTime, at, instant_profile, launcher_for, next_tick, seconds_at
from trainmaster.service.apply_plan import PassReport
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import run_pass

RESTART_SECONDS = 300.0
MAX_PASSES = 10_000
"""Maximum passes at one instant; more indicate an error."""
Progress = Callable[[int], None]
"""Called with the number of ended jobs."""


class ReplayFailed(RuntimeError):
    """The queue did not complete every job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Settings of a replay.

    Attributes:
        cap: units of the one pool.
        policy: settings of the queue.
        restart_cost: seconds of all its units that each resume of a preempted job costs.
        questions: number of jobs, approximately, whose estimated start is recorded; queries take time.
    """

    cap: int
    policy: Policy
    restart_cost: float = RESTART_SECONDS
    questions: int = 0


class Replay:
    """One replay of a trace.

    Args:
        jobs: in order of submission, none larger than the pool.
        settings: cap, policy, cost of a restart.
        on_progress: called with the number of ended jobs.
        make_store: makes the store from pools and policy.

    Attributes:
        clock: the virtual clock.
        simulator: the simulated SageMaker.
        store: the store of the queue.
        passes: number of passes.
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
        self._on_progress = on_progress
        self._default_max_runtime = default_max_runtime(jobs)
        self.clock = VirtualClock(at(0))
        self._changed: dict[str, None] = {}
        self.simulator = SageMakerSimulator(
            self.clock,
            profile=instant_profile(settings.restart_cost),
            on_change=self._note,
            rates={"ListTrainingJobs": None},
        )
        self._pools = {POOL: Pool(POOL, settings.cap)}
        self.store = make_store(default_pools=self._pools, policy=settings.policy)
        self._launcher = launcher_for(self.simulator)
        self._context = ManagerContext(self.store, self._launcher, VirtualTime(self.clock))
        every = ceil(len(jobs) / settings.questions) if settings.questions else 0
        self._recorder = EstimateRecorder(self.store, every)
        self.estimates: dict[int, StartEstimate] = {}
        self._arrived = 0
        self._stopped: set[str] = set()
        self._done: set[str] = set()
        self._earlier_attempts: dict[str, dict[int, Attempt]] = {}
        self._next_wake: datetime | None = None
        self._last: PassReport | None = None
        self.passes = 0

    def run(self) -> list[JobResult]:
        """Run to the end, and return the results in the order of the trace. Raises `ReplayFailed`."""
        with _reduced_garbage_collection():
            while len(self._done) < len(self._jobs):
                self._step()
                self._count_ended()
                self._on_progress(len(self._done))
        return [self._result(index) for index in range(len(self._jobs))]

    def request(self, index: int) -> Request:
        """Return the request of the trace's job with this index."""
        return request_of(self._jobs[index], index)

    def next_wake(self, report: PassReport, now: datetime) -> datetime | None:
        """Return the next tick at which a pass may find something to do if nothing happens before; None if none."""
        return next_tick(report.plan.recheck_at, now)

    def completed(self, index: int) -> Job:
        """Return the job of this index, which must be completed. Raises `ReplayFailed` if it is not."""
        job = self.store.find(name_of(index))
        if job is None or job.state is not JobState.COMPLETED:
            stands = "does not exist" if job is None else f"is {job.state}: {job.failure or 'no reason given'}"
            raise ReplayFailed(f"the job {self._jobs[index].job_id} {stands}")
        return job

    def held_attempts(self, index: int) -> list[Attempt]:
        """Return all attempts of a completed job that held capacity, oldest first. Raises `ReplayFailed`."""
        job = self.completed(index)
        attempts = self._earlier_attempts.get(job.name, {}) | {attempt.number: attempt for attempt in job.attempts}
        return [attempt for attempt in attempts.values() if attempt.outcome is not Outcome.RETURNED]

    def _step(self) -> None:
        """Advance to the next instant at which something happens, and process everything that happens then."""
        time = self._next_time()
        self.simulator.run_until(time)
        due = self._next_wake is not None and self._next_wake <= time
        # Ends precede arrivals: a job that arrives when capacity is freed may use it.
        freed = self._observe_changes()
        first = self._arrived
        self._submit_due(time)
        if freed or due or self._arrived > first:
            self._run_passes(time)
        for index in range(first, self._arrived):
            if (on_progress := self._recorder.record(name_of(index), index, time)) is not None:
                self.estimates[index] = on_progress

    def _next_time(self) -> datetime:
        arrival = None if self._arrived == len(self._jobs) else at(self._jobs[self._arrived].submit)
        times = [time for time in (arrival, self.simulator.next_time(), self._next_wake) if time is not None]
        if not times:
            raise ReplayFailed(f"no event is due, but jobs wait: {self._reasons()}")
        return min(times)

    def _submit_due(self, time: datetime) -> None:
        while self._arrived < len(self._jobs) and at(self._jobs[self._arrived].submit) <= time:
            job = self._jobs[self._arrived]
            request = self.request(self._arrived)
            self.store.submit(admit_job(request, job, self._default_max_runtime, self._pools, time), request)
            self._arrived += 1

    def _run_passes(self, now: datetime) -> None:
        """Run passes and process their effects until nothing is left to do at this instant."""
        for _ in range(MAX_PASSES):
            self._last = report = run_pass(self._context)
            self.passes += 1
            self._next_wake = self.next_wake(report, now)
            self.simulator.run_until(now)
            freed = self._observe_changes()
            if not (freed or report.more_to_do):
                return
        raise ReplayFailed(f"{MAX_PASSES} passes at one instant did not reach a stable plan: {self._reasons()}")

    def _observe_changes(self) -> bool:
        """Pass changes of training jobs to the service; return True if a pass may find something to do."""
        freed = False
        while self._changed:
            names = list(self._changed)
            self._changed.clear()
            for name in names:
                seen = self._launcher.describe(name)
                freed |= seen is not None and self._observe(seen)
        return freed

    def _observe(self, seen: Observation) -> bool:
        if seen.terminal:
            self._stopped.add(seen.training_job_name.partition(STAMP)[0])
        return observe(self._context, seen)

    def _count_ended(self) -> None:
        """Record the jobs that have ended; with members, a job can end after its training job."""
        for name in list(self._stopped):
            job = self.store.find(name)
            if job is not None and len(job.past) == MAX_PAST_ATTEMPTS:
                # The queue will replace its oldest attempts by totals.
                self._earlier_attempts.setdefault(name, {}).update({each.number: each for each in job.past})
            if job is not None and job.state in ENDED:
                self._done.add(name)
            if job is None or job.attempt is None or job.attempt.base_ended_at is None or job.state in ENDED:
                self._stopped.discard(name)

    def _note(self, training_job_name: str) -> None:
        self._changed[training_job_name] = None

    def _reasons(self) -> str:
        """Return the first reasons for waiting of the last pass as text."""
        waits = self._last.plan.waits[:3] if self._last else ()
        return (
            "; ".join(f"{self._jobs[index_of(w.job.name)].job_id} {w.reason.message()}" for w in waits)
            or "no reason given"
        )

    def _result(self, index: int) -> JobResult:
        trace_job, held_attempts = self._jobs[index], self.held_attempts(index)
        spans = tuple(
            (seconds_at(each.created_at), seconds_at(each.ended_at or each.created_at)) for each in held_attempts
        )
        lost = sum(end - start for start, end in spans) - trace_job.duration
        # Times are rounded to microseconds, so smaller differences are no loss.
        return JobResult(trace_job, spans, max(0.0, round(lost, 5)))


@contextmanager
def _reduced_garbage_collection() -> Iterator[None]:
    """Reduce the frequency of garbage collection: most objects are jobs, which stay until the end."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
