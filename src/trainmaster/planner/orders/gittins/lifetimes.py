"""The Gittins index and the mean residual life of run times that a histogram describes.

Jobs that still run, or were put aside, count as at risk up to the age that they have reached (Kaplan and Meier, 1958).

Sources: Gittins, 1979; Aalto, Ayesta and Righter, "On the Gittins index in the M/G/1 queue", 2009.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

FLOOR = 60.0
"""Seconds added to twice the age where nothing is known, so that new jobs have an index as well."""
_RARE = 1e-4
"""Fraction of survivors below which nothing is known."""


def unknown(age: float) -> float:
    """Return the index and the residual life beyond all data: twice the age, as for a Pareto tail of shape 1."""
    return 2 * age + FLOOR


def survival(ends: Sequence[float], unfinished: Sequence[float]) -> list[float]:
    """Return the part of jobs that outlives the lower edge of each bucket, and the last upper edge.

    Kaplan and Meier's estimate for grouped times: an unfinished job is at risk in all buckets below its own, and for
    half of its own.

    Args:
        ends: weights of run times that have ended, by bucket.
        unfinished: number of jobs that have reached the bucket and not ended, by bucket.
    """
    at_risk, later = [0.0] * len(ends), 0.0
    for bucket in range(len(ends) - 1, -1, -1):
        at_risk[bucket] = later + ends[bucket] + 0.5 * unfinished[bucket]
        later += ends[bucket] + unfinished[bucket]
    alive = [1.0]
    for ended, risk in zip(ends, at_risk, strict=True):
        alive.append(alive[-1] * (1 - min(ended / risk, 1.0)) if risk > 0 else alive[-1])
    return alive


@dataclass(slots=True)
class Lifetimes:
    """A distribution of run times over buckets.

    Attributes:
        edges: of the buckets in seconds, ascending; one more than there are buckets.
        alive: the part that outlives each edge, from 1 down.
    """

    edges: Sequence[float]
    alive: Sequence[float]
    _known: int = field(init=False)
    _at: dict[int, tuple[float, float]] = field(default_factory=dict)
    _between: dict[int, tuple[float, float, float, float, float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        falls = (place for place in range(len(self.alive) - 1, 0, -1) if self.alive[place] < self.alive[place - 1])
        self._known = next(falls, 0)

    def index(self, age: float) -> float:
        """Return the Gittins index in seconds: the lower, the sooner a job of this age should run.

        It is the least ratio, over all edges e beyond the age a, of the time to be spent, E[min(S, e) - a | S > a], to
        the chance to end by then, P(S <= e | S > a).
        """
        return self.expected(age)[0]

    def residual(self, age: float) -> float:
        """Return the mean residual life in seconds, E[S - a | S > a]."""
        return self.expected(age)[1]

    def expected(self, age: float) -> tuple[float, float]:
        """Return the index and the residual life, linear between the edges around the age."""
        below = bisect_right(self.edges, age) - 1
        edge, width, index, more_index, residual, more_residual = self._between.get(below) or self._line(below)
        part = (age - edge) / width
        if not 0.0 <= part <= 1.0:
            part = 0.0 if part < 0 else 1.0
        return index + part * more_index, residual + part * more_residual

    def _line(self, place: int) -> tuple[float, float, float, float, float, float]:
        """Return an edge, the distance to the next, and of both figures the value there and the difference."""
        below, edges = min(place, len(self.edges) - 2), self.edges
        low, high = self._at_edge(below), self._at_edge(below + 1)
        width = edges[below + 1] - edges[below]
        found = (edges[below], width, low[0], high[0] - low[0], low[1], high[1] - low[1])
        self._between[place] = found
        return found

    def _at_edge(self, place: int) -> tuple[float, float]:
        found = self._at.get(place)
        if found is None:
            found = self._at[place] = self._computed(place)
        return found

    def _computed(self, place: int) -> tuple[float, float]:
        edges, alive = self.edges, self.alive
        age, left = edges[place], alive[place]
        if place >= self._known or left < _RARE:
            return unknown(age), unknown(age)
        spent, before, beyond, ratios = 0.0, left, slice(place + 1, self._known + 1), list[float]()
        for lower, upper, after in zip(edges[place : self._known], edges[beyond], alive[beyond], strict=True):
            spent += (before - after) * (0.5 * (lower + upper) - age)
            if after < left:
                ratios.append((spent + after * (upper - age)) / (left - after))
            before = after
        # Those that outlive all data are expected to live as long again.
        return min(ratios), (spent + before * (2 * edges[self._known] - age)) / left
