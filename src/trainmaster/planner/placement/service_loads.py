"""Jobs of the least loaded service first, those with the oldest job among equals.

The guide's "Load-Balanced Job Selection". Load is what jobs of the queue hold of a pool, not what waits for it, and
what the plan itself starts counts from then on. Inside each pool the jobs keep their order, so nobody is passed by one
that waits for the same. It must not decide what starts: it only says in which order to look.
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
        ordered: waiting jobs, resolved, in the order in which they are considered.
        snapshot: what the pass read.
        tier: equal for jobs between which load may decide.
    """
    if not any(pool.kind is Kind.SERVICE for pool in snapshot.pools.values()):
        return list(ordered)
    places = [place for place, job in enumerate(ordered) if job.work is not None]
    used = total(job.units for job in snapshot.active if job.work is not None)
    loads = _Loads({name: pool.cap for name, pool in snapshot.pools.items()}, used)
    result = list(ordered)
    for _, run in groupby(places, key=lambda place: tier(ordered[place])):
        among = list(run)
        for place, job in zip(among, loads.in_turn([ordered[each] for each in among]), strict=True):
            result[place] = job
    return result


@dataclass(slots=True)
class _Loads:
    """What is used of each pool as jobs are looked at, one after the other."""

    caps: dict[str, int]
    used: dict[str, int]

    def in_turn(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs, each time the first of the pool that is least loaded by then."""
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
        """The part of it that is used; a pool that is gone comes last."""
        cap = self.caps.get(pool, 0)
        return self.used.get(pool, 0) / cap if cap else 1.0

    def _start(self, pool: str, job: Job) -> None:
        """The job counts from now on where it fits, as the plan goes."""
        asked = job.demand.alternatives[0].get(pool, 0)
        if self.used.get(pool, 0) + asked <= self.caps.get(pool, 0):
            self.used[pool] = self.used.get(pool, 0) + asked
