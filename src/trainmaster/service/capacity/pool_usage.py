"""Usage of pools in a snapshot: units in use, jobs that wait for them, and the impact of removing a pool.

Counts of waiting jobs are lower bounds if the snapshot's lanes were not read to their end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.capacity.reported_quotas import quota_bounds, with_quotas
from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.capacity.units import Kind, Pool, Units, covers, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.placement.selector import PoolSelector


class State(StrEnum):
    """State of a pool."""

    IN_USE = "in use"
    DRAINING = "draining"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a pool in instances.

    Attributes:
        used: held by active jobs.
        stopping: the part of `used` that is about to become free.
        held: reserved for waiting jobs.
        external: held by external training jobs.
        free: 0 in a draining pool; no more than the account's quota leaves, as SageMaker last reported it.
        warm: kept by warm pools.
        beyond_minimum: held by elastic jobs beyond their minimum sizes.
    """

    used: int
    stopping: int
    held: int
    external: int
    free: int
    warm: int = 0
    beyond_minimum: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """The jobs that wait for a pool.

    Attributes:
        jobs: the number of waiting jobs that could run there, possibly elsewhere too.
        units: the instances that they would take of it together.
        more: whether there may be more, since lanes of such jobs were not read to their end.
    """

    jobs: int = 0
    units: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class RemovalImpact:
    """The jobs that the removal of a pool affects.

    Attributes:
        holders: jobs that hold instances of it.
        warm: names of the training jobs whose warm pools hold instances of it.
        moved: waiting jobs that could run there, and can run elsewhere.
        stranded: waiting jobs that could run there, and nowhere else.
        more: whether there may be more waiting jobs.
    """

    holders: tuple[Job, ...] = ()
    warm: tuple[str, ...] = ()
    moved: tuple[Job, ...] = ()
    stranded: tuple[Job, ...] = ()
    more: bool = False


def pool_usage(snapshot: Snapshot, now: datetime) -> Mapping[str, Usage]:
    """Return the usage of each pool of a snapshot."""
    used = total(job.units for job in snapshot.active)
    stopping = total(job.freeing for job in snapshot.active)
    beyond = total(map(_units_beyond_minimum, snapshot.active))
    held = total(
        job.reservation.units for job in snapshot.waiting if job.reservation is not None and job.reservation.until > now
    )
    warm = total(pool.units for pool in counting(snapshot.warm, snapshot.active))
    taken = total([used, warm, snapshot.external])
    pools = with_quotas(snapshot.pools, quota_bounds(snapshot.pools, snapshot.catalogue, now))
    return {
        name: Usage(
            used=used.get(name, 0),
            stopping=stopping.get(name, 0),
            held=held.get(name, 0),
            external=snapshot.external.get(name, 0),
            warm=warm.get(name, 0),
            beyond_minimum=beyond.get(name, 0),
            free=max(pool.cap - taken.get(name, 0), 0) if not pool.draining else 0,
        )
        for name, pool in pools.items()
    }


def _units_beyond_minimum(job: Job) -> Units:
    """Return the units that an elastic job could give back and continue."""
    if not job.sizes or job.stopping:
        return {}
    return {pool: max(count - job.sizes[0], 0) for pool, count in job.staying.items()}


def state_of(pool: Pool, usage: Usage) -> State:
    """Return the state of a pool; it is drained once neither jobs nor warm pools hold any of it."""
    if not pool.draining:
        return State.IN_USE
    return State.DRAINING if usage.used or usage.warm else State.DRAINED


def waiting_for(snapshot: Snapshot) -> Mapping[str, Waiting]:
    """Return the jobs that wait for each pool of a snapshot, as far as its lanes were read."""
    snapshot = resolve(snapshot)
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    found: dict[str, list[tuple[int, bool]]] = {name: [] for name in snapshot.pools}
    for job in snapshot.waiting:
        for name, count in _wanted(job, caps).items():
            found[name].append((count, job.lane in snapshot.cut_lanes))
    return {
        name: Waiting(len(jobs), sum(count for count, _ in jobs), any(cut for _, cut in jobs))
        for name, jobs in found.items()
    }


def weights(snapshot: Snapshot) -> Mapping[str, float]:
    """Return the weight W_ini (Liu et al. 2022, equation 6) of each pool that the queue may choose for a job."""
    among = [name for name, pool in snapshot.pools.items() if pool.kind is Kind.ON_DEMAND and not pool.draining]
    # The weights do not use the random numbers.
    return PoolSelector(snapshot, random.Random(0)).weights(among) if among else {}  # noqa: S311


def removal_impact(snapshot: Snapshot, name: str) -> RemovalImpact:
    """Return the jobs that the removal of this pool affects.

    A waiting job can run elsewhere if another pool that is not draining could hold it.
    """
    before = resolve(snapshot)
    after = resolve(replace(snapshot, pools={other: pool for other, pool in snapshot.pools.items() if other != name}))
    caps = {other: pool.cap for other, pool in before.pools.items()}
    remaining = {other: pool.cap for other, pool in after.pools.items() if not pool.draining}
    affected = [
        (job, then) for job, then in zip(before.waiting, after.waiting, strict=True) if name in _wanted(job, caps)
    ]
    return RemovalImpact(
        holders=tuple(job for job in before.active if name in job.units),
        warm=tuple(pool.training_job_name for pool in counting(snapshot.warm, snapshot.active) if name in pool.units),
        moved=tuple(job for job, then in affected if _wanted(then, remaining)),
        stranded=tuple(job for job, then in affected if not _wanted(then, remaining)),
        more=any(job.lane in snapshot.cut_lanes for job, _ in affected),
    )


def _wanted(job: Job, caps: Units) -> Mapping[str, int]:
    """Return the instances that the job would take of each pool that it could run in, at most."""
    wanted: dict[str, int] = {}
    for name, count in _parts(job, caps):
        wanted[name] = max(count, wanted.get(name, 0))
    return wanted


def _parts(job: Job, caps: Units) -> Iterator[tuple[str, int]]:
    for units in job.demand.alternatives:
        if covers(caps, units):
            yield from units.items()
