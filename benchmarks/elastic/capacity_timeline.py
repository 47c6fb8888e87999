"""Free GPUs of a pool in the future, and the share with which a job meets its deadline.

The progressive filling of ElasticFlow's admission (Gu et al., ASPLOS 2023, section 4.1), over intervals between changes
instead of slots of equal length.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from benchmarks.elastic.workload import SizedJob


class CapacityTimeline:
    """Free GPUs from now on, as steps.

    Args:
        cap: GPUs of the pool, all of them free.
        now: seconds of the trace.
    """

    def __init__(self, cap: int, now: float) -> None:
        self._times = [now]
        self._free = [cap]

    def satisfy(self, job: SizedJob, work: float, deadline: float) -> int | None:
        """Reserve the smallest share with which the job meets its deadline; return its GPUs now.

        In each interval the job gets what is free, at most its share. Shares are doubled until one is enough. Returns
        None, and reserves nothing, if none is.

        Args:
            job: whose sizes and pace count.
            work: seconds of its nominal work that are left.
            deadline: when they have to be done.
        """
        for share in shares(job):
            filled = self._filled(job, work, deadline, share)
            if filled is not None:
                self._reserve(*filled)
                return filled[0][0]
        return None

    def _filled(self, job: SizedJob, work: float, deadline: float, share: int) -> tuple[list[int], float] | None:
        """Return the size of the job in each interval and its end; None if it misses the deadline."""
        sizes: list[int] = []
        for place, begin in enumerate(self._times):
            if begin >= deadline:
                return None
            size = job.at_most(min(share, self._free[place]))
            sizes.append(size)
            if not size:
                continue
            after = self._times[place + 1] if place + 1 < len(self._times) else math.inf
            end = begin + work / job.pace(size)
            if end <= after:
                return (sizes, end) if end <= deadline else None
            work -= (after - begin) * job.pace(size)
        return None

    def _reserve(self, sizes: Sequence[int], end: float) -> None:
        place = bisect_left(self._times, end)
        if place == len(self._times) or self._times[place] != end:
            self._times.insert(place, end)
            self._free.insert(place, self._free[place - 1])
        for each, size in enumerate(sizes):
            self._free[each] -= size


def shares(job: SizedJob) -> list[int]:
    """Return the shares to try: the smallest size, doubled up to the largest."""
    found = [job.sizes[0]]
    while found[-1] < job.sizes[-1]:
        found.append(min(2 * found[-1], job.sizes[-1]))
    return found
