"""The jobs that may step aside, put where they are found fast: by pool, by kind, by standing.

It must not know the rules or choose: who is a candidate is for `preempt.py` to say, who of them goes for `victims.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from itertools import accumulate

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job

Standing = tuple[int, ...]
"""(priority,) or (priority, -level), compared from the left; more is better."""
Permits = Callable[[Job, Sequence[Job]], bool]
"""Whether a victim may be taken, given those taken before it. It may hang on anything, but:

the more are taken, the fewer are permitted; of the jobs of one share that hold the same units, it permits the one
of lower priority, then the newer one, wherever it permits the other; and a lower standing where a better one.
"""
Kind = tuple[str, tuple[tuple[str, int], ...]]
"""A share, and the units that jobs of it hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A job that may step aside, now or from `until` on; `cost` in GPU-seconds."""

    job: Job
    units: Units
    standing: Standing
    cost: float
    until: datetime | None = None

    @property
    def order(self) -> tuple[Standing, float, str]:
        """The order in which candidates are asked for and listed; total, since the name is in it."""
        return self.standing, self.cost, self.job.name

    @property
    def kind(self) -> Kind:
        """Candidates of one kind and standing differ in cost only."""
        return self.job.share, tuple(sorted(self.units.items()))


def useful(candidate: Candidate, missing: Units) -> int:
    """How many candidates that hold the same units could be of use together."""
    return max(-(-count // candidate.units[pool]) for pool, count in missing.items() if pool in candidate.units)


@dataclass(slots=True)
class Steps:
    """How many units are held up to each standing."""

    totals: dict[Standing, int] = field(default_factory=dict)
    _standings: list[Standing] = field(default_factory=list)
    _sums: list[int] | None = None

    def add(self, standing: Standing, count: int) -> None:
        """That many more (or fewer) units at a standing."""
        if standing not in self.totals:
            self.totals[standing] = 0
            self._standings.append(standing)
        self.totals[standing] += count
        self._sums = None

    def up_to(self, standing: Standing) -> int:
        """Units at this standing and below."""
        index = bisect_right(self.standings, standing)
        return self._settled()[index - 1] if index else 0

    def reaching(self, count: int) -> Standing | None:
        """The lowest standing up to which there are this many units; None where all are fewer."""
        index = bisect_left(self._settled(), count)
        return self._standings[index] if index < len(self._standings) else None

    @property
    def standings(self) -> list[Standing]:
        """All standings, lowest first."""
        self._settled()
        return self._standings

    def _settled(self) -> list[int]:
        if self._sums is None:
            self._standings.sort()
            self._sums = list(accumulate(self.totals[standing] for standing in self._standings))
        return self._sums


@dataclass(slots=True)
class Shelf:
    """The candidates of one pool and one kind, by standing; at each standing in the order in which they came."""

    steps: Steps = field(default_factory=Steps)
    levels: dict[Standing, list[Candidate]] = field(default_factory=dict)
    _ends: tuple[Candidate, Candidate] | None = None

    def add(self, candidate: Candidate, count: int) -> None:
        """Put a candidate behind those of its standing."""
        self.steps.add(candidate.standing, count)
        self.levels.setdefault(candidate.standing, []).append(candidate)
        self._ends = None

    def drop(self, candidate: Candidate, count: int) -> None:
        """Take a candidate away."""
        self.steps.add(candidate.standing, -count)
        self.levels[candidate.standing].remove(candidate)
        self._ends = None

    def ends(self) -> tuple[Candidate, Candidate] | None:
        """Whom anybody would be permitted to take first, and whom last; None where nobody is left."""
        if self._ends is None and (every := self.up_to(None)):
            self._ends = max(every, key=weakness), min(every, key=weakness)
        return self._ends

    def up_to(self, limit: Standing | None) -> list[Candidate]:
        """All candidates of a standing of at most this."""
        standings = self.steps.standings
        end = len(standings) if limit is None else bisect_right(standings, limit)
        return [candidate for standing in standings[:end] for candidate in self.levels[standing]]

    def few(self, limit: Standing, count: int, *, weakest: bool = False) -> Iterator[Candidate]:
        """The first few of each standing up to a limit; and, if wanted, the weakest few."""
        for standing in self.steps.standings:
            if standing > limit:
                return
            level = self.levels[standing]
            yield from level[:count]
            if weakest and len(level) > count:
                yield from nlargest(count, level, key=weakness)


def weakness(candidate: Candidate) -> tuple[int, datetime, str]:
    """The higher, the sooner a job is permitted to be taken from its share: low priority, then late start."""
    attempt = candidate.job.attempt
    since = candidate.job.entry_time if attempt is None else attempt.created_at
    return -candidate.job.priority, since, candidate.job.name


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
        parts = {pool: list(self._permitted(pool, newcomer, newcomer.permits)) for pool in missing}
        reached = [self._reaching(pool, count, parts[pool]) for pool, count in missing.items()]
        found = [cutoff for cutoff in reached if cutoff is not None]
        return Reach(max(found), [part for pool in missing for part in parts[pool]]) if found == reached else None

    def _cutoff(self, missing: Units) -> Standing | None:
        """The lowest standing up to which all candidates together free `missing`; None where not even all do."""
        cutoff: Standing = ()
        for pool, count in missing.items():
            reached = self.steps[pool].reaching(count) if pool in self.steps else None
            if reached is None:
                return None
            cutoff = max(cutoff, reached)
        return cutoff

    def _permitted(self, pool: str, newcomer: Newcomer, permits: Permits) -> Iterator[tuple[Shelf, Standing]]:
        """The shelves of a pool on which there is anybody whom the newcomer may have, each with the limit of that.

        As a rule one or two of each kind are asked about. A share of which some are permitted and some are not is
        gone through; within the newcomer's own share it is the standing that decides.
        """
        for kind, shelf in self.kinds[pool].items():
            ends = shelf.ends()
            if ends is None or not permits(ends[0].job, ()):
                continue
            if permits(ends[1].job, ()):
                yield shelf, shelf.steps.standings[-1]
            elif kind[0] == newcomer.share:
                yield shelf, below(newcomer.standing)
            else:
                some = Shelf()
                for candidate in shelf.up_to(None):
                    if permits(candidate.job, ()):
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
