"""The units that running jobs hold, by their place in the queue."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from trainmaster.domain.jobs.job import Job


@dataclass(frozen=True, slots=True)
class LaterUnits:
    """Active jobs by pool in queue order, each with the sum of what it and all before it hold."""

    _by_pool: dict[str, tuple[list[tuple[object, ...]], list[int]]]

    @classmethod
    def of(cls, active: Iterable[Job]) -> LaterUnits:
        """Return what active jobs hold and are not about to release."""
        by_pool: dict[str, list[Job]] = {}
        for job in sorted(active, key=lambda job: job.order):
            for pool in job.staying:
                by_pool.setdefault(pool, []).append(job)
        return cls(
            {
                pool: ([job.order for job in jobs], [0, *accumulate(job.staying[pool] for job in jobs)])
                for pool, jobs in by_pool.items()
            }
        )

    def held(self, pool: str, job: Job) -> int:
        """Return the units of a pool that jobs behind this one in the queue hold."""
        orders, sums = self._by_pool.get(pool, ([], [0]))
        return sums[-1] - sums[bisect_right(orders, job.order)]
