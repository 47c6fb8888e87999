"""Allocation after ElasticFlow: admission by minimum satisfactory share, leftover GPUs by marginal return.

Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning", ASPLOS 2023. As in the
paper: the deadline of a job is its submission plus its duration times a factor between 0.5 and 1.5, drawn uniformly. A
job is admitted if filling in order of deadline lets it and all admitted jobs end in time (algorithm 1). Leftover GPUs
go, step by step, to the job whose use of GPU time grows least (algorithm 2). Both run at every arrival and end. The
allocator knows every duration and every curve.

Different from the paper, each in its favor because the jobs and the goal differ:

- A job that is not admitted is not dropped, since all completion times count: it runs on leftover GPUs, in order of
  submission, running jobs first. So does an admitted job that is late.
- Half of the jobs have one size: they get all of it or nothing.
- Sizes are arbitrary, not powers of two, since there is no topology.
- A resize costs a pause, so leftover GPUs go first to the jobs that hold them, and a running job grows only if that
  saves more time than the pause takes.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.elastic.capacity_timeline import CapacityTimeline
from benchmarks.elastic.pool_simulation import PoolSimulation
from benchmarks.elastic.workload import SizedJob

TIGHTEST, LOOSEST = 0.5, 1.5


class ElasticFlow:
    """The allocator.

    Args:
        deadlines: of each job, seconds of the trace.
    """

    period = 0.0
    idle = float("inf")

    def __init__(self, deadlines: Sequence[float]) -> None:
        self._deadlines = deadlines
        self._admitted: set[int] = set()
        self._seen = 0

    def allocate(self, pool: PoolSimulation) -> Mapping[int, int]:
        """Admit new jobs, and allocate all GPUs."""
        sizes = self._minimum(pool)
        free = pool.settings.cap - sum(sizes.values())
        free -= self._start_others(pool, sizes, free)
        free -= _keep(pool, sizes, free)
        _spread(pool, sizes, free)
        return {index: size for index, size in sizes.items() if size}

    def _minimum(self, pool: PoolSimulation) -> dict[int, int]:
        """Return the minimum sizes of the admitted jobs now; new jobs are considered in order of submission."""
        self._admitted &= pool.left.keys()
        sizes, late = self._filled(pool, self._admitted)
        self._admitted -= late
        fresh = [index for index in pool.left if index >= self._seen]
        self._seen = max(self._seen, *(index + 1 for index in pool.left), 0)
        for index in fresh:
            tried, late = self._filled(pool, self._admitted | {index})
            if not late:
                self._admitted.add(index)
                sizes = tried
        return sizes

    def _filled(self, pool: PoolSimulation, members: set[int]) -> tuple[dict[int, int], set[int]]:
        """Fill in order of deadline; return the sizes now, and the jobs that cannot end in time."""
        timeline, sizes, late = CapacityTimeline(pool.settings.cap, pool.now), {}, set()
        for index in sorted(members, key=lambda index: (self._deadlines[index], index)):
            margin = pool.settings.resize_cost if pool.jobs[index].elastic else 0.0
            size = timeline.satisfy(pool.jobs[index], pool.left[index], self._deadlines[index] - margin)
            if size is None:
                late.add(index)
            else:
                sizes[index] = size
        return sizes, late

    def _start_others(self, pool: PoolSimulation, sizes: dict[int, int], free: int) -> int:
        """Add the smallest sizes of jobs that are not admitted or can wait, while they fit; return the GPUs used."""
        others = [index for index in pool.left if not sizes.get(index)]
        given = 0
        for index in sorted(others, key=lambda index: (index not in pool.sizes, index not in self._admitted, index)):
            least = pool.jobs[index].sizes[0]
            if least <= free - given:
                sizes[index] = least
                given += least
        return given


def deadlines(jobs: Sequence[SizedJob], seed: int = 0) -> list[float]:
    """Return the deadlines of the jobs, with a random factor of each duration."""
    rng = random.Random(seed)
    return [job.trace.submit + rng.uniform(TIGHTEST, LOOSEST) * job.trace.duration for job in jobs]


def _keep(pool: PoolSimulation, sizes: dict[int, int], free: int) -> int:
    """Let jobs keep the GPUs that they hold, as far as they are left over; return the GPUs used."""
    given = 0
    for index, size in pool.sizes.items():
        job, now = pool.jobs[index], sizes.get(index, 0)
        kept = job.at_most(min(size, now + free - given)) if now else 0
        if kept > now:
            sizes[index] = kept
            given += kept - now
    return given


def _spread(pool: PoolSimulation, sizes: dict[int, int], free: int) -> None:
    """Give leftover GPUs, in steps, to the job that needs the least GPU time; resize running jobs only if it pays."""
    begun = dict(sizes)
    steps = [step for index in sizes for step in _step(pool, index, sizes[index])]
    heapq.heapify(steps)
    while steps and free:
        _, index, size = heapq.heappop(steps)
        if size - sizes[index] <= free:
            free -= size - sizes[index]
            sizes[index] = size
            for step in _step(pool, index, size):
                heapq.heappush(steps, step)
    for index, size in begun.items():
        if size == pool.sizes.get(index) and not _pays(pool, index, size, sizes[index]):
            sizes[index] = size


def _step(pool: PoolSimulation, index: int, size: int) -> Iterator[tuple[float, int, int]]:
    """Yield the next larger size, with the growth of GPU time for each GPU."""
    job = pool.jobs[index]
    larger = next((legal for legal in job.sizes if legal > size), None)
    if size and larger is not None:
        more = pool.left[index] * (larger / job.pace(larger) - size / job.pace(size)) / (larger - size)
        yield round(more, 6), index, larger


def _pays(pool: PoolSimulation, index: int, size: int, larger: int) -> bool:
    job, work = pool.jobs[index], pool.left[index]
    return work / job.pace(size) - work / job.pace(larger) > pool.settings.resize_cost
