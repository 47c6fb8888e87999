"""Divides idle instances among elastic jobs of which some are known to scale worse than linearly.

Each next instance goes where it brings most, so a job that would hardly get faster leaves instances to others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class Grower:
    """A job that could have more instances.

    Attributes:
        name: the job.
        pool: the pool of its instances.
        turn: jobs with a smaller turn get all that they gain by before others.
        sizes: its size now, then larger legal sizes that it may have, ascending.
        value: returns what a size is worth; larger differences of it get instances first.
    """

    name: str
    pool: str
    turn: int
    sizes: tuple[int, ...]
    value: Callable[[int], float]


def divide(growers: Iterable[Grower], idle: Mapping[str, int]) -> dict[str, int]:
    """Return the size that each job is to have; no pool gives more than its idle instances."""
    known = {grower.name: grower for grower in growers}
    sizes, left = {name: grower.sizes[0] for name, grower in known.items()}, dict(idle)
    steps = [step for grower in known.values() if (step := _step(grower, 1)) is not None]
    heapify(steps)
    while steps:
        _, _, name, place = heappop(steps)
        grower = known[name]
        more = grower.sizes[place] - grower.sizes[place - 1]
        if more > left.get(grower.pool, 0):
            continue
        left[grower.pool] -= more
        sizes[name] = grower.sizes[place]
        if (step := _step(grower, place + 1)) is not None:
            heappush(steps, step)
    return sizes


def _step(grower: Grower, place: int) -> tuple[int, float, str, int] | None:
    """Return the step to the size at a place, the best first; None if there is none, or it brings nothing."""
    if place >= len(grower.sizes):
        return None
    before, after = grower.sizes[place - 1 : place + 1]
    brings = (grower.value(after) - grower.value(before)) / (after - before)
    return (grower.turn, -brings, grower.name, place) if brings > 0 else None
