"""Whom a newcomer could have step aside, and up to which standing it has to reach for them.

Cheap where the answer is no: sums by standing say so before anybody is looked at. It must not choose among them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.orders.rank import PreemptionRank
from trainmaster.planner.preemption.candidates import Candidate, CandidateBucket, CumulativeUnits, Kind, Permits, useful

Part = tuple[CandidateBucket, PreemptionRank]
"""A shelf, and the standing up to which a newcomer may have what is on it."""


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A job for which others are to step aside.

    Attributes:
        share: its share.
        standing: its standing.
        missing: units that it lacks, by pool; all positive.
        permits: which candidates it may have; None: those of strictly lower standing.
        alike: equal for newcomers to which `permits` answers alike about other shares; None where that is not known.
    """

    share: str
    standing: PreemptionRank
    missing: Units
    permits: Permits | None = None
    alike: Hashable = None


@dataclass(frozen=True, slots=True, eq=False)
class EligibleCandidates:
    """Where a newcomer finds enough candidates, each of whom it may have if no other is taken.

    Attributes:
        cutoff: the lowest standing up to which they suffice.
        parts: shelves on which it may have candidates, each up to a standing.
    """

    cutoff: PreemptionRank
    parts: Sequence[Part]

    def candidates(self, missing: Units) -> list[Candidate]:
        """Those up to the cutoff that may be needed: of those alike and of equal standing the cheapest few."""
        return self._each(lambda shelf, limit: shelf.few(min(self.cutoff, limit), _few_of(shelf, missing)))

    def weak(self, missing: Units) -> list[Candidate]:
        """Those of any standing that may be needed where some would not be permitted after others."""
        return self._each(lambda shelf, limit: shelf.few(limit, _few_of(shelf, missing), weakest=True))

    def every(self) -> list[Candidate]:
        """All of any standing."""
        return self._each(lambda shelf, limit: shelf.up_to(limit))

    def _each(self, of: Callable[[CandidateBucket, PreemptionRank], Iterable[Candidate]]) -> list[Candidate]:
        """Each once, though it may be on the shelves of several pools."""
        return list({c.job.name: c for shelf, limit in self.parts for c in of(shelf, limit)}.values())


def _few_of(shelf: CandidateBucket, missing: Units) -> int:
    some = next((level[0] for level in shelf.levels.values() if level), None)
    return 0 if some is None else useful(some, missing)


