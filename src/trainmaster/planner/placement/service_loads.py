"""Dispatch order for services: jobs of the least loaded service first, the oldest job first among equals.

The load of a pool is the part that the queue's jobs hold, those that the plan starts included. Jobs of one pool keep
their order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from trainmaster.domain.capacity.units import Kind, total
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot


def least_loaded_first(ordered: Sequence[Job], snapshot: Snapshot, tier: Callable[[Job], object]) -> list[Job]:
    """Return the jobs with those of services in another order, in the places that those had.

    Args:
        ordered: waiting jobs with resolved demands, in queue order.
        snapshot: the snapshot of the pass.
        tier: equal for jobs that the load may reorder.
    """
    if not any(pool.kind is Kind.SERVICE for pool in snapshot.pools.values()):
        return list(ordered)
    places = [place for place, job in enumerate(ordered) if job.work is not None]
    used = total(job.units for job in snapshot.active if job.work is not None)
    loads = _Loads({name: pool.cap for name, pool in snapshot.pools.items()}, used)
    result = list(ordered)
    for _, run in groupby(places, key=lambda place: tier(ordered[place])):
        places_of_tier = list(run)
        for place, job in zip(places_of_tier, loads.in_turn([ordered[at] for at in places_of_tier]), strict=True):
            result[place] = job
    return result


@dataclass(slots=True)
class _Loads:
    """The used units of each pool while jobs are considered one after the other."""

    caps: dict[str, int]
    used: dict[str, int]

    def in_turn(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs, each time the first one of the pool that is least loaded by then."""
        lines: dict[str, list[tuple[int, Job]]] = {}
        for place, job in enumerate(jobs):
            if job.work is not None:
                lines.setdefault(job.work.pool, []).append((place, job))
        heads = [(self._load(pool), line[0][0], pool, 0) for pool, line in lines.items()]
        heapq.heapify(heads)
        result = []
        while heads:
            _, _, pool, index = heads[0]
            line = lines[pool]
            result.append(line[index][1])
            self._start(pool, line[index][1])
            if index + 1 < len(line):
                heapq.heapreplace(heads, (self._load(pool), line[index + 1][0], pool, index + 1))
            else:
                heapq.heappop(heads)
        return result

    def _load(self, pool: str) -> float:
        """Return the used part of a pool; a pool that no longer exists comes last."""
        cap = self.caps.get(pool, 0)
        return self.used.get(pool, 0) / cap if cap else 1.0

    def _start(self, pool: str, job: Job) -> None:
        """Count the job as started if it fits."""
        asked = job.demand.alternatives[0].get(pool, 0)
        if self.used.get(pool, 0) + asked <= self.caps.get(pool, 0):
            self.used[pool] = self.used.get(pool, 0) + asked
