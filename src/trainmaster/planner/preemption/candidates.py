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
from trainmaster.planner.orders.rank import PreemptionRank

Permits = Callable[[Job, Sequence[Job]], bool]
"""Whether a victim may be taken, given those taken before it. It may hang on anything, but:

the more of other shares are taken, the fewer are permitted, and the more of the newcomer's own, the more. Within the
newcomer's share it permits a lower standing wherever it permits a better one; of another share's jobs that hold the
same units, the one of lower priority, then the newer one, wherever it permits the other.
"""
Kind = tuple[str, tuple[tuple[str, int], ...]]
"""A share, and the units that jobs of it hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A job that may step aside, now or from `until` on; `cost` in GPU-seconds."""

    job: Job
    units: Units
    standing: PreemptionRank
    cost: float
    until: datetime | None = None

    @property
    def order(self) -> tuple[PreemptionRank, float, str]:
        """The order in which candidates are asked for and listed; total, since the name is in it."""
        return self.standing, self.cost, self.job.name

    @property
    def kind(self) -> Kind:
        """Candidates of one kind and standing differ in cost only."""
        return self.job.share, tuple(sorted(self.units.items()) if len(self.units) > 1 else self.units.items())


def useful(candidate: Candidate, missing: Units) -> int:
    """How many candidates that hold the same units could be of use together."""
    return max(-(-count // candidate.units[pool]) for pool, count in missing.items() if pool in candidate.units)


@dataclass(slots=True)
class CumulativeUnits:
    """How many units are held up to each standing."""

    totals: dict[PreemptionRank, int] = field(default_factory=dict)
    _standings: list[PreemptionRank] = field(default_factory=list)
    _sums: list[int] | None = None

    def add(self, standing: PreemptionRank, count: int) -> None:
        """That many more (or fewer) units at a standing."""
        if standing not in self.totals:
            self.totals[standing] = 0
            self._standings.append(standing)
        self.totals[standing] += count
        self._sums = None

    def up_to(self, standing: PreemptionRank) -> int:
        """Units at this standing and below."""
        index = bisect_right(self.standings, standing)
        return self._settled()[index - 1] if index else 0

    def reaching(self, count: int) -> PreemptionRank | None:
        """The lowest standing up to which there are this many units; None where all are fewer."""
        index = bisect_left(self._settled(), count)
        return self._standings[index] if index < len(self._standings) else None

    @property
    def standings(self) -> list[PreemptionRank]:
        """All standings, lowest first."""
        self._settled()
        return self._standings

    def _settled(self) -> list[int]:
        if self._sums is None:
            self._standings.sort()
            self._sums = list(accumulate(self.totals[standing] for standing in self._standings))
        return self._sums


@dataclass(slots=True)
class CandidateBucket:
    """The candidates of one pool and one kind, by standing; at each standing in the order in which they came."""

    steps: CumulativeUnits = field(default_factory=CumulativeUnits)
    levels: dict[PreemptionRank, list[Candidate]] = field(default_factory=dict)
    _weakest: list[Candidate] | None = None

    @classmethod
    def of(cls, candidates: Iterable[Candidate], pool: str) -> CandidateBucket:
        """A shelf of a pool with these, the cheapest in front."""
        shelf = cls()
        for candidate in sorted(candidates, key=lambda c: c.order):
            shelf.add(candidate, candidate.units[pool])
        return shelf

    def add(self, candidate: Candidate, count: int) -> None:
        """Put a candidate behind those of its standing."""
        self.steps.add(candidate.standing, count)
        self.levels.setdefault(candidate.standing, []).append(candidate)
        self._weakest = None

    def drop(self, candidate: Candidate, count: int) -> None:
        """Take a candidate away."""
        self.steps.add(candidate.standing, -count)
        self.levels[candidate.standing].remove(candidate)
        self._weakest = None

    def by_standing(self) -> tuple[Candidate, Candidate] | None:
        """One of the lowest and one of the best standing; None where nobody is left."""
        standings = [standing for standing in self.steps.standings if self.levels[standing]]
        return (self.levels[standings[0]][0], self.levels[standings[-1]][0]) if standings else None

    def by_weakness(self) -> list[Candidate]:
        """All of them, in the order in which another share would be permitted to take them."""
        if self._weakest is None:
            self._weakest = sorted(self.up_to(None), key=weakness, reverse=True)
        return self._weakest

    def up_to(self, limit: PreemptionRank | None) -> list[Candidate]:
        """All candidates of a standing of at most this."""
        standings = self.steps.standings
        end = len(standings) if limit is None else bisect_right(standings, limit)
        return [candidate for standing in standings[:end] for candidate in self.levels[standing]]

    def few(self, limit: PreemptionRank, count: int, *, weakest: bool = False) -> Iterator[Candidate]:
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