@dataclass(slots=True)
class CandidateIndex:
    """Candidates by pool; one that holds units of several pools is found under each of them."""

    candidates: list[Candidate]
    steps: dict[str, CumulativeUnits] = field(default_factory=dict)
    _kinds: dict[str, dict[Kind, CandidateBucket]] | None = None
    _others: dict[Hashable, list[Part]] = field(default_factory=dict)
    _reaches: dict[Hashable, EligibleCandidates | None] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> CandidateIndex:
        """Shelves with these candidates; those that come first are found first."""
        shelves = cls(list(candidates))
        steps = shelves.steps
        for candidate in shelves.candidates:
            for pool, count in candidate.units.items():
                if pool not in steps:
                    steps[pool] = CumulativeUnits()
                steps[pool].add(candidate.standing, count)
        return shelves

    @property
    def kinds(self) -> dict[str, dict[Kind, CandidateBucket]]:
        """The shelves by pool and kind; put up only when sums do not say already that nobody can be had."""
        if self._kinds is None:
            self._kinds = {}
            for candidate in self.candidates:
                kind = candidate.kind
                for pool, count in candidate.units.items():
                    shelves = self._kinds.setdefault(pool, {})
                    if kind not in shelves:
                        shelves[kind] = CandidateBucket()
                    shelves[kind].add(candidate, count)
        return self._kinds

    def drop(self, candidate: Candidate) -> None:
        """Remove a candidate."""
        self._others.clear()
        self._reaches.clear()
        kinds = self.kinds
        for pool, count in candidate.units.items():
            self.steps[pool].add(candidate.standing, -count)
            kinds[pool][candidate.kind].drop(candidate, count)

    def reach(self, preemptor: Preemptor) -> EligibleCandidates | None:
        """Where the newcomer finds all that it lacks; None where all that it may have is not enough.

        The same value for newcomers that find the same, until somebody is dropped.
        """
        missing = preemptor.missing
        cutoff = self._cutoff(missing)
        if cutoff is None:
            return None
        if preemptor.permits is not None:
            return self._among(preemptor, preemptor.permits, ()) or self._after_its_own(preemptor, preemptor.permits)
        if cutoff >= preemptor.standing:
            return None
        key = (cutoff, *sorted(missing.items()))
        if key not in self._reaches:
            shelves = [shelf for pool in missing for shelf in self.kinds[pool].values()]
            self._reaches[key] = EligibleCandidates(cutoff, [(shelf, cutoff) for shelf in shelves])
        return self._reaches[key]

    def _among(self, preemptor: Preemptor, permits: Permits, taken: Sequence[Job]) -> EligibleCandidates | None:
        """What the newcomer can reach once these are taken."""
        parts = {pool: list(self._permitted(pool, preemptor, permits, taken)) for pool in preemptor.missing}
        if preemptor.alike is None or taken:
            return self._of(parts, preemptor.missing)
        # These shelves live as long as this key: those of other shares are kept in `_others`.
        found = [(id(shelf), limit) for each in parts.values() for shelf, limit in each]
        key = (preemptor.alike, *preemptor.missing.items(), *found)
        if key not in self._reaches:
            self._reaches[key] = self._of(parts, preemptor.missing)
        return self._reaches[key]

    def _of(self, parts: Mapping[str, Sequence[Part]], missing: Units) -> EligibleCandidates | None:
        """The reach over these parts, by pool; None where they are not enough."""
        reached = [self._reaching(pool, count, parts[pool]) for pool, count in missing.items()]
        found = [cutoff for cutoff in reached if cutoff is not None]
        return (
            EligibleCandidates(max(found), [part for pool in missing for part in parts[pool]])
            if found == reached
            else None
        )

    def _after_its_own(self, preemptor: Preemptor, permits: Permits) -> EligibleCandidates | None:
        """The same with those of its own share taken first, where they alone are not enough.

        That brings the share down to its own, which may entitle it to take the rest from others (Kueue #14122).
        """
        limit = below(preemptor.standing)
        own = {
            pool: [shelf for kind, shelf in self.kinds[pool].items() if kind[0] == preemptor.share]
            for pool in preemptor.missing
        }
        if all(sum(s.steps.up_to(limit) for s in own[pool]) >= count for pool, count in preemptor.missing.items()):
            return None
        jobs = {c.job.name: c.job for shelves in own.values() for shelf in shelves for c in shelf.up_to(limit)}
        return self._among(preemptor, permits, list(jobs.values())) if jobs else None

    def _cutoff(self, missing: Units) -> PreemptionRank | None:
        """The lowest standing up to which all candidates together free `missing`; None where not even all do."""
        cutoff: PreemptionRank = ()
        for pool, count in missing.items():
            reached = self.steps[pool].reaching(count) if pool in self.steps else None
            if reached is None:
                return None
            cutoff = max(cutoff, reached)
        return cutoff

    def _permitted(self, pool: str, preemptor: Preemptor, permits: Permits, taken: Sequence[Job]) -> Iterator[Part]:
        """The shelves of a pool on which there is anybody whom the newcomer may have, each with the limit of that."""
        for kind, shelf in self.kinds[pool].items():
            ends = shelf.by_standing() if kind[0] == preemptor.share else None
            if ends is not None and permits(ends[0].job, ()):
                yield shelf, ends[1].standing if permits(ends[1].job, ()) else below(preemptor.standing)
        key = (preemptor.alike, pool, *preemptor.missing)
        if taken or preemptor.alike is None:
            yield from self._of_others(pool, preemptor.share, permits, taken)
        else:
            if key not in self._others:
                self._others[key] = list(self._of_others(pool, preemptor.share, permits, ()))
            yield from self._others[key]

    def _of_others(self, pool: str, share: str, permits: Permits, taken: Sequence[Job]) -> Iterator[Part]:
        """The same among other shares. As a rule one or two of each kind are asked about, else a few."""
        for kind, shelf in self.kinds[pool].items():
            weak = shelf.by_weakness() if kind[0] != share else []
            if not weak or not permits(weak[0].job, taken):
                continue
            if not permits(weak[-1].job, taken):
                some = bisect_left(weak, True, key=lambda c: not permits(c.job, taken))  # noqa: FBT003 -- a key
                shelf = CandidateBucket.of(weak[:some], pool)  # noqa: PLW2901
            yield shelf, shelf.steps.standings[-1]

    def _reaching(self, pool: str, count: int, parts: Sequence[Part]) -> PreemptionRank | None:
        standings = self.steps[pool].standings

        def held(cutoff: PreemptionRank) -> int:
            return sum(shelf.steps.up_to(min(cutoff, limit)) for shelf, limit in parts)

        index = bisect_left(standings, count, key=held)
        return standings[index] if index < len(standings) else None


def below(standing: PreemptionRank) -> PreemptionRank:
    """The standing next below."""
    return (*standing[:-1], standing[-1] - 1)
