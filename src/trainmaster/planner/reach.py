"""Whom a newcomer could have step aside, and up to which standing it has to reach for them.

Cheap where the answer is no: sums by standing say so before anybody is looked at. It must not choose among them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job
from trainmaster.planner.shelves import Candidate, Kind, Permits, Shelf, Standing, Steps, useful


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A job for which others are to step aside.

    Attributes:
        share: its share.
        standing: its standing.
        missing: units that it lacks, by pool; all positive.
        permits: which candidates it may have; None: those of strictly lower standing.
    """

    share: str
    standing: Standing
    missing: Units
    permits: Permits | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a newcomer finds enough candidates, each of whom it may have if no other is taken.

    Attributes:
        cutoff: the lowest standing up to which they suffice.
        parts: shelves on which it may have candidates, each up to a standing.
    """

    cutoff: Standing
    parts: Sequence[tuple[Shelf, Standing]]

    def candidates(self, missing: Units) -> list[Candidate]:
        """Those up to the cutoff that may be needed: of those alike and of equal standing the cheapest few."""
        return self._each(lambda shelf, limit: shelf.few(min(self.cutoff, limit), _few_of(shelf, missing)))

    def weak(self, missing: Units) -> list[Candidate]:
        """Those of any standing that may be needed where some would not be permitted after others."""
        return self._each(lambda shelf, limit: shelf.few(limit, _few_of(shelf, missing), weakest=True))

    def every(self) -> list[Candidate]:
        """All of any standing."""
        return self._each(lambda shelf, limit: shelf.up_to(limit))

    def _each(self, of: Callable[[Shelf, Standing], Iterable[Candidate]]) -> list[Candidate]:
        """Each once, though it may be on the shelves of several pools."""
        return list({c.job.name: c for shelf, limit in self.parts for c in of(shelf, limit)}.values())


def _few_of(shelf: Shelf, missing: Units) -> int:
    ends = shelf.ends()
    return 0 if ends is None else useful(ends[0], missing)


@dataclass(slots=True)
class Shelves:
    """Candidates by pool; one that holds units of several pools is found under each of them."""

    steps: dict[str, Steps] = field(default_factory=dict)
    kinds: dict[str, dict[Kind, Shelf]] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Shelves:
        """Shelves with these candidates; those that come first are found first."""
        shelves = cls()
        for candidate in candidates:
            kind = candidate.kind
            for pool, count in candidate.units.items():
                shelves.steps.setdefault(pool, Steps()).add(candidate.standing, count)
                shelves.kinds.setdefault(pool, {}).setdefault(kind, Shelf()).add(candidate, count)
        return shelves

    def drop(self, candidate: Candidate) -> None:
        """Remove a candidate."""
        for pool, count in candidate.units.items():
            self.steps[pool].add(candidate.standing, -count)
            self.kinds[pool][candidate.kind].drop(candidate, count)

    def reach(self, newcomer: Newcomer) -> Reach | None:
        """Where the newcomer finds all that it lacks; None where all that it may have is not enough."""
        missing = newcomer.missing
        cutoff = self._cutoff(missing)
        if cutoff is None:
            return None
        if newcomer.permits is None:
            shelves = [shelf for pool in missing for shelf in self.kinds[pool].values()]
            return Reach(cutoff, [(shelf, cutoff) for shelf in shelves]) if cutoff < newcomer.standing else None
        return self._among(newcomer, newcomer.permits, ()) or self._after_its_own(newcomer, newcomer.permits)

    def _among(self, newcomer: Newcomer, permits: Permits, taken: Sequence[Job]) -> Reach | None:
        """What the newcomer can reach once these are taken."""
        missing = newcomer.missing
        parts = {pool: list(self._permitted(pool, newcomer, permits, taken)) for pool in missing}
        reached = [self._reaching(pool, count, parts[pool]) for pool, count in missing.items()]
        found = [cutoff for cutoff in reached if cutoff is not None]
        return Reach(max(found), [part for pool in missing for part in parts[pool]]) if found == reached else None

    def _after_its_own(self, newcomer: Newcomer, permits: Permits) -> Reach | None:
        """The same with those of its own share taken first, where they alone are not enough.

        That brings the share down to its own, which may entitle it to take the rest from others (Kueue #14122).
        """
        limit = below(newcomer.standing)
        own = {
            pool: [shelf for kind, shelf in self.kinds[pool].items() if kind[0] == newcomer.share]
            for pool in newcomer.missing
        }
        if all(sum(s.steps.up_to(limit) for s in own[pool]) >= count for pool, count in newcomer.missing.items()):
            return None
        jobs = {c.job.name: c.job for shelves in own.values() for shelf in shelves for c in shelf.up_to(limit)}
        return self._among(newcomer, permits, list(jobs.values())) if jobs else None

    def _cutoff(self, missing: Units) -> Standing | None:
        """The lowest standing up to which all candidates together free `missing`; None where not even all do."""
        cutoff: Standing = ()
        for pool, count in missing.items():
            reached = self.steps[pool].reaching(count) if pool in self.steps else None
            if reached is None:
                return None
            cutoff = max(cutoff, reached)
        return cutoff

    def _permitted(
        self, pool: str, newcomer: Newcomer, permits: Permits, taken: Sequence[Job]
    ) -> Iterator[tuple[Shelf, Standing]]:
        """The shelves of a pool on which there is anybody whom the newcomer may have, each with the limit of that.

        As a rule one or two of each kind are asked about. Within the newcomer's own share it is the standing that
        decides; another share of which some are permitted and some are not is gone through.
        """
        for kind, shelf in self.kinds[pool].items():
            own = kind[0] == newcomer.share
            before = () if own else taken
            ends = shelf.ends(own=own)
            if ends is None or not permits(ends[0].job, before):
                continue
            if permits(ends[1].job, before):
                yield shelf, shelf.steps.standings[-1]
            elif own:
                yield shelf, below(newcomer.standing)
            else:
                some = Shelf()
                for candidate in shelf.up_to(None):
                    if permits(candidate.job, before):
                        some.add(candidate, candidate.units[pool])
                yield some, some.steps.standings[-1]

    def _reaching(self, pool: str, count: int, parts: Sequence[tuple[Shelf, Standing]]) -> Standing | None:
        standings = self.steps[pool].standings

        def held(cutoff: Standing) -> int:
            return sum(shelf.steps.up_to(min(cutoff, limit)) for shelf, limit in parts)

        index = bisect_left(standings, count, key=held)
        return standings[index] if index < len(standings) else None


def below(standing: Standing) -> Standing:
    """The standing next below."""
    return (*standing[:-1], standing[-1] - 1)
