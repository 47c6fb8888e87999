"""The jobs that may step aside, put where they are found fast: by kind, and by standing.

It must not know the rules or choose: who is a candidate is for `preempt.py` to say, who of them goes for `victims.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from itertools import accumulate

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.orders.ranking import PreemptionRank

Permits = Callable[[Job, Sequence[Job]], bool]
"""Whether a victim may be taken, given those taken before it. It may hang on anything, but:

the more of other shares are taken, the fewer are permitted, and the more of the newcomer's own, the more. Within the
newcomer's share it permits a lower standing wherever it permits a better one; of another share's jobs that hold the
same units, the one of lower priority, then the newer one, wherever it permits the other.
"""
BucketKey = tuple[str, tuple[tuple[str, int], ...]]
"""A share, and the units that jobs of it hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A job that may step aside, now or from `until` on; `cost` in GPU-seconds."""

    job: Job
    units: Units
    rank: PreemptionRank
    cost: float
    until: datetime | None = None

    @property
    def order(self) -> tuple[PreemptionRank, float, str]:
        """The order in which candidates are asked for and listed; total, since the name is in it."""
        return self.rank, self.cost, self.job.name

    @property
    def bucket_key(self) -> BucketKey:
        """Candidates of one kind and standing differ in cost only."""
        return self.job.share, tuple(sorted(self.units.items()) if len(self.units) > 1 else self.units.items())


def max_useful(candidate: Candidate, missing: Units) -> int:
    """How many candidates that hold the same units could be of use together."""
    return max(-(-count // candidate.units[pool]) for pool, count in missing.items() if pool in candidate.units)


@dataclass(slots=True)
class CumulativeUnits:
    """How many units are held up to each standing."""

    totals: dict[PreemptionRank, int] = field(default_factory=dict)
    _ranks: list[PreemptionRank] = field(default_factory=list)
    _sums: list[int] | None = None

    def add(self, rank: PreemptionRank, count: int) -> None:
        """That many more (or fewer) units at a standing."""
        if rank not in self.totals:
            self.totals[rank] = 0
            self._ranks.append(rank)
        self.totals[rank] += count
        self._sums = None

    def up_to(self, rank: PreemptionRank) -> int:
        """Units at this standing and below."""
        index = bisect_right(self.ranks, rank)
        return self._sums_by_rank()[index - 1] if index else 0

    def rank_reaching(self, count: int) -> PreemptionRank | None:
        """The lowest standing up to which there are this many units; None where all are fewer."""
        index = bisect_left(self._sums_by_rank(), count)
        return self._ranks[index] if index < len(self._ranks) else None

    @property
    def ranks(self) -> list[PreemptionRank]:
        """All standings, lowest first."""
        self._sums_by_rank()
        return self._ranks

    def _sums_by_rank(self) -> list[int]:
        if self._sums is None:
            self._ranks.sort()
            self._sums = list(accumulate(self.totals[rank] for rank in self._ranks))
        return self._sums


@dataclass(slots=True)
class CandidateBucket:
    """The candidates of one pool and one kind, by standing; at each standing in the order in which they came."""

    units_by_rank: CumulativeUnits = field(default_factory=CumulativeUnits)
    by_rank: dict[PreemptionRank, list[Candidate]] = field(default_factory=dict)
    _in_reclaim_order: list[Candidate] | None = None

    @classmethod
    def of(cls, candidates: Iterable[Candidate], pool: str) -> CandidateBucket:
        """A shelf of a pool with these, the cheapest in front."""
        bucket = cls()
        for candidate in sorted(candidates, key=lambda c: c.order):
            bucket.add(candidate, candidate.units[pool])
        return bucket

    def add(self, candidate: Candidate, count: int) -> None:
        """Put a candidate behind those of its standing."""
        self.units_by_rank.add(candidate.rank, count)
        self.by_rank.setdefault(candidate.rank, []).append(candidate)
        self._in_reclaim_order = None

    def drop(self, candidate: Candidate, count: int) -> None:
        """Take a candidate away."""
        self.units_by_rank.add(candidate.rank, -count)
        self.by_rank[candidate.rank].remove(candidate)
        self._in_reclaim_order = None

    def rank_extremes(self) -> tuple[Candidate, Candidate] | None:
        """One of the lowest and one of the best standing; None where nobody is left."""
        ranks = [rank for rank in self.units_by_rank.ranks if self.by_rank[rank]]
        return (self.by_rank[ranks[0]][0], self.by_rank[ranks[-1]][0]) if ranks else None

    def in_reclaim_order(self) -> list[Candidate]:
        """All of them, in the order in which another share would be permitted to take them."""
        if self._in_reclaim_order is None:
            self._in_reclaim_order = sorted(self.up_to(None), key=reclaim_order, reverse=True)
        return self._in_reclaim_order

    def up_to(self, limit: PreemptionRank | None) -> list[Candidate]:
        """All candidates of a standing of at most this."""
        ranks = self.units_by_rank.ranks
        end = len(ranks) if limit is None else bisect_right(ranks, limit)
        return [candidate for rank in ranks[:end] for candidate in self.by_rank[rank]]

    def first_of_each_rank(self, limit: PreemptionRank, count: int, *, weakest: bool = False) -> Iterator[Candidate]:
        """The first few of each standing up to a limit; and, if wanted, the weakest few."""
        for rank in self.units_by_rank.ranks:
            if rank > limit:
                return
            level = self.by_rank[rank]
            yield from level[:count]
            if weakest and len(level) > count:
                yield from nlargest(count, level, key=reclaim_order)


def reclaim_order(candidate: Candidate) -> tuple[int, datetime, str]:
    """The higher, the sooner a job is permitted to be taken from its share: low priority, then late start."""
    attempt = candidate.job.attempt
    since = candidate.job.entry_time if attempt is None else attempt.created_at
    return -candidate.job.priority, since, candidate.job.name
