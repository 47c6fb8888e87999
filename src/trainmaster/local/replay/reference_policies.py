"""Reference policies that know every duration, as small event simulations for comparison with the shipped orders.

They reproduce an independent computation to the second (tests/unit/local/replay/test_reference_policies.py), which
depends on these rules:

- The queue is in order of submission. Among jobs submitted in one second, the shorter precedes, then the smaller.
- At one instant all ends precede all arrivals, and both precede any decision.
- A job holds all its units from its start for its whole duration. Starting and ending take no time.

Only `baseline-srpt` preempts. The module uses no code of the planner.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from trainmaster.local.replay.report.results import JobResult
from trainmaster.local.replay.trace.trace import TraceJob


@dataclass(slots=True)
class Pool:
    """The pool and its queue in a simulation. Jobs are identified by their index in the order of submission.

    Attributes:
        waiting: in the order of the policy.
        running: heap of (end, job).
    """

    jobs: Sequence[TraceJob]
    free: int
    now: float = 0.0
    waiting: list[int] = field(default_factory=list)
    running: list[tuple[float, int]] = field(default_factory=list)
    started: dict[int, float] = field(default_factory=dict)

    def fits(self, index: int) -> bool:
        """Return True if the job can start now."""
        return self.jobs[index].gpus <= self.free

    def start(self, index: int) -> None:
        """Start a job on free units."""
        self.free -= self.jobs[index].gpus
        self.started[index] = self.now
        heapq.heappush(self.running, (self.now + self.jobs[index].duration, index))

    def start_where(self, allowed: Callable[[int], bool]) -> None:
        """Start each waiting job, in order, that fits and for which `allowed` returns True."""
        left: list[int] = []
        for place, index in enumerate(self.waiting):
            if not self.free:
                left.extend(self.waiting[place:])
                break
            if self.fits(index) and allowed(index):
                self.start(index)
            else:
                left.append(index)
        self.waiting = left

    def start_heads(self) -> None:
        """Start the first job of the queue as long as it fits."""
        count = 0
        while count < len(self.waiting) and self.fits(self.waiting[count]):
            self.start(self.waiting[count])
            count += 1
        del self.waiting[:count]


def fifo(pool: Pool) -> None:
    """Start jobs strictly in order: no job passes the first."""
    pool.start_heads()


def skip(pool: Pool) -> None:
    """Start every job that fits, in order (Kueue's `BestEffortFIFO`)."""
    pool.start_where(lambda _: True)


def easy(pool: Pool) -> None:
    """Reserve capacity for the first blocked job; start others that do not delay it (Lifka 1995, EASY).

    Those either end by the time of the reservation, or use only units that the first job will leave free.
    """
    pool.start_heads()
    if not pool.waiting:
        return
    shadow, spare = _reservation(pool, pool.waiting[0])

    def allowed(index: int) -> bool:
        nonlocal spare
        if pool.now + pool.jobs[index].duration <= shadow:
            return True
        if pool.jobs[index].gpus > spare:
            return False
        spare -= pool.jobs[index].gpus
        return True

    head = pool.waiting.pop(0)
    pool.start_where(allowed)
    pool.waiting.insert(0, head)


def _reservation(pool: Pool, head: int) -> tuple[float, int]:
    """Return the latest start of the first job, and the number of units that it will leave free."""
    free, ends = pool.free, sorted(pool.running)
    for end, together in groupby(ends, key=itemgetter(0)):
        free += sum(pool.jobs[index].gpus for _, index in together)
        if free >= pool.jobs[head].gpus:
            return end, free - pool.jobs[head].gpus
    raise ValueError(f"{pool.jobs[head].job_id} is larger than the pool")


Policy = Callable[[Pool], None]
_BY_DURATION = frozenset({"baseline-sjf"})
_POLICIES: dict[str, Policy] = {
    "baseline-fifo": fifo,
    "baseline-skip": skip,
    "baseline-easy": easy,
    "baseline-sjf": skip,  # with its queue in order of duration
}
ORACLE = "baseline-srpt"
REFERENCE_POLICIES = (*_POLICIES, ORACLE)


def run_reference(name: str, jobs: Sequence[TraceJob], cap: int, restart_cost: float = 300.0) -> list[JobResult]:
    """Return the results of a reference policy on a pool of `cap` units, in the order of `jobs`.

    Args:
        name: one of `REFERENCE_POLICIES`.
        jobs: none larger than the pool.
        cap: units.
        restart_cost: seconds of all its units that each resume of a preempted job costs.
    """
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].submit, jobs[i].duration, jobs[i].gpus))
    ordered = [jobs[index] for index in order]
    if name == ORACLE:
        results = _ShortestRemainingTime(ordered, cap, restart_cost).run()
    else:
        results = _play(Pool(ordered, cap), _POLICIES[name], by_duration=name in _BY_DURATION)
    return [results[place] for place in sorted(range(len(order)), key=order.__getitem__)]


