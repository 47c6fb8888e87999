"""The reason of a blocked job: what is missing, and the job for which it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from trainmaster.domain.capacity.reported_quotas import QuotaBound
from trainmaster.domain.capacity.units import Pool, Units, covers
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.reasons.capacity import (
    CanNeverFit,
    Infeasible,
    QuotaTooSmall,
    ReservedForOther,
    WaitsForCapacity,
)
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import Draining, NotInService

Claimant = tuple[str, datetime]
"""A job for which units are kept, and until when."""


def infeasible_reason(job: Job, pools: Mapping[str, Pool], caps: Mapping[str, int], expansion: str = "") -> Reason:
    """Return why no pool, even if empty, could hold the job.

    Args:
        job: a job that no pool can hold.
        pools: the pools in force.
        caps: what they may hold now; 0 for those that are being drained.
        expansion: why the manager makes no pool for it; "" if expansion is off.
    """
    drained = [name for name in job.demand.pools if name in pools and pools[name].draining]
    if any(covers({**caps, **{n: pools[n].cap for n in drained}}, units) for units in job.demand.alternatives):
        unavailable = next((name for name in drained if pools[name].status), None)
        return Draining(tuple(drained)) if unavailable is None else NotInService(unavailable, pools[unavailable].status)
    if job.demand.resources is not None:
        largest = max((caps.get(name, 0) for name in job.demand.pools), default=0)
        at_zero = not largest and any(name in pools and not pools[name].cap for name in job.demand.pools)
        return Infeasible(str(job.demand.resources), job.demand.instances, largest, expansion, at_zero)
    units = job.demand.alternatives[0]
    pool = next(name for name, count in units.items() if count > caps.get(name, 0))
    cap = pools[pool].cap if pool in pools else 0
    return CanNeverFit(pool, units[pool], cap, expansion, at_zero=pool in pools and not cap)


def quota_reason(job: Job, pools: Mapping[str, Pool], bounds: Mapping[str, QuotaBound]) -> Reason | None:
    """Return the quota that keeps the job from pools whose caps would hold it; None if no quota does."""
    caps = {name: 0 if pool.draining else pool.cap for name, pool in pools.items()}
    as_set = {**caps, **{name: bound.cap for name, bound in bounds.items() if not pools[name].draining}}
    for units in job.demand.alternatives if bounds else ():
        if covers(as_set, units):
            pool = next(name for name, count in units.items() if count > caps[name])
            return QuotaTooSmall(pool, units[pool], bounds[pool].quota.limit, bounds[pool].quota.until)
    return None


def shortage_reason(
    units: Units,
    now: Callable[[str], int],
    free: Units,
    claimant: Callable[[str], Claimant | None],
    at: datetime,
) -> Reason:
    """Return where units are missing.

    Args:
        units: what the job needs.
        now: returns the units of a pool that it could have now.
        free: units that no job holds, by pool.
        claimant: returns the job that has a claim on a pool.
        at: the time of the plan.
    """
    for pool, needed in units.items():
        if needed > (could_have := now(pool)):
            break
    else:
        pool, needed = next(iter(units.items()))
        could_have = now(pool)
    available = max(could_have, 0)
    if free.get(pool, 0) >= needed and (kept := claimant(pool)) is not None:
        return ReservedForOther(kept[0], pool, kept[1] if kept[1] > at else None, needed, available)
    return WaitsForCapacity(pool, needed, available)
