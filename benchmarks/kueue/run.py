"""Runs the shipped queue under the load of Kueue's baseline: 30 shares over 5 pools, 15,000 short jobs in a minute.

Kueue's cohort is a pool, its cluster queue a share. Admission, passes and launcher are the shipped ones, on a virtual
clock with the simulated SageMaker, and with the in-memory store or the DynamoDB engine over HTTP. The time of the
queue's own code is measured; in a `timed` run it also passes on the virtual clock, so that jobs wait for it.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from benchmarks.common.engine import BINARY, engine
from benchmarks.common.world import TABLE, make_table
from benchmarks.kueue.workload import (
    CLASSES,
    NOMINAL,
    POOLS,
    ROLE,
    SHARES_OF_A_POOL,
    Arrival,
    JobClass,
    arrivals,
    policy,
    pools,
    request_of,
)
from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.bootstrap.threads import for_each_in_threads
from trainmaster.domain.access.caller import UNKNOWN
from trainmaster.domain.jobs.names import STAMP
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.simulator import SageMakerSimulator, VirtualClock
from trainmaster.local.simulator.clock import EPOCH
from trainmaster.local.virtual_time import VirtualTime, at, instant_profile, launcher_for, seconds_at
from trainmaster.ports.store import Store
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe, observe_batch
from trainmaster.service.run_pass import run_pass

PASSES_PER_UPDATE = 100
MESSAGES = 10
"""Messages that Lambda receives at once from a FIFO queue, at most."""
TICK = timedelta(minutes=1)


class RunningClock(VirtualClock):
    """A virtual clock on which time also passes, at real speed, while the queue's code runs."""

    def __init__(self) -> None:
        super().__init__(EPOCH)
        self._since: float | None = None

    def now(self) -> datetime:
        """Return the time, including the time since the work began."""
        if self._since is None:
            return super().now()
        return super().now() + timedelta(seconds=time.perf_counter() - self._since)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Let time pass inside the block."""
        self._since = time.perf_counter()
        try:
            yield
        finally:
            end, self._since = self.now(), None
            self.move_to(end)


class Run:
    """One run.

    Args:
        jobs: the jobs to submit.
        store: the store of the queue.
        timed: True if the time of the queue's code passes on the virtual clock.
        on_progress: called with the number of ended jobs.
    """

    def __init__(
        self, jobs: Sequence[Arrival], store: Store, *, timed: bool, on_progress: Callable[[int], None]
    ) -> None:
        self._jobs, self._store, self._on_progress, self._timed = jobs, store, on_progress, timed
        self._clock = RunningClock()
        self._changed: dict[str, None] = {}
        self._simulator = SageMakerSimulator(
            self._clock, profile=instant_profile(), on_change=self._note, rates={"ListTrainingJobs": None}
        )
        self._launcher = launcher_for(self._simulator)
        self._context = ManagerContext(store, self._launcher, VirtualTime(self._clock))
        self._admission = AdmissionPolicy(shape_problems=lambda _: (), rules=CallerRules(allowed_roles=(ROLE,)))
        settings = store.settings()
        self._pools, self._policy = settings.pools, settings.policy
        self._arrived, self._next_wake, self._more = 0, None, False
        self._ended: set[str] = set()
        self.started: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.busy: dict[str, float] = defaultdict(float)
        self.processor = 0.0

    def play(self) -> None:
        """Run until every job has ended."""
        while len(self._ended) < len(self._jobs):
            self._step()
            if self.counts["passes"] % PASSES_PER_UPDATE == 0:
                self._on_progress(len(self._ended))

    @property
    def end(self) -> float:
        """Seconds on the virtual clock."""
        return seconds_at(self._clock.now())

    def _step(self) -> None:
        """Process everything that happens until the next time at which anything does, and run one pass."""
        looks = self._next_wake
        self._simulator.run_until(self._next_time())
        now = self._clock.now()
        with self._work("events"):
            freed = self._observe_changes()
        with self._work("submissions"):
            arrived = self._submit_due(now)
        if freed or arrived or self._more or (looks is not None and looks <= now):
            self._pass()

    def _pass(self) -> None:
        with self._work("passes"):
            report = run_pass(self._context)
        self.counts.update(passes=1, starts=len(report.started), preemptions=len(report.preempted))
        for name in report.started:
            # A decision counts from the end of its pass; some were carried out earlier.
            self.started.setdefault(name, self.end)
        self._more = report.more_to_do
        wanted = report.plan.recheck_at
        self._next_wake = None if wanted is None else max(wanted, self._clock.now() + TICK)

    def _next_time(self) -> datetime:
        arrival = None if self._arrived == len(self._jobs) else at(self._jobs[self._arrived].at)
        times = [self._clock.now()] if self._more or self._changed else []
        times += [t for t in (arrival, self._simulator.next_time(), self._next_wake) if t is not None]
        return min(times)

    def _submit_due(self, now: datetime) -> bool:
        first = self._arrived
        while self._arrived < len(self._jobs) and at(self._jobs[self._arrived].at) <= now:
            request = request_of(self._jobs[self._arrived])
            admitted = self._admission.admit(request, UNKNOWN, self._pools, now, self._policy)
            self._store.submit(admitted.job, request)
            self._arrived += 1
        return self._arrived > first

    def _observe_changes(self) -> bool:
        """Apply what has changed as the manager does, in batches of as many messages as SQS delivers."""
        names = list(self._changed)
        self._changed.clear()
        reports = [seen for seen in map(self._launcher.describe, names) if seen is not None]
        freed = False
        for first in range(0, len(reports), MESSAGES):
            batch = reports[first : first + MESSAGES]
            at_once, left = observe_batch(self._context, batch)
            alone = [observe(self._context, batch[place]) for place in left]
            freed = freed or at_once or any(alone)
        # A pass that wanted to stop a job may have observed its end first.
        self._ended.update(seen.training_job_name.partition(STAMP)[0] for seen in reports if seen.status == "Completed")
        return freed

    @contextmanager
    def _work(self, what: str) -> Iterator[None]:
        began, processor = time.perf_counter(), time.process_time()
        if self._timed:
            with self._clock.working():
                yield
        else:
            yield
        self.busy[what] += time.perf_counter() - began
        self.processor += time.process_time() - processor

    def _note(self, training_job_name: str) -> None:
        self._changed[training_job_name] = None


def measure(jobs: int, served: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run in memory without and with the queue's time, and over HTTP with it.

    Args:
        jobs: number of jobs in memory.
        served: number of jobs with the engine.
        progress: called with the current step.
    """
    runs = [_in_memory(jobs, progress, timed=timed) for timed in (False, True)]
    if not BINARY.exists():
        return {"runs": runs, "skipped": "DynamoDB's engine is not installed: `make .local/dynoxide/.stamp`"}
    with engine() as client:
        make_table(client)
        table = Table(client, TABLE, time.sleep)
        store = DynamoStore(
            table,
            default_pools=pools(),
            parameter="bench",
            policy=policy(),
            now=SystemClock().now,
            for_each=for_each_in_threads,
        )
        runs.append(_measured("DynamoDB over HTTP", served, store, progress, timed=True))
    return {"runs": runs}


