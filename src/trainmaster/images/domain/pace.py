"""How long an image job is at work: by the tiles that each of its requests shows, and by the regions that are done.

Jobs of an endpoint differ in size more than in pace, so what is learned of them is the time of a turn: of one tile at
each of the requests that the job makes at once. It must not read a clock, nor know what has been learned.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Protocol

TURN_TAKES = 1.0
"""Seconds of a turn where nothing is known: half of all jobs are taken to be quicker."""
BESIDES = 10
"""Turns that beginning, cutting and merging are taken to last."""
STANDARD = 1_000
"""Turns of the job whose run time is remembered instead of each job's own."""
_SPREAD = NormalDist()
"""Of the logarithm: two jobs in three take between a third and three times as long as usual."""
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
    """How many tiles each request shows, one after another, and what comes before and after; more than 0.

    Args:
        work: the job's.
        given: requests that it makes at once, as far as its load wants them; 0 where it may make all.
    """
    at_once = min(given or work.load, work.load)
    return work.tiles / max(at_once, 1) + BESIDES


def unknown(count: float, elapsed: float, quantile: float) -> float:
    """Seconds that a job of so many turns will have taken in all, where nothing has been learned of any.

    Args:
        count: see `turns`.
        elapsed: seconds that it has been at work already.
        quantile: in this fraction of cases it takes no longer.
    """
    usual = math.log(TURN_TAKES * count)
    past = _SPREAD.cdf(math.log(elapsed) - usual) if elapsed > 0 else 0.0
    at = past + quantile * (1 - past)
    # Beyond all that is likely the distribution has no more to say than that it goes on.
    return 2 * elapsed if at > _SURE else math.exp(usual + _SPREAD.inv_cdf(at))


def seconds_left(work: Paced, given: int, so_far: float, quantile: float) -> float | None:
    """Seconds that a job at work still needs, by the regions that are done; None where none is.

    Regions under way count as half done. The more are done, the surer the answer.

    Args:
        work: the job's, as last told.
        given: requests that it was given at first.
        so_far: seconds that it has been at work.
        quantile: in this fraction of cases it takes no longer.
    """
    settled = work.done + work.failed
    if not settled or so_far <= 0:
        return None
    half = min(given or work.load, work.left) / 2
    done = work.load - work.left + half
    spread = math.exp(_SPREAD.inv_cdf(quantile) / math.sqrt(1 + settled))
    return so_far * (work.left - half) / done * spread if done > 0 else None
