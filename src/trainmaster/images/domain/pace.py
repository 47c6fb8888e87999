"""Run times of image jobs, from the tiles per request and from completed regions.

Jobs of an endpoint differ in size more than in pace. So the unit is a turn: one tile at each of the requests that the
job makes at once.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Protocol

TURN_TAKES = 1.0
"""Seconds of a turn without history: the assumed median."""
BESIDES = 10
"""Assumed turns for startup, tiling and merging."""
STANDARD = 1_000
"""Turns of the standard job, to which recorded run times are scaled."""
_SPREAD = NormalDist()
"""Of the logarithm: two jobs in three take between a third and three times the usual time."""
_SURE = 1 - 1e-9


class Paced(Protocol):
    """The members of `ImageWork` that its pace depends on."""

    @property
    def tiles(self) -> int: ...  # noqa: D102 - see `ImageWork`
    @property
    def load(self) -> int: ...  # noqa: D102
    @property
    def left(self) -> int: ...  # noqa: D102
    @property
    def done(self) -> int: ...  # noqa: D102
    @property
    def failed(self) -> int: ...  # noqa: D102


def turns(work: Paced, given: int) -> float:
    """Return the tiles that each request processes in turn, plus the overhead; more than 0.

    Args:
        work: the job's.
        given: requests that it makes at once, up to its load; 0 for all.
    """
    at_once = min(given or work.load, work.load)
    return work.tiles / max(at_once, 1) + BESIDES


def unknown(count: float, elapsed: float, quantile: float) -> float:
    """Return the total seconds of a job of so many turns, without any history.

    Args:
        count: see `turns`.
        elapsed: seconds of work so far.
        quantile: fraction of cases in which the job takes no longer.
    """
    usual = math.log(TURN_TAKES * count)
    past = _SPREAD.cdf(math.log(elapsed) - usual) if elapsed > 0 else 0.0
    at = past + quantile * (1 - past)
    # Beyond this quantile the distribution carries no information except that the job goes on.
    return 2 * elapsed if at > _SURE else math.exp(usual + _SPREAD.inv_cdf(at))


def seconds_left(work: Paced, given: int, so_far: float, quantile: float) -> float | None:
    """Return the seconds that a running job still needs, from its completed regions; None if there are none.

    Regions at work count as half done. The more regions are done, the narrower the distribution.

    Args:
        work: the job's, as last reported.
        given: requests at the beginning of the attempt.
        so_far: seconds of work so far.
        quantile: fraction of cases in which the job needs no longer.
    """
    settled = work.done + work.failed
    if not settled or so_far <= 0:
        return None
    half = min(given or work.load, work.left) / 2
    done = work.load - work.left + half
    spread = math.exp(_SPREAD.inv_cdf(quantile) / math.sqrt(1 + settled))
    return so_far * (work.left - half) / done * spread if done > 0 else None
