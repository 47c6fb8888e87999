"""Allocation after ElasticFlow: admission by minimum satisfactory share, leftover GPUs by marginal return.

Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning", ASPLOS 2023. As there:
a job has a deadline, its submission and a factor times its duration, the factor drawn evenly between 0.5 and 1.5; it
is admitted if, filling in order of deadline, it and all admitted before it can end in time (algorithm 1); what their
shares leave goes, step by step, to the job whose use of GPU time grows least (algorithm 2); both again at every
arrival and end. It is told every duration and every curve.

Not as there, each in its favour where our jobs and our goal differ:

- A job that is not admitted is not dropped, since everybody's completion time counts: it runs on what is left over, in
  order of submission, those that run first. So does an admitted one that is late.
- Half of the jobs have one size: they get all of it or nothing.
- Sizes are any, not powers of two: there is no topology to keep.
- A change costs a pause here, so leftover GPUs go first to those that hold them already, and a running job grows only
  where that saves more time than the pause takes.

It must not place anything.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.elastic.capacity_timeline import Future
from benchmarks.elastic.pool_simulation import Yard
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

    def allocate(self, yard: Yard) -> Mapping[int, int]:
        """Admit whoever has come, and share all GPUs."""
        sizes = self._minimum(yard)
        free = yard.terms.cap - sum(sizes.values())
        free -= self._start_others(yard, sizes, free)
        free -= _keep(yard, sizes, free)
        _spread(yard, sizes, free)
        return {index: size for index, size in sizes.items() if size}

    def _minimum(self, yard: Yard) -> dict[int, int]:
        """What the admitted jobs must have now; those that come are admitted, or not, in order of submission."""
        self._admitted &= yard.left.keys()
        sizes, late = self._filled(yard, self._admitted)
        self._admitted -= late
        fresh = [index for index in yard.left if index >= self._seen]
        self._seen = max(self._seen, *(index + 1 for index in yard.left), 0)
        for index in fresh:
            tried, late = self._filled(yard, self._admitted | {index})
            if not late:
                self._admitted.add(index)
                sizes = tried
        return sizes

    def _filled(self, yard: Yard, members: set[int]) -> tuple[dict[int, int], set[int]]:
        """Progressive filling in order of deadline: what each has now, and whoever cannot end in time."""
        future, sizes, late = Future(yard.terms.cap, yard.now), {}, set()
        for index in sorted(members, key=lambda index: (self._deadlines[index], index)):
            margin = yard.terms.resize_cost if yard.jobs[index].elastic else 0.0
            size = future.satisfy(yard.jobs[index], yard.left[index], self._deadlines[index] - margin)
            if size is None:
                late.add(index)
            else:
                sizes[index] = size
        return sizes, late

    def _start_others(self, yard: Yard, sizes: dict[int, int], free: int) -> int:
        """The least sizes of those that have no promise, and of those that could wait, while there is room."""
        others = [index for index in yard.left if not sizes.get(index)]
        given = 0
        for index in sorted(others, key=lambda index: (index not in yard.sizes, index not in self._admitted, index)):
            least = yard.jobs[index].sizes[0]
            if least <= free - given:
                sizes[index] = least
                given += least
        return given


def deadlines(jobs: Sequence[SizedJob], seed: int = 0) -> list[float]:
    """Every job's deadline, by a factor of its duration that is drawn for it."""
    rng = random.Random(seed)
    return [job.trace.submit + rng.uniform(TIGHTEST, LOOSEST) * job.trace.duration for job in jobs]


def _keep(yard: Yard, sizes: dict[int, int], free: int) -> int:
    """Leave GPUs with those that have them, as far as they are left over; how many that takes."""
    given = 0
    for index, size in yard.sizes.items():
        job, now = yard.jobs[index], sizes.get(index, 0)
        kept = job.at_most(min(size, now + free - given)) if now else 0
        if kept > now:
            sizes[index] = kept
            given += kept - now
    return given


def _spread(yard: Yard, sizes: dict[int, int], free: int) -> None:
    """Give what is left, a step at a time, to whom it costs the least GPU time; those who run only if it pays."""
    begun = dict(sizes)
    steps = [step for index in sizes for step in _step(yard, index, sizes[index])]
    heapq.heapify(steps)
    while steps and free:
        _, index, size = heapq.heappop(steps)
        if size - sizes[index] <= free:
            free -= size - sizes[index]
            sizes[index] = size
            for step in _step(yard, index, size):
                heapq.heappush(steps, step)
    for index, size in begun.items():
        if size == yard.sizes.get(index) and not _pays(yard, index, size, sizes[index]):
            sizes[index] = size


def _step(yard: Yard, index: int, size: int) -> Iterator[tuple[float, int, int]]:
    """The next larger size, and by how much it makes the job use more GPU time for each GPU."""
    job = yard.jobs[index]
    larger = next((legal for legal in job.sizes if legal > size), None)
    if size and larger is not None:
        more = yard.left[index] * (larger / job.pace(larger) - size / job.pace(size)) / (larger - size)
        yield round(more, 6), index, larger


def _pays(yard: Yard, index: int, size: int, larger: int) -> bool:
    job, work = yard.jobs[index], yard.left[index]
    return work / job.pace(size) - work / job.pace(larger) > yard.terms.resize_cost
