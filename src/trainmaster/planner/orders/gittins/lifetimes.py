"""The Gittins index and the mean residual life of run times that a histogram describes.

Sources: Gittins, 1979; Aalto, Ayesta and Righter, "On the Gittins index in the M/G/1 queue", 2009; Andrew, "Another
efficient algorithm for convex hulls in two dimensions", 1979.
"""

from __future__ import annotations

import math
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


@dataclass(slots=True)
class Lifetimes:
    """A distribution of run times over buckets.

    Attributes:
        edges: of the buckets in seconds, ascending; one more than there are buckets.
        alive: the part that outlives each edge, from 1 down.
    """

    edges: Sequence[float]
    alive: Sequence[float]
    _at_edges: dict[int, tuple[float, float]] = field(init=False)
    _between: dict[int, tuple[float, float, float, float, float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._at_edges = _expected_at_edges(self.edges, self.alive)

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
        below = min(place, len(self.edges) - 2)
        edge, width = self.edges[below], self.edges[below + 1] - self.edges[below]
        low, high = self._at(below), self._at(below + 1)
        found = (edge, width, low[0], high[0] - low[0], low[1], high[1] - low[1])
        self._between[place] = found
        return found

    def _at(self, place: int) -> tuple[float, float]:
        """Return the index and the residual life at an edge."""
        return self._at_edges.get(place) or (unknown(self.edges[place]), unknown(self.edges[place]))


def _expected_at_edges(edges: Sequence[float], alive: Sequence[float]) -> dict[int, tuple[float, float]]:
    """Return the index and the residual life at each edge about which something is known, by its place.

    Draw each edge e as a point: the part of all jobs that has ended by then, and the time spent by then, E[min(S, e)].
    The ratio of which the index is the least is the slope from one point to a later one. So the index is the slope to
    the next corner of the lower convex hull of the later points, which is built from the last to the first (Andrew,
    1979).
    """
    found: dict[int, tuple[float, float]] = {}
    last = next((place for place in range(len(alive) - 1, 0, -1) if alive[place] < alive[place - 1]), 0)
    # Those that outlive all data are expected to live as long again.
    beyond, ending = 2 * alive[last] * edges[last], 0.0
    # Of each corner: the part that outlives it, the time spent by then up to a constant, and the slope to the next one.
    hull = [(alive[last], alive[last] * edges[last], math.inf)]
    for place in range(last - 1, -1, -1):
        age, left = edges[place], alive[place]
        ending += (left - alive[place + 1]) * 0.5 * (age + edges[place + 1])
        spent = left * age - ending
        while True:
            fewer, longer, slope = hull[-1]
            index = (longer - spent) / (left - fewer) if left > fewer else math.inf
            if index < slope:
                break
            hull.pop()
        hull.append((left, spent, index))
        if left >= _RARE:
            found[place] = (index, (ending + beyond) / left - age)
    return found
