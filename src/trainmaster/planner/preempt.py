"""Which jobs step aside for a job of higher priority. It must not decide whether anybody should.

Rules (article, "manage queue" step 4, mended): victims have strictly lower priority, so that no two jobs can
preempt each other in turn; the lowest priority goes first, among equals the one that loses least work; and no
victim is taken that was not needed (the reverse pass is Kueue's `fillBackWorkloads`).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate, islice

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job, JobState

VictimOrder = tuple[int, float, str]


def lost_work(job: Job, now: datetime) -> float:
    """Instance-seconds of work that would have to be done again, at worst: all since the attempt was at work."""
    if job.attempt is None or job.attempt.started_at is None:
        return 0.0
    return max((now - job.attempt.started_at).total_seconds(), 0.0) * sum(job.units.values())


def may_step_aside(job: Job) -> bool:
    """Whether a job may be preempted at all: SageMaker has it, and it neither stops already nor is protected."""
    attempt = job.attempt
    known = attempt is not None and attempt.launched and attempt.stop_asked_at is None
    return known and job.preemptible and job.state in (JobState.STARTING, JobState.RUNNING)


@dataclass(slots=True)
class Candidates:
    """Jobs that may step aside, by pool, in the order in which they would be taken."""

    now: datetime
    by_pool: dict[str, list[Job]] = field(default_factory=dict)
    _sums: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)

    @classmethod
    def among(cls, active: Iterable[Job], now: datetime) -> Candidates:
        """The candidates among the active jobs of a snapshot."""
        candidates = cls(now)
        for job in sorted(filter(may_step_aside, active), key=candidates.rank):
            for pool in job.units:
                candidates.by_pool.setdefault(pool, []).append(job)
        return candidates

    def rank(self, job: Job) -> VictimOrder:
        """Lowest priority first, then the least lost work, then the name."""
        return (job.priority, lost_work(job, self.now), job.name)

    def available(self, pool: str, below: int) -> int:
        """Units of a pool that jobs of a priority below this one hold."""
        if pool not in self._sums:
            jobs = self.by_pool.get(pool, [])
            self._sums[pool] = ([j.priority for j in jobs], [0, *accumulate(j.units[pool] for j in jobs)])
        priorities, sums = self._sums[pool]
        return sums[bisect_left(priorities, below)]

    def suffice(self, missing: Units, below: int) -> bool:
        """Whether all candidates of a priority below this one together would free `missing`."""
        return all(self.available(pool, below) >= count for pool, count in missing.items())

    def victims(self, missing: Units, below: int) -> tuple[Job, ...]:
        """An irreducible set of jobs that frees `missing`, where they suffice."""
        return self._without_needless(self._greedy(dict(missing), below), missing)

    def remove(self, victims: Iterable[Job]) -> None:
        """These are taken; nobody else may count on them."""
        names = {job.name for job in victims}
        for pool in {pool for job in victims for pool in job.units}:
            self.by_pool[pool] = [job for job in self.by_pool[pool] if job.name not in names]
            self._sums.pop(pool, None)

    def _greedy(self, missing: dict[str, int], below: int) -> list[Job]:
        """The first in order that bring something still missing, until nothing is.

        Read one by one, not collected first: a pool may have thousands of candidates where one or two are enough.
        """
        taken: list[Job] = []
        for job in heapq.merge(*(self._below(pool, below) for pool in missing), key=self.rank):
            # A job of several pools comes once for each, one behind the other, since no two have the same rank.
            if taken and taken[-1] is job:
                continue
            if any(missing.get(pool, 0) > 0 for pool in job.units):
                taken.append(job)
                for pool, count in job.units.items():
                    if pool in missing:
                        missing[pool] -= count
            if not any(count > 0 for count in missing.values()):
                break
        return taken

    def _below(self, pool: str, below: int) -> Iterator[Job]:
        jobs = self.by_pool.get(pool, [])
        return islice(jobs, bisect_left(jobs, below, key=lambda job: job.priority))

    def _without_needless(self, taken: list[Job], missing: Units) -> tuple[Job, ...]:
        """Walk the set from the job that would be missed most, and spare each one that is not needed."""
        spare = {pool: sum(job.units.get(pool, 0) for job in taken) - count for pool, count in missing.items()}
        kept: list[Job] = []
        for job in reversed(taken):
            if all(job.units.get(pool, 0) <= left for pool, left in spare.items()):
                for pool in spare:
                    spare[pool] -= job.units.get(pool, 0)
            else:
                kept.append(job)
        return tuple(reversed(kept))
