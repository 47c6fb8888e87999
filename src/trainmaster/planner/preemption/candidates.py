"""Preemption candidates in buckets by share and units, ordered by rank, so that a search touches few of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from heapq import nlargest

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.times import NEVER
from trainmaster.planner.orders.ranking import PreemptionRank


class Protection(IntEnum):
    """The protection of a job from preemption, the least first; a job at its preemption limit is protected for good."""

    NONE = 0
    FOR_A_TIME = 1
    FOR_GOOD = 2


Permits = Callable[[Job, Sequence[Job]], bool]
"""A function that returns True if a victim may be taken after those taken before it.

The search relies on this: the more jobs of other shares are taken, the fewer are permitted; the more of the
preemptor's share, the more. Within the preemptor's share it permits a lower rank wherever it permits a higher one. Of
another share's jobs with equal units, it permits the one of lower priority, then the newer one, wherever it permits
the other.
"""
BucketKey = tuple[str, tuple[tuple[str, int], ...]]
"""A share, and the units that each of its jobs in the bucket holds."""


@dataclass(slots=True, eq=False)
class Candidate:
    """A job that may be preempted, now or from `until` on, at a cost in GPU-seconds.

    Not frozen, which would triple the time to make one, and a plan makes one for each active job.
    """

    job: Job
    units: Units
    rank: PreemptionRank
    cost: float
    until: datetime | None = None

    @property
    def order(self) -> tuple[PreemptionRank, float, str]:
        """Sort key for listing and preempting candidates; total, since it contains the name."""
        return self.rank, self.cost, self.job.name

    @property
    def protection(self) -> Protection:
        """Its protection at the time of the plan."""
        if self.until is None:
            return Protection.NONE
        return Protection.FOR_GOOD if self.until == NEVER else Protection.FOR_A_TIME

    @property
    def bucket_key(self) -> BucketKey:
        """Key of the bucket: candidates with an equal key and rank differ only in cost."""
        return self.job.share, tuple(sorted(self.units.items()) if len(self.units) > 1 else self.units.items())


def max_useful(candidate: Candidate, missing: Units) -> int:
    """Return how many candidates that hold the same units could be useful together."""
    return max(-(-count // candidate.units[pool]) for pool, count in missing.items() if pool in candidate.units)


@dataclass(slots=True)
class CumulativeUnits:
    """Units held up to each rank.

    Sums are made from the lowest rank up as far as they are asked for, and a change keeps those below it: victims have
    low ranks, so a plan with many preemptions would otherwise add up all ranks after each.
    """

    totals: dict[PreemptionRank, int] = field(default_factory=dict)
    _ranks: list[PreemptionRank] = field(default_factory=list)
    _sums: list[int] = field(default_factory=list)
    _is_sorted: bool = True

    def add(self, rank: PreemptionRank, count: int) -> None:
        """Add units at a rank; a negative count removes them."""
        totals = self.totals
        if rank in totals:
            totals[rank] += count
            if self._sums:
                del self._sums[bisect_left(self._ranks, rank) :]
        else:
            if self._ranks and rank < self._ranks[-1]:
                self._is_sorted = False
                self._sums.clear()
            totals[rank] = count
            self._ranks.append(rank)

    def up_to(self, rank: PreemptionRank) -> int:
        """Return the units at this rank and below."""
        index = bisect_right(self.ranks, rank)
        for _ in range(index - len(self._sums)):
            self._add_sum()
        return self._sums[index - 1] if index else 0

    def rank_reaching(self, count: int) -> PreemptionRank | None:
        """Return the lowest rank up to which this many units are held; None if all are fewer."""
        ranks, sums = self.ranks, self._sums
        while len(sums) < len(ranks) and (not sums or sums[-1] < count):
            self._add_sum()
        index = bisect_left(sums, count)
        return ranks[index] if index < len(ranks) else None

    @property
    def ranks(self) -> list[PreemptionRank]:
        """All ranks, the lowest first."""
        if not self._is_sorted:
            self._ranks.sort()
            self._is_sorted = True
        return self._ranks

    def _add_sum(self) -> None:
        """Add the sum up to the first rank that has none."""
        sums = self._sums
        sums.append((sums[-1] if sums else 0) + self.totals[self._ranks[len(sums)]])


@dataclass(slots=True)
class CandidateBucket:
    """Candidates with equal share and units, by rank; at each rank in the order in which they were added."""

    units_by_rank: CumulativeUnits = field(default_factory=CumulativeUnits)
    by_rank: dict[PreemptionRank, list[Candidate]] = field(default_factory=dict)
    _in_reclaim_order: list[Candidate] | None = None

    @classmethod
    def of(cls, candidates: Iterable[Candidate], pool: str) -> CandidateBucket:
        """Return a bucket of a pool with these candidates, the cheapest first."""
        bucket = cls()
        for candidate in sorted(candidates, key=lambda c: c.order):
            bucket.add(candidate, candidate.units[pool])
        return bucket

    def add(self, candidate: Candidate, count: int) -> None:
        """Add a candidate behind those of its rank."""
        rank = candidate.rank
        self.units_by_rank.add(rank, count)
        if rank in self.by_rank:
            self.by_rank[rank].append(candidate)
        else:
            self.by_rank[rank] = [candidate]
        self._in_reclaim_order = None

    def drop(self, candidate: Candidate, count: int) -> None:
        """Remove a candidate."""
        self.units_by_rank.add(candidate.rank, -count)
        self.by_rank[candidate.rank].remove(candidate)
        self._in_reclaim_order = None

    def rank_extremes(self) -> tuple[Candidate, Candidate] | None:
        """Return a candidate of the lowest and one of the highest rank; None if the bucket is empty."""
        ranks = [rank for rank in self.units_by_rank.ranks if self.by_rank[rank]]
        return (self.by_rank[ranks[0]][0], self.by_rank[ranks[-1]][0]) if ranks else None

    def in_reclaim_order(self) -> list[Candidate]:
        """Return all candidates in the order in which another share would be permitted to take them."""
        if self._in_reclaim_order is None:
            self._in_reclaim_order = sorted(self.up_to(None), key=reclaim_order, reverse=True)
        return self._in_reclaim_order

    def up_to(self, limit: PreemptionRank | None) -> list[Candidate]:
        """Return all candidates of at most this rank."""
        ranks = self.units_by_rank.ranks
        end = len(ranks) if limit is None else bisect_right(ranks, limit)
        return [candidate for rank in ranks[:end] for candidate in self.by_rank[rank]]

    def first_of_each_rank(self, limit: PreemptionRank, count: int, *, weakest: bool = False) -> Iterator[Candidate]:
        """Yield the first few of each rank up to a limit and, with `weakest`, the first few in reclaim order."""
        for rank in self.units_by_rank.ranks:
            if rank > limit:
                return
            level = self.by_rank[rank]
            yield from level[:count]
            if weakest and len(level) > count:
                yield from nlargest(count, level, key=reclaim_order)


def reclaim_order(candidate: Candidate) -> tuple[int, datetime, str]:
    """Return a key by which `nlargest` yields the jobs that a share loses first: low priority, then late start."""
    attempt = candidate.job.attempt
    since = candidate.job.entry_time if attempt is None else attempt.created_at
    return -candidate.job.priority, since, candidate.job.name
