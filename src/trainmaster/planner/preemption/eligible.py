"""The candidates that a job may preempt, and the rank up to which it needs them.

Sums by rank show cheaply that there are not enough; only after that does the search examine single candidates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.orders.ranking import PreemptionRank
from trainmaster.planner.preemption.candidates import (
    BucketKey,
    Candidate,
    CandidateBucket,
    CumulativeUnits,
    Permits,
    Protection,
    max_useful,
)
from trainmaster.planner.preemption.levels import CandidateLevels

EligiblePart = tuple[CandidateBucket, PreemptionRank]
"""A bucket, and the rank up to which the preemptor may have its candidates."""


class Preemptor(NamedTuple):
    """A job for which others are to be preempted. A tuple, since a plan makes one for each blocked job.

    Attributes:
        share: its share.
        rank: its preemption rank.
        missing: units that it lacks, by pool; all positive.
        permits: which candidates it may preempt; None for those of strictly lower rank.
        permit_key: equal for preemptors to which `permits` answers alike about other shares; None if unknown.
    """

    share: str
    rank: PreemptionRank
    missing: Units
    permits: Permits | None = None
    permit_key: Hashable = None


@dataclass(frozen=True, slots=True, eq=False)
class EligibleCandidates:
    """Enough candidates for a preemptor, each of which it may preempt if it preempts no other.

    Attributes:
        cutoff: the lowest rank up to which they suffice.
        parts: buckets with eligible candidates, each with the rank up to which they are eligible.
    """

    cutoff: PreemptionRank
    parts: Sequence[EligiblePart]

    def candidates(self, missing: Units) -> list[Candidate]:
        """Return those up to the cutoff that may be needed: of equal units and rank, only the cheapest few."""
        return self._collect(
            lambda bucket, limit: bucket.first_of_each_rank(min(self.cutoff, limit), _max_useful_of(bucket, missing))
        )

    def for_search(self, missing: Units) -> list[Candidate]:
        """Return those of any rank that may be needed when some are not permitted after others."""
        return self._collect(
            lambda bucket, limit: bucket.first_of_each_rank(limit, _max_useful_of(bucket, missing), weakest=True)
        )

    def all_of_any_rank(self) -> list[Candidate]:
        """Return all of them."""
        return self._collect(lambda bucket, limit: bucket.up_to(limit))

    def _collect(self, of: Callable[[CandidateBucket, PreemptionRank], Iterable[Candidate]]) -> list[Candidate]:
        """Return each candidate once, though buckets of several pools may hold it."""
        return list({c.job.name: c for bucket, limit in self.parts for c in of(bucket, limit)}.values())


def _max_useful_of(bucket: CandidateBucket, missing: Units) -> int:
    permitted = next((level[0] for level in bucket.by_rank.values() if level), None)
    return 0 if permitted is None else max_useful(permitted, missing)


@dataclass(slots=True)
class CandidateIndex:
    """Candidates by pool; one that holds units of several pools is in each of them.

    Each pool is filled from the lowest rank up, as far as preemptors need.

    Attributes:
        levels: where the candidates come from.
        most_protected: the greatest protection of a candidate of this index.
        units_by_rank: their units by pool.
    """

    levels: CandidateLevels
    most_protected: Protection
    units_by_rank: dict[str, CumulativeUnits] = field(default_factory=dict)
    _filled: dict[str, int] = field(default_factory=dict)
    _without_bucket: dict[str, list[Candidate]] = field(default_factory=dict)
    _buckets: dict[str, dict[BucketKey, CandidateBucket]] = field(default_factory=dict)
    _parts_of_others: dict[Hashable, list[EligiblePart]] = field(default_factory=dict)
    _cutoffs: dict[Hashable, PreemptionRank] = field(default_factory=dict)
    _eligible: dict[Hashable, EligibleCandidates | None] = field(default_factory=dict)

    def buckets(self, pool: str) -> dict[BucketKey, CandidateBucket]:
        """Return the buckets of a pool, built only when the sums do not already rule out enough candidates."""
        index, waiting = self._buckets.setdefault(pool, {}), self._without_bucket.setdefault(pool, [])
        for candidate in waiting:
            key = candidate.bucket_key
            if key not in index:
                index[key] = CandidateBucket()
            index[key].add(candidate, candidate.units[pool])
        waiting.clear()
        return index

    def drop(self, candidate: Candidate) -> None:
        """Remove a candidate that is no longer among the levels."""
        if candidate.protection > self.most_protected:
            return
        for pool, count in candidate.units.items():
            filled = self._filled.get(pool, 0)
            if filled and candidate.rank <= self.levels.ranks(pool)[filled - 1]:
                self.units_by_rank[pool].add(candidate.rank, -count)
                self.buckets(pool)[candidate.bucket_key].drop(candidate, count)
        self._parts_of_others.clear()
        self._cutoffs.clear()
        self._eligible.clear()

    def eligible(self, preemptor: Preemptor) -> EligibleCandidates | None:
        """Return where the preemptor finds all that it lacks; None if all eligible candidates are not enough.

        Preemptors with the same eligible candidates get the same object, until a candidate is removed.
        """
        missing, permits = preemptor.missing, preemptor.permits
        if permits is not None:
            self._fill(missing)
            if self._cutoff(missing) is None:
                return None
            return self._eligible_after(preemptor, permits, ()) or self._after_own_share(preemptor, permits)
        key = tuple(missing.items())
        cutoff = self._cutoffs.get(key) or self._cutoff(missing, preemptor.rank)
        if cutoff is None:
            return None
        self._cutoffs[key] = cutoff
        if cutoff >= preemptor.rank:
            return None
        if key not in self._eligible:
            self._fill(missing, cutoff)
            index = [bucket for pool in missing for bucket in self.buckets(pool).values()]
            self._eligible[key] = EligibleCandidates(cutoff, [(bucket, cutoff) for bucket in index])
        return self._eligible[key]

    def _eligible_after(
        self, preemptor: Preemptor, permits: Permits, taken: Sequence[Job]
    ) -> EligibleCandidates | None:
        """Return what is eligible once these jobs are taken."""
        parts = {pool: list(self._permitted(pool, preemptor, permits, taken)) for pool in preemptor.missing}
        if preemptor.permit_key is None or taken:
            return self._combine(parts, preemptor.missing)
        # These buckets live as long as this key: those of other shares are in `_parts_of_others`.
        found = [(id(bucket), limit) for each in parts.values() for bucket, limit in each]
        key = (preemptor.permit_key, *preemptor.missing.items(), *found)
        if key not in self._eligible:
            self._eligible[key] = self._combine(parts, preemptor.missing)
        return self._eligible[key]

    def _combine(self, parts: Mapping[str, Sequence[EligiblePart]], missing: Units) -> EligibleCandidates | None:
        """Return the eligible candidates in these parts, by pool; None if they are not enough."""
        cutoffs = [self._rank_reaching(pool, count, parts[pool]) for pool, count in missing.items()]
        found = [cutoff for cutoff in cutoffs if cutoff is not None]
        return (
            EligibleCandidates(max(found), [part for pool in missing for part in parts[pool]])
            if found == cutoffs
            else None
        )

    def _after_own_share(self, preemptor: Preemptor, permits: Permits) -> EligibleCandidates | None:
        """Return what is eligible once candidates of the preemptor's share are taken, if they alone are not enough.

        That brings the share down to its nominal units, which may entitle it to take the rest from others (Kueue
        #14122).
        """
        limit = below(preemptor.rank)
        own = {
            pool: [bucket for key, bucket in self.buckets(pool).items() if key[0] == preemptor.share]
            for pool in preemptor.missing
        }
        if all(
            sum(s.units_by_rank.up_to(limit) for s in own[pool]) >= count for pool, count in preemptor.missing.items()
        ):
            return None
        jobs = {c.job.name: c.job for buckets in own.values() for bucket in buckets for c in bucket.up_to(limit)}
        return self._eligible_after(preemptor, permits, list(jobs.values())) if jobs else None

    def _cutoff(self, missing: Units, limit: PreemptionRank | None = None) -> PreemptionRank | None:
        """Return the lowest rank up to which all candidates together free `missing`.

        None if all are not enough, or all below the limit.
        """
        cutoff: PreemptionRank = ()
        for pool, count in missing.items():
            while (reached := self._rank_with(pool, count)) is None:
                if not self._fill_next(pool, limit):
                    return None
            cutoff = max(cutoff, reached)
        return cutoff

    def _rank_with(self, pool: str, count: int) -> PreemptionRank | None:
        return self.units_by_rank[pool].rank_reaching(count) if pool in self.units_by_rank else None

    def _fill(self, pools: Iterable[str], cutoff: PreemptionRank | None = None) -> None:
        """Add the candidates of these pools of all ranks, or up to a cutoff."""
        limit = None if cutoff is None else above(cutoff)
        for pool in pools:
            while self._fill_next(pool, limit):
                pass

    def _fill_next(self, pool: str, limit: PreemptionRank | None = None) -> bool:
        """Add the candidates of a pool's next rank; return False if there is none, or none below the limit."""
        ranks, filled = self.levels.ranks(pool), self._filled.get(pool, 0)
        if filled == len(ranks) or (limit is not None and ranks[filled] >= limit):
            return False
        for candidate in self.levels.at(pool, ranks[filled]):
            if candidate.protection <= self.most_protected:
                self._add(candidate, pool)
        self._filled[pool] = filled + 1
        return True

    def _add(self, candidate: Candidate, pool: str) -> None:
        if pool not in self.units_by_rank:
            self.units_by_rank[pool], self._without_bucket[pool] = CumulativeUnits(), []
        self._without_bucket[pool].append(candidate)
        self.units_by_rank[pool].add(candidate.rank, candidate.units[pool])

    def _permitted(
        self, pool: str, preemptor: Preemptor, permits: Permits, taken: Sequence[Job]
    ) -> Iterator[EligiblePart]:
        """Yield the buckets of a pool with candidates that the preemptor may have, each with its rank limit."""
        for key, bucket in self.buckets(pool).items():
            ends = bucket.rank_extremes() if key[0] == preemptor.share else None
            if ends is not None and permits(ends[0].job, ()):
                yield bucket, ends[1].rank if permits(ends[1].job, ()) else below(preemptor.rank)
        asked = (preemptor.permit_key, pool, *preemptor.missing)
        if taken or preemptor.permit_key is None:
            yield from self._permitted_of_others(pool, preemptor.share, permits, taken)
        else:
            if asked not in self._parts_of_others:
                self._parts_of_others[asked] = list(self._permitted_of_others(pool, preemptor.share, permits, ()))
            yield from self._parts_of_others[asked]

    def _permitted_of_others(
        self, pool: str, share: str, permits: Permits, taken: Sequence[Job]
    ) -> Iterator[EligiblePart]:
        """Yield the same for other shares; mostly one or two candidates of each bucket are checked."""
        for key, bucket in self.buckets(pool).items():
            ordered = bucket.in_reclaim_order() if key[0] != share else []
            if not ordered or not permits(ordered[0].job, taken):
                continue
            if not permits(ordered[-1].job, taken):
                permitted = bisect_left(ordered, True, key=lambda c: not permits(c.job, taken))  # noqa: FBT003 -- a key
                bucket = CandidateBucket.of(ordered[:permitted], pool)  # noqa: PLW2901
            yield bucket, bucket.units_by_rank.ranks[-1]

    def _rank_reaching(self, pool: str, count: int, parts: Sequence[EligiblePart]) -> PreemptionRank | None:
        ranks = self.units_by_rank[pool].ranks

        def held(cutoff: PreemptionRank) -> int:
            return sum(bucket.units_by_rank.up_to(min(cutoff, limit)) for bucket, limit in parts)

        index = bisect_left(ranks, count, key=held)
        return ranks[index] if index < len(ranks) else None


def below(rank: PreemptionRank) -> PreemptionRank:
    """Return the rank next below."""
    return (*rank[:-1], rank[-1] - 1)


def above(rank: PreemptionRank) -> PreemptionRank:
    """Return the rank next above."""
    return (*rank[:-1], rank[-1] + 1)
