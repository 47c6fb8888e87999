"""The search for those who step aside: candidates by pool and standing, and the cheapest set that frees enough.

It must not know rules: who is a candidate, since when and at what cost is for `preempt.py` to say.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate

from trainmaster.domain.capacity import Units
from trainmaster.domain.job import Job

Standing = tuple[int, ...]
"""(priority,) or (priority, -level), compared from the left; more is better."""
Permits = Callable[[Job, Sequence[Job]], bool]
"""Whether a victim may be taken, given those taken before it. It may look at a victim's share, units and standing."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A job that may step aside, now or from `until` on; `cost` in GPU-seconds."""

    job: Job
    units: Units
    standing: Standing
    cost: float
    until: datetime | None


@dataclass(slots=True)
class Shelf:
    """The candidates of one pool: by standing, then by what they hold, the cheapest first."""

    pool: str
    levels: dict[Standing, dict[tuple[tuple[str, int], ...], list[Candidate]]] = field(default_factory=dict)
    totals: dict[Standing, int] = field(default_factory=dict)
    standings: list[Standing] = field(default_factory=list)
    _sums: list[int] | None = None

    def put(self, candidate: Candidate) -> None:
        """Add a candidate; they come cheapest first."""
        standing = candidate.standing
        if standing not in self.levels:
            self.levels[standing], self.totals[standing] = {}, 0
            insort(self.standings, standing)
        shape = tuple(sorted(candidate.units.items()))
        self.levels[standing].setdefault(shape, []).append(candidate)
        self.totals[standing] += candidate.units[self.pool]
        self._sums = None

    def drop(self, candidate: Candidate) -> None:
        """Remove a candidate."""
        shape = tuple(sorted(candidate.units.items()))
        self.levels[candidate.standing][shape].remove(candidate)
        self.totals[candidate.standing] -= candidate.units[self.pool]
        self._sums = None

    def reaching(self, count: int) -> Standing | None:
        """The lowest standing up to which the candidates together hold this many units; None where all do not."""
        if self._sums is None:
            self._sums = list(accumulate(self.totals[standing] for standing in self.standings))
        index = bisect_left(self._sums, count)
        return self.standings[index] if index < len(self._sums) else None

    def up_to(self, cutoff: Standing) -> Iterator[list[Candidate]]:
        """Candidates of a standing of at most this, in lists of those that hold the same, cheapest first."""
        for standing in self.standings:
            if standing > cutoff:
                return
            yield from self.levels[standing].values()


def cutoff_of(shelves: Mapping[str, Shelf], missing: Units) -> Standing | None:
    """The lowest standing up to which all candidates together free `missing`."""
    cutoff: Standing = ()
    for pool, count in missing.items():
        reached = shelves[pool].reaching(count) if pool in shelves else None
        if reached is None:
            return None
        cutoff = max(cutoff, reached)
    return cutoff


def relevant(shelves: Mapping[str, Shelf], missing: Units, cutoff: Standing) -> list[Candidate]:
    """The candidates within the cutoff that a cheapest set may need, by name: of those alike only the cheapest."""
    found: dict[str, Candidate] = {}
    for pool in missing:
        for alike in shelves[pool].up_to(cutoff):
            if alike:
                found.update((c.job.name, c) for c in alike[: _useful(alike[0], missing)])
    counts: dict[tuple[int, ...], int] = {}
    kept = []
    for candidate in sorted(found.values(), key=lambda c: (c.cost, c.job.name)):
        frees = tuple(min(candidate.units.get(pool, 0), count) for pool, count in missing.items())
        counts[frees] = counts.get(frees, 0) + 1
        if counts[frees] <= _useful(candidate, missing):
            kept.append(candidate)
    return sorted(kept, key=lambda c: c.job.name)


def _useful(candidate: Candidate, missing: Units) -> int:
    """How many candidates that hold the same could be of use."""
    return max(-(-count // candidate.units[pool]) for pool, count in missing.items() if pool in candidate.units)


def cheapest(items: Sequence[Candidate], missing: Units) -> list[Candidate]:
    """The set of least cost that frees `missing`; among equals the smallest, then the first by name.

    Dynamic programming over what is still missing. Empty where all together do not suffice.
    """
    State = tuple[int, ...]  # noqa: N806 -- a type
    pools = sorted(missing)
    done: State = (0,) * len(pools)
    best: dict[State, tuple[float, int, tuple[int, ...]]] = {tuple(missing[p] for p in pools): (0.0, 0, ())}
    for rank, item in enumerate(items):
        frees = tuple(item.units.get(pool, 0) for pool in pools)
        for left, (cost, count, taken) in list(best.items()):
            after = tuple(max(a - b, 0) for a, b in zip(left, frees, strict=True))
            if after == left:
                continue
            new = (cost + item.cost, count + 1, (*taken, rank))
            if after not in best or new < best[after]:
                best[after] = new
    return [items[rank] for rank in best[done][2]] if done in best else []


def thrifty(items: Sequence[Candidate], missing: Units) -> list[Candidate]:
    """A set that frees `missing` at little cost: cheapest first by the unit, then the needless are spared."""

    def by_the_unit(candidate: Candidate) -> tuple[float, str]:
        return candidate.cost / sum(candidate.units.get(pool, 0) for pool in missing), candidate.job.name

    taken = _enough(sorted(items, key=by_the_unit), missing, lambda victim, taken: True)  # noqa: ARG005
    return _spared(sorted(taken, key=lambda c: (c.cost, c.job.name)), missing)


def in_turn(shelves: Mapping[str, Shelf], missing: Units, permits: Permits) -> list[Candidate]:
    """The first permitted ones by standing, then cost, then name, that free `missing`; empty where all do not."""
    if cutoff_of(shelves, missing) is None:
        return []
    found = {
        c.job.name: c for pool in missing for level in shelves[pool].levels.values() for s in level.values() for c in s
    }
    return _enough(sorted(found.values(), key=lambda c: (c.standing, c.cost, c.job.name)), missing, permits)


def _enough(ordered: Iterable[Candidate], missing: Units, permits: Permits) -> list[Candidate]:
    left = dict(missing)
    taken: list[Candidate] = []
    jobs: list[Job] = []
    for candidate in ordered:
        helps = any(left.get(pool, 0) > 0 for pool in candidate.units)
        if helps and permits(candidate.job, jobs):
            taken.append(candidate)
            jobs.append(candidate.job)
            for pool in left:
                left[pool] -= candidate.units.get(pool, 0)
            if all(count <= 0 for count in left.values()):
                return taken
    return []


def _spared(taken: Sequence[Candidate], missing: Units) -> list[Candidate]:
    """Walk a set from its end and spare each one that is not needed."""
    spare = {pool: sum(c.units.get(pool, 0) for c in taken) - count for pool, count in missing.items()}
    kept: list[Candidate] = []
    for candidate in reversed(taken):
        if all(candidate.units.get(pool, 0) <= left for pool, left in spare.items()):
            for pool in spare:
                spare[pool] -= candidate.units.get(pool, 0)
        else:
            kept.append(candidate)
    return kept[::-1]


def irreducible(taken: list[Candidate], missing: Units, permits: Permits) -> list[Candidate]:
    """The set without needless ones, as far as what remains is permitted; else as it was."""
    kept = _spared(taken, missing)
    return kept if _legal(kept, permits) else taken


def _legal(taken: Sequence[Candidate], permits: Permits) -> bool:
    return all(permits(c.job, [before.job for before in taken[:i]]) for i, c in enumerate(taken))