def _in_memory(jobs: int, progress: Callable[[str], None], *, timed: bool) -> dict[str, Any]:
    store = MemoryStore(default_pools=pools(), policy=policy(), now=SystemClock().now)
    return _measured("in memory", jobs, store, progress, timed=timed)


def _measured(name: str, jobs: int, store: Any, progress: Callable[[str], None], *, timed: bool) -> dict[str, Any]:
    coming = arrivals(jobs)
    run = Run(
        coming,
        store,
        timed=timed,
        on_progress=lambda n: progress(f"{name}{', timed' * timed}: {n:,} of {len(coming):,}"),
    )
    run.play()
    wall = sum(run.busy.values())
    work = sum(arrival.job_class.units * arrival.job_class.runs for arrival in coming)
    cap = NOMINAL * SHARES_OF_A_POOL * len(POOLS)
    return {
        "store": name,
        "timed": timed,
        "jobs": len(coming),
        "waits_s": {job_class.name: round(_mean_wait(coming, run.started, job_class), 3) for job_class in CLASSES},
        "makespan_s": round(run.end, 1),
        "used": round(work / cap / run.end, 3),
        "wall_s": round(wall, 1),
        "jobs_per_s": round(len(coming) / wall, 1),
        "processor_s": round(run.processor, 1),
        "jobs_per_processor_s": round(len(coming) / run.processor, 1),
        "busy_s": {what: round(seconds, 1) for what, seconds in run.busy.items()},
        **run.counts,
    }


def _mean_wait(coming: Sequence[Arrival], started: Mapping[str, float], job_class: JobClass) -> float:
    return fmean(started[arrival.name] - arrival.at for arrival in coming if arrival.job_class is job_class)
