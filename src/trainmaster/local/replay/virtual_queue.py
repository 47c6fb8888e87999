"""The shipped manager on a virtual clock: `service.run_pass` and `service.observe` over the store in memory.

SageMaker is simulated, the launcher is the shipped one. One pass runs at each instant with arrivals or ends. Since AWS
has a tick each minute, a pass also runs at the first whole minute at or after the time at which the plan can change by
itself. Passes that certainly change nothing are skipped.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.attempt_totals import MAX_PAST_ATTEMPTS
from trainmaster.domain.jobs.job import ENDED, Job
from trainmaster.domain.jobs.names import STAMP
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.policy.settings import Policy
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.simulator import Profile, SageMakerSimulator, VirtualClock
from trainmaster.local.simulator.clock import EPOCH
from trainmaster.local.virtual_time import VirtualTime, launcher_for, next_tick
from trainmaster.service.apply_plan import PassReport
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import run_pass

RESTART_SECONDS = 300.0
"""Time that a preempted job loses when it resumes, if nothing else is known."""
MAX_PASSES = 10_000
"""Maximum passes at one instant; more indicate an error."""


class ReplayFailed(RuntimeError):
    """The queue did not complete every job, or did not reach a stable plan."""


class VirtualQueue(ABC):
    """A queue on a virtual clock. Subclasses define what arrives, and when.

    Args:
        pools: the pools.
        policy: the settings.
        profile: of the training jobs.
        start: the time at which the clock begins.
        make_store: makes the store from pools and policy.

    Attributes:
        clock: the virtual clock.
        simulator: the simulated SageMaker.
        store: the store of the queue.
        passes: number of passes.
        done: names of the jobs that have ended.
    """

    def __init__(
        self,
        pools: Mapping[str, Pool],
        policy: Policy,
        profile: Profile,
        start: datetime = EPOCH,
        make_store: Callable[..., MemoryStore] = MemoryStore,
    ) -> None:
        self.clock = VirtualClock(start)
        self._changed: dict[str, None] = {}
        self.simulator = SageMakerSimulator(
            self.clock, profile=profile, on_change=self._note, rates={"ListTrainingJobs": None}
        )
        self.store = make_store(default_pools=pools, policy=policy, now=self.clock.now)
        self._launcher = launcher_for(self.simulator)
        self._context = ManagerContext(self.store, self._launcher, VirtualTime(self.clock))
        self._stopped: set[str] = set()
        self._earlier_attempts: dict[str, dict[int, Attempt]] = {}
        self.done: set[str] = set()
        self._next_wake: datetime | None = None
        self._changed_at = start
        self._last: PassReport | None = None
        self.passes = 0

    @abstractmethod
    def next_arrival(self) -> datetime | None:
        """Return the time of the next arrival; None if there is none."""

    @abstractmethod
    def admit_due(self, time: datetime) -> bool:
        """Process the arrivals that are due; return whether there were any."""

    def may_act(self) -> bool:
        """Return False if it is certain that no pass changes anything before capacity is freed."""
        return True

    def attempts_of(self, job: Job) -> list[Attempt]:
        """Return all attempts of a job, oldest first, also those that the queue has replaced by totals."""
        known = self._earlier_attempts.get(job.name, {}) | {attempt.number: attempt for attempt in job.attempts}
        return list(known.values())

    def next_wake(self, report: PassReport, now: datetime) -> datetime | None:
        """Return the next tick at which a pass may find something to do if nothing happens before; None if none."""
        times = (report.plan.recheck_at, self.store.next_read_on(self._changed_at))
        return next_tick(min(filter(None, times), default=None), now)

    def next_time(self) -> datetime | None:
        """Return the next instant at which something happens; None if nothing is due."""
        times = (self.next_arrival(), self.simulator.next_time(), self._next_wake)
        return min((time for time in times if time is not None), default=None)

    def step(self) -> None:
        """Advance to the next instant, and process everything that happens then. Raises `ReplayFailed` without one."""
        time = self.next_time()
        if time is None:
            raise ReplayFailed(f"no event is due, but jobs wait: {self.reasons()}")
        self.simulator.run_until(time)
        due = self._next_wake is not None and self._next_wake <= time
        # Ends precede arrivals: a job that arrives when capacity is freed may use it.
        freed = self._observe_changes()
        arrived = self.admit_due(time)
        if arrived:
            self._changed_at = time
        if freed or ((due or arrived) and self.may_act()):
            self._run_passes(time)
        elif due:
            self._next_wake = None
        self._count_ended()

    def label_of(self, job_name: str) -> str:
        """Return the name of a job in messages."""
        return job_name

    def reasons(self) -> str:
        """Return the first reasons for waiting of the last pass as text."""
        waits = self._last.plan.waits[:3] if self._last else ()
        return "; ".join(f"{self.label_of(w.job.name)} {w.reason.message()}" for w in waits) or "no reason given"

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
        raise ReplayFailed(f"{MAX_PASSES} passes at one instant did not reach a stable plan: {self.reasons()}")

    def _observe_changes(self) -> bool:
        """Pass changes of training jobs to the service; return True if a pass may find something to do."""
        freed = False
        if self._changed:
            self._changed_at = self.clock.now()
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
                self.done.add(name)
            if job is None or job.attempt is None or job.attempt.base_ended_at is None or job.state in ENDED:
                self._stopped.discard(name)

    def _note(self, training_job_name: str) -> None:
        self._changed[training_job_name] = None


@contextmanager
def reduced_garbage_collection() -> Iterator[None]:
    """Reduce the frequency of garbage collection: most objects are jobs, which stay until the end."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
