"""The shipped manager over a trace: `service.run_pass` and `service.observe` on a virtual clock.

The store is the one in memory, SageMaker the simulator, the launcher the shipped one. A pass runs at every arrival and
end, one for all of an instant, and, since AWS has a tick each minute, at the first whole minute at or after the time at
which the plan said that it could change by itself. It must not decide anything.
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
from trainmaster.domain.jobs.attempt_totals import KEPT
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
"""Passes in one instant, after which something is wrong."""
Progress = Callable[[int], None]
"""Takes how many jobs have ended."""


class ReplayFailed(RuntimeError):
    """The queue did not bring every job to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Under what terms a trace is replayed.

    Attributes:
        cap: units of the one pool.
        policy: the queue's settings.
        restart_cost: seconds of all its units that each resumption of a preempted job costs.
        questions: of about so many jobs the queue is asked when they will start; it takes time.
    """

    cap: int
    policy: Policy
    restart_cost: float = RESTART_SECONDS
    questions: int = 0


class Replay:
    """One run over a trace.

    Args:
        jobs: in order of submission, none larger than the pool.
        settings: cap, policy, cost of a restart.
        on_progress: called while it runs.
        make_store: makes the store from pools and policy; another to see what the queue would do if it knew more.

    Attributes:
        clock: the trace's time.
        simulator: the SageMaker that runs the jobs.
        store: the queue's own.
        passes: how many there have been.
        estimates: what the queue said when jobs would start, by their place in the trace.
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

    def play(self) -> list[JobResult]:
        """Run to the end; the jobs' courses in the trace's order. Raises `ReplayFailed`."""
        with _reduced_garbage_collection():
            while len(self._done) < len(self._jobs):
                self._step()
                self._count_ended()
                self._on_progress(len(self._done))
        return [self._result(index) for index in range(len(self._jobs))]

    def request(self, index: int) -> Request:
        """What is submitted for the trace's job of that place."""
        return request_of(self._jobs[index], index)

    def next_wake(self, report: PassReport, now: datetime) -> datetime | None:
        """The tick after a pass at which the next one may find something to do, if nothing happens before."""
        return next_tick(report.plan.look_again, now)

    def completed(self, index: int) -> Job:
        """The trace's job of that place, as the queue has it once it is done. Raises `ReplayFailed` where it is not."""
        job = self.store.find(name_of(index))
        if job is None or job.state is not JobState.COMPLETED:
            stands = "is gone" if job is None else f"is {job.state}: {job.failure or 'it gave no reason'}"
            raise ReplayFailed(f"the job {self._jobs[index].job_id} {stands}")
        return job

    def held_attempts(self, index: int) -> list[Attempt]:
        """All attempts of such a job that held capacity, oldest first, however many. Raises `ReplayFailed`."""
        job = self.completed(index)
        attempts = self._earlier_attempts.get(job.name, {}) | {attempt.number: attempt for attempt in job.attempts}
        return [attempt for attempt in attempts.values() if attempt.outcome is not Outcome.RETURNED]

    def _step(self) -> None:
        """Go to the next instant at which something happens, and let all of it happen."""
        time = self._next_time()
        self.simulator.run_until(time)
        due = self._next_wake is not None and self._next_wake <= time
        # Ends first: whoever arrives at the instant in which capacity is freed may use it.
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
            raise ReplayFailed(f"nothing will happen any more, and jobs wait: {self._reasons()}")
        return min(times)

    def _submit_due(self, time: datetime) -> None:
        while self._arrived < len(self._jobs) and at(self._jobs[self._arrived].submit) <= time:
            job = self._jobs[self._arrived]
            request = self.request(self._arrived)
            self.store.submit(admit_job(request, job, self._default_max_runtime, self._pools, time), request)
            self._arrived += 1

    def _run_passes(self, now: datetime) -> None:
        """Passes, and what they cause at once, until nothing more is to be done in this instant."""
        for _ in range(MAX_PASSES):
            self._last = report = run_pass(self._context)
            self.passes += 1
            self._next_wake = self.next_wake(report, now)
            self.simulator.run_until(now)
            freed = self._observe_changes()
            if not (freed or report.more_to_do):
                return
        raise ReplayFailed(f"{MAX_PASSES} passes in one instant have come to no end: {self._reasons()}")

    def _observe_changes(self) -> bool:
        """Tell the service what has become of the training jobs that have changed; whether a pass is worth while."""
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
        """See which jobs have ended with a training job, or, where members had to be stopped first, after it."""
        for name in list(self._stopped):
            job = self.store.find(name)
            if job is not None and len(job.past) == KEPT:
                # The queue will keep sums of its oldest attempts.
                self._earlier_attempts.setdefault(name, {}).update({each.number: each for each in job.past})
            if job is not None and job.state in ENDED:
                self._done.add(name)
            if job is None or job.attempt is None or job.attempt.base_ended_at is None or job.state in ENDED:
                self._stopped.discard(name)

    def _note(self, training_job_name: str) -> None:
        self._changed[training_job_name] = None

    def _reasons(self) -> str:
        """The first reasons of the last pass, in words."""
        waits = self._last.plan.waits[:3] if self._last else ()
        return (
            "; ".join(f"{self._jobs[index_of(w.job.name)].job_id} {w.reason.message()}" for w in waits) or "no reason"
        )

    def _result(self, index: int) -> JobResult:
        trace_job, held_attempts = self._jobs[index], self.held_attempts(index)
        spans = tuple(
            (seconds_at(each.created_at), seconds_at(each.ended_at or each.created_at)) for each in held_attempts
        )
        lost = sum(end - start for start, end in spans) - trace_job.duration
        # Times are whole microseconds: what is less is no loss.
        return JobResult(trace_job, spans, max(0.0, round(lost, 5)))


@contextmanager
def _reduced_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking again and again at jobs that stay, which are most of what there is."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
