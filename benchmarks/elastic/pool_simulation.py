"""An event simulation of a pool whose jobs may have several sizes, for the allocations of the papers.

A job works at the pace of its size. A resize pauses it for the cost of a resize, a start after holding nothing for that
of a restart; what it holds meanwhile is lost. Starts and ends take no time. At one instant all ends precede all
arrivals, and both precede any decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.elastic.results import JobResult, Span
from benchmarks.elastic.workload import SizedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """Size of the pool, and costs of changes.

    Attributes:
        cap: GPUs.
        resize_cost: seconds without progress after a resize.
        restart_cost: seconds without progress after a time without GPUs.
    """

    cap: int
    resize_cost: float
    restart_cost: float = 300.0


class Allocator(Protocol):
    """Decides the sizes of jobs.

    Attributes:
        period: seconds of the grid on which it decides after a change; 0 for at once.
        idle: seconds without a change after which it decides again; `math.inf` for never.
    """

    period: float
    idle: float

    def allocate(self, pool: PoolSimulation) -> Mapping[int, int]:
        """Return the sizes of the jobs that hold GPUs from now on, by index."""
        ...


class PoolSimulation:
    """The pool and its jobs, which are identified by their index in the order of submission.

    Attributes:
        now: seconds of the trace.
        left: seconds of nominal work left of each job that has arrived and not ended.
        sizes: of the running jobs.
        resized: number of resizes and interruptions of each job.
    """

    def __init__(self, jobs: Sequence[SizedJob], settings: PoolSettings, allocator: Allocator) -> None:
        self.jobs = jobs
        self.settings = settings
        self.now = 0.0
        self.left: dict[int, float] = {}
        self.sizes: dict[int, int] = {}
        self.resized = [0] * len(jobs)
        self._allocator = allocator
        self._pause: dict[int, float] = {}
        self._since: dict[int, float] = {}
        self._spans: list[list[Span]] = [[] for _ in jobs]
        self._lost = [0.0] * len(jobs)
        self._arrived = 0
        self._asked = -math.inf
        self._changed = False

    @property
    def waiting(self) -> list[int]:
        """Jobs that hold nothing, in order of submission."""
        return [index for index in self.left if index not in self.sizes]

    def held_before(self, index: int) -> bool:
        """Return True if the job has held GPUs before its current size."""
        return bool(self._spans[index])

    def run(self) -> list[JobResult]:
        """Run to the end, and return the results."""
        while self._arrived < len(self.jobs) or self.left:
            self._move_to(self._next_time())
            while self._arrived < len(self.jobs) and self.jobs[self._arrived].trace.submit <= self.now:
                self.left[self._arrived] = self.jobs[self._arrived].trace.duration
                self._arrived += 1
                self._changed = True
            if self._tick() <= self.now:
                self._asked, self._changed = self.now, False
                self._apply(self._allocator.allocate(self))
        return [JobResult(job, tuple(self._spans[i]), self._lost[i]) for i, job in enumerate(self.jobs)]

    def _tick(self) -> float:
        """Return the time of the allocator's next decision."""
        if not self.left:
            return math.inf
        if not self._changed:
            return self._asked + self._allocator.idle
        period = self._allocator.period
        return max(math.ceil(self.now / period) * period, self._asked + period) if period else self.now

    def _next_time(self) -> float:
        times = [self._ends(index) for index in self.sizes]
        if self._arrived < len(self.jobs):
            times.append(self.jobs[self._arrived].trace.submit)
        time = min((*times, self._tick()))
        if time == math.inf:
            raise ValueError("jobs wait, but the allocator gives them no GPUs")
        return time

    def _ends(self, index: int) -> float:
        return self.now + self._pause[index] + self.left[index] / self.jobs[index].pace(self.sizes[index])

    def _move_to(self, time: float) -> None:
        done = [index for index in self.sizes if self._ends(index) <= time]
        passed, self.now = time - self.now, time
        for index, size in self.sizes.items():
            paused = min(self._pause[index], passed)
            self._pause[index] -= paused
            self._lost[index] += paused * size
            self.left[index] -= (passed - paused) * self.jobs[index].pace(size)
        for index in done:
            self._leave(index, done=True)
            del self.left[index]
            self._changed = True

    def _apply(self, wanted: Mapping[int, int]) -> None:
        if sum(wanted.values()) > self.settings.cap:
            raise ValueError(f"{sum(wanted.values())} GPUs are allocated of {self.settings.cap}")
        before = dict(self.sizes)
        for index in [index for index, size in before.items() if wanted.get(index, 0) != size]:
            self._leave(index)
            self.resized[index] += 1
        for index, size in wanted.items():
            if index not in self.sizes:
                self._hold(index, size, resumed=index in before)

    def _hold(self, index: int, size: int, *, resumed: bool) -> None:
        if size not in self.jobs[index].sizes or index not in self.left:
            raise ValueError(f"{self.jobs[index].trace.job_id} cannot have {size} GPUs")
        restart = self.settings.restart_cost if self._spans[index] else 0.0
        self.sizes[index], self._since[index] = size, self.now
        self._pause[index] = self.settings.resize_cost if resumed else restart

    def _leave(self, index: int, *, done: bool = False) -> None:
        since, size = self._since.pop(index), self.sizes.pop(index)
        del self._pause[index]
        # GPUs allocated and released at one instant were never held.
        if since < self.now or done:
            self._spans[index].append(Span(since, self.now, size))