def _play(pool: Pool, policy: Policy, *, by_duration: bool) -> list[JobResult]:
    jobs, arrived = pool.jobs, 0
    while arrived < len(jobs) or pool.running:
        ends = pool.running[0][0] if pool.running else jobs[arrived].submit
        pool.now = min(ends, jobs[arrived].submit) if arrived < len(jobs) else ends
        while pool.running and pool.running[0][0] <= pool.now:
            pool.free += jobs[heapq.heappop(pool.running)[1]].gpus
        while arrived < len(jobs) and jobs[arrived].submit <= pool.now:
            if by_duration:
                insort(pool.waiting, arrived, key=lambda index: (jobs[index].duration, index))
            else:
                pool.waiting.append(arrived)
            arrived += 1
        policy(pool)
    return [JobResult(job, ((at := pool.started[i], at + job.duration),)) for i, job in enumerate(jobs)]


class _ShortestRemainingTime:
    """Preemptive shortest remaining time: at each arrival and end, the jobs with the least remaining work run.

    The remaining time of a job that does not run includes its restart. On a tie the running job stays.
    """

    def __init__(self, jobs: Sequence[TraceJob], cap: int, restart_cost: float) -> None:
        self._jobs = jobs
        self._cap = cap
        self._cost = restart_cost
        self._now = 0.0
        # Seconds left of each unfinished job: of work, and, while it runs, of the restart before it.
        self._work = {index: job.duration for index, job in enumerate(jobs)}
        self._restart: dict[int, float] = {}
        self._running: dict[int, float] = {}
        self._waiting: set[int] = set()
        self._spans: list[list[tuple[float, float]]] = [[] for _ in jobs]
        self._lost = [0.0] * len(jobs)

    def run(self) -> list[JobResult]:
        """Run to the end, and return the results."""
        arrived = 0
        while arrived < len(self._jobs) or self._running:
            times = [self._ends(index) for index in self._running]
            if arrived < len(self._jobs):
                times.append(self._jobs[arrived].submit)
            self._move_to(min(times))
            while arrived < len(self._jobs) and self._jobs[arrived].submit <= self._now:
                self._waiting.add(arrived)
                arrived += 1
            self._decide()
        return [JobResult(job, tuple(self._spans[i]), self._lost[i]) for i, job in enumerate(self._jobs)]

    def _ends(self, index: int) -> float:
        return self._now + self._restart[index] + self._work[index]

    def _move_to(self, time: float) -> None:
        done = [index for index in self._running if self._ends(index) <= time]
        passed, self._now = time - self._now, time
        for index in self._running:
            restarting = min(self._restart[index], passed)
            self._restart[index] -= restarting
            self._lost[index] += restarting
            self._work[index] -= passed - restarting
        for index in done:
            self._release(index)
            del self._work[index]

    def _release(self, index: int) -> None:
        self._spans[index].append((self._running.pop(index), self._now))

    def _displace(self, index: int) -> None:
        """Release the units of a job; one that has just started never held them."""
        if self._running[index] < self._now:
            self._release(index)
        else:
            del self._running[index]

    def _remaining(self, index: int) -> tuple[float, bool, int]:
        if index in self._running:
            return self._restart[index] + self._work[index], False, index
        return self._work[index] + self._cost * bool(self._spans[index]), True, index

    def _decide(self) -> None:
        free, chosen = self._cap, []
        for index in sorted([*self._running, *self._waiting], key=self._remaining):
            if self._jobs[index].gpus <= free:
                free -= self._jobs[index].gpus
                chosen.append(index)
            if not free:
                break
        for index in self._running.keys() - set(chosen):
            self._displace(index)
            self._waiting.add(index)
        for index in chosen:
            if index in self._waiting:
                self._waiting.remove(index)
                self._running[index] = self._now
                self._restart[index] = self._cost if self._spans[index] else 0.0
