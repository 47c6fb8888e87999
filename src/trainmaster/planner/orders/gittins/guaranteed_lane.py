"""The guaranteed lane: a part of the pools for the wide jobs that have waited longest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

WIDE = 8
"""Accelerators of the narrowest wide job: a whole machine of the largest types."""


class LaneCandidate(NamedTuple):
    """A job; sorted in the order in which jobs get into the lane.

    Attributes:
        priority_down: minus its priority.
        waited_down: minus the seconds that it has waited.
        name: of the job.
        width: its accelerators.
    """

    priority_down: int
    waited_down: float
    name: str
    width: int


def guaranteed(jobs: Iterable[LaneCandidate], room: float) -> Iterator[str]:
    """Yield the names of the wide jobs in the lane: the first one, however wide, and those after it that fit.

    Args:
        jobs: of one group of pools.
        room: accelerators of the lane.
    """
    wide = sorted(job for job in jobs if job.width >= WIDE)
    for place, job in enumerate(wide):
        if not place or job.width <= room:
            room -= job.width
            yield job.name
