"""Training jobs that hold capacity but belong to no active job: external ones, and orphans of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainmaster.domain.capacity.units import Kind, Pool, Units, pool_for, pool_of_plan, total
from trainmaster.domain.compat import StrEnum


class Origin(StrEnum):
    """Origin of a training job that is no active attempt.

    OUTSIDE: the queue did not start it. UNKNOWN: its tags are not visible yet. ORPHAN: the queue started it, and is
    going to stop it. STOPPED_ORPHAN: SageMaker has accepted that stop.
    """

    OUTSIDE = "outside"
    UNKNOWN = "unknown"
    ORPHAN = "orphan"
    STOPPED_ORPHAN = "stopped orphan"


ORPHANS = frozenset({Origin.ORPHAN, Origin.STOPPED_ORPHAN})
UNSETTLED = frozenset({Origin.UNKNOWN, Origin.ORPHAN})
"""Origins of training jobs that the next tick looks at again."""


@dataclass(frozen=True, slots=True)
class ExternalJob:
    """An open training job that is no active attempt.

    Attributes:
        units: instances by `units.source`.
        origin: who started it.
    """

    units: Units
    origin: Origin = Origin.OUTSIDE


def external_units(known: Mapping[str, ExternalJob], pools: Mapping[str, Pool]) -> dict[str, int]:
    """Return the units that external training jobs hold in the pools that count them, and orphans in every pool.

    Args:
        known: by training job name.
        pools: the pools in force. Spot instances count on demand where their type has no spot pool, as for jobs of the
            queue; those of a training plan without a pool count nowhere.
    """
    counting = {name for name, pool in pools.items() if pool.count_external}
    orphans = _placed((job for job in known.values() if job.origin in ORPHANS), pools)
    others = _placed((job for job in known.values() if job.origin not in ORPHANS), pools)
    return total([orphans, {name: count for name, count in others.items() if name in counting}])


def units_by_pool(units: Units, pools: Mapping[str, Pool]) -> Units:
    """Return instances by capacity source as units by pool; those without a pool are left out."""
    return _placed([ExternalJob(units)], pools)


def _placed(jobs: Iterable[ExternalJob], pools: Mapping[str, Pool]) -> dict[str, int]:
    """Return the units that these training jobs hold, by pool."""
    held = total(job.units for job in jobs)
    placed = total({_pool_of(where, pools): count} for where, count in held.items())
    return {name: count for name, count in placed.items() if name in pools}


def _pool_of(where: str, pools: Mapping[str, Pool]) -> str:
    if (plan := pool_of_plan(pools, where)) is not None:
        return plan.name
    instance_type = where.removesuffix(f".{Kind.SPOT}")
    spot = pool_for(pools, Kind.SPOT, instance_type) if where != instance_type else None
    return spot or pool_for(pools, Kind.ON_DEMAND, instance_type) or ""
