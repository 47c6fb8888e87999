"""Capacity in units: what pools have and what jobs ask of them.

A unit is one instance. It must not know jobs, states or AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Units = Mapping[str, int]
"""Instances by pool name."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Named capacity of one kind with a cap.

    Attributes:
        name: what jobs and people call it; for a pool of one instance type, that type.
        cap: most instances that jobs may hold at once.
        count_foreign: whether training jobs that did not come from the queue count against the cap.
    """

    name: str
    cap: int
    count_foreign: bool = False

    @property
    def instance_type(self) -> str:
        """The ML instance type that the pool's units are of."""
        return self.name


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job asks of pools: any one of the alternatives, and all units of that one together.

    A plain job and one with `InstanceGroups` have one alternative; `InstancePreferences` give one per entry, in
    the caller's order.
    """

    alternatives: tuple[Units, ...]

    @property
    def pools(self) -> tuple[str, ...]:
        """Every pool that the job could take units from, sorted."""
        return tuple(sorted({name for units in self.alternatives for name in units}))

    @property
    def lane(self) -> str:
        """The part of a lane's name that says which pools its jobs can run in."""
        return "|".join(",".join(sorted(units)) for units in self.alternatives)


def total(parts: Iterable[Units]) -> dict[str, int]:
    """Sum of units, pool by pool."""
    result: dict[str, int] = {}
    for units in parts:
        for name, count in units.items():
            result[name] = result.get(name, 0) + count
    return result


def covers(available: Units, asked: Units) -> bool:
    """Whether every pool of `asked` has at least that many units in `available`."""
    return all(available.get(name, 0) >= count for name, count in asked.items())


def worst_case(alternatives: Iterable[Units]) -> dict[str, int]:
    """What alternatives may take before SageMaker has chosen one of them: the most of each pool.

    SageMaker checks the quota of every listed type and chooses later (SageMaker developer guide, "instance
    preferences"), so until then a cap must carry them all.
    """
    result: dict[str, int] = {}
    for units in alternatives:
        for name, count in units.items():
            result[name] = max(result.get(name, 0), count)
    return result


def foreign_units(known: Mapping[str, Units], pools: Mapping[str, Pool]) -> dict[str, int]:
    """What training jobs from outside the queue (units by job name) hold in the pools that count them."""
    held = total(known.values())
    return {name: count for name, count in held.items() if name in pools and pools[name].count_foreign}
