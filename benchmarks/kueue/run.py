"""The queue under the load of Kueue's published baseline: 30 shares over 5 pools, 15,000 short jobs within a minute.

Kueue's cohort is a pool here, its cluster queue a share. The shipped door, passes and launcher run on a virtual clock
with the simulated SageMaker, and either the in-memory store or DynamoDB's real engine over HTTP. What our code takes is
measured; in a `timed` run it is added to the virtual clock as it passes, so that jobs wait for it as well. It must not
hold any rule of the queue.
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
    Class,
    arrivals,
    policy,
    pools,
    request_of,
)
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.simulator import SageMakerSimulator, VirtualClock
from trainmaster.local.simulator.clock import EPOCH
from trainmaster.local.virtual_time import VirtualTime, at, instant_profile, launcher_for, seconds_at
from trainmaster.ports.store import Store
from trainmaster.service.admission.policy import AdmissionPolicy
from trainmaster.service.context import ManagerContext
from trainmaster.service.observe import observe
from trainmaster.service.run_pass import run_pass

TOLD_EVERY = 100
TICK = timedelta(minutes=1)


class Moving(VirtualClock):
    """A virtual clock on which time also passes while our code works, as fast as it really does."""

    def __init__(self) -> None:
        super().__init__(EPOCH)
        self._since: float | None = None

    def now(self) -> datetime:
        """The time, with what has passed since the work began."""
        if self._since is None:
            return super().now()
        return super().now() + timedelta(seconds=time.perf_counter() - self._since)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Time passes inside the block."""
        self._since = time.perf_counter()
        try:
            yield
        finally:
            end, self._since = self.now(), None
            self.move_to(end)


class Run:
    """One run to the end.

    Args:
        jobs: what is submitted.
        store: the queue's memory.
        timed: whether the time that our code takes passes on the virtual clock.
        told: takes how many jobs have ended.
    """

    def __init__(self, jobs: Sequence[Arrival], store: Store, *, timed: bool, told: Callable[[int], None]) -> None:
        self._jobs, self._store, self._told, self._timed = jobs, store, told, timed
        self._clock = Moving()
        self._changed: dict[str, None] = {}
        self._simulator = SageMakerSimulator(
            self._clock, profile=instant_profile(), on_change=self._note, rates={"ListTrainingJobs": None}
        )
        self._launcher = launcher_for(self._simulator)
        self._hands = ManagerContext(store, self._launcher, VirtualTime(self._clock))
        self._door = AdmissionPolicy(shape_problems=lambda _: (), allowed_roles=(ROLE,))
        settings = store.settings()
        self._pools, self._policy = settings.pools, settings.policy
        self._arrived, self._look_again, self._more = 0, None, False
        self._ended: set[str] = set()
        self.started: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.busy: dict[str, float] = defaultdict(float)
        self.processor = 0.0

    def play(self) -> None:
        """Bring every job to its end."""
        while len(self._ended) < len(self._jobs):
            self._step()
            if self.counts["passes"] % TOLD_EVERY == 0:
                self._told(len(self._ended))

    @property
    def end(self) -> float:
        """Seconds on the virtual clock."""
        return seconds_at(self._clock.now())

    def _step(self) -> None:
        """All that has happened by the next time at which anything does, and one pass."""
        looks = self._look_again
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
            report = run_pass(self._hands)
        self.counts.update(passes=1, starts=len(report.started), preemptions=len(report.preempted))
        for name in report.started:
            # A decision counts from the end of its pass: some were carried out sooner.
            self.started.setdefault(name, self.end)
        self._more = report.more_to_do
        wanted = report.plan.look_again
        self._look_again = None if wanted is None else max(wanted, self._clock.now() + TICK)

    def _next_time(self) -> datetime:
        arrival = None if self._arrived == len(self._jobs) else at(self._jobs[self._arrived].at)
        times = [self._clock.now()] if self._more or self._changed else []
        times += [t for t in (arrival, self._simulator.next_time(), self._look_again) if t is not None]
        return min(times)

    def _submit_due(self, now: datetime) -> bool:
        first = self._arrived
        while self._arrived < len(self._jobs) and at(self._jobs[self._arrived].at) <= now:
            request = request_of(self._jobs[self._arrived])
            admitted = self._door.admit(request, ROLE, self._pools, now, self._policy)
            self._store.submit(admitted.job, request)
            self._arrived += 1
        return self._arrived > first

    def _observe_changes(self) -> bool:
        freed = False
        names = list(self._changed)
        self._changed.clear()
        for name in names:
            seen = self._launcher.describe(name)
            if seen is not None:
                freed |= observe(self._hands, seen)
                # A pass that asked it to stop may have seen first that it had ended.
                if seen.status == "Completed":
                    self._ended.add(name.partition("-qstamp-")[0])
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


def measure(jobs: int, served: int, watch: Callable[[str], None]) -> dict[str, Any]:
    """The runs: in memory with time standing still and passing, and over HTTP with time passing.

    Args:
        jobs: how many in memory.
        served: how many with the engine.
        watch: says what is being done.
    """
    runs = [_in_memory(jobs, watch, timed=timed) for timed in (False, True)]
    if not BINARY.exists():
        return {"runs": runs, "skipped": "DynamoDB's engine is not installed: `make .local/dynoxide/.stamp`"}
    with engine() as client:
        make_table(client)
        table = Table(client, TABLE, time.sleep)
        store = DynamoStore(table, default_pools=pools(), parameter="bench", policy=policy())
        runs.append(_measured("DynamoDB over HTTP", served, store, watch, timed=True))
    return {"runs": runs}


def _in_memory(jobs: int, watch: Callable[[str], None], *, timed: bool) -> dict[str, Any]:
    return _measured("in memory", jobs, MemoryStore(default_pools=pools(), policy=policy()), watch, timed=timed)


def _measured(name: str, jobs: int, store: Any, watch: Callable[[str], None], *, timed: bool) -> dict[str, Any]:
    coming = arrivals(jobs)
    run = Run(coming, store, timed=timed, told=lambda n: watch(f"{name}{', timed' * timed}: {n:,} of {len(coming):,}"))
    run.play()
    wall = sum(run.busy.values())
    work = sum(arrival.kind.units * arrival.kind.runs for arrival in coming)
    cap = NOMINAL * SHARES_OF_A_POOL * len(POOLS)
    return {
        "store": name,
        "timed": timed,
        "jobs": len(coming),
        "waits_s": {kind.name: round(_mean_wait(coming, run.started, kind), 3) for kind in CLASSES},
        "makespan_s": round(run.end, 1),
        "used": round(work / cap / run.end, 3),
        "wall_s": round(wall, 1),
        "jobs_per_s": round(len(coming) / wall, 1),
        "processor_s": round(run.processor, 1),
        "jobs_per_processor_s": round(len(coming) / run.processor, 1),
        "busy_s": {what: round(seconds, 1) for what, seconds in run.busy.items()},
        **run.counts,
    }


def _mean_wait(coming: Sequence[Arrival], started: Mapping[str, float], kind: Class) -> float:
    return fmean(started[arrival.name] - arrival.at for arrival in coming if arrival.kind is kind)
