"""What becomes of pools: who holds them, who waits for them, and whom the end of one would leave without any.

It must not read the queue deeper than a pass does: where lanes were not read to their end, what it counts is the least
that there is. It must not change anything.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.capacity.units import Kind, Pool, Units, covers, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.placement.selector import PoolSelector


class State(StrEnum):
    """How a pool stands."""

    IN_USE = "in use"
    DRAINING = "draining"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class Usage:
    """How a pool stands, in instances; nothing is free where nothing may start.

    `stopping` are those on the way to be free, `beyond_least` those that elastic jobs hold beyond their least size.
    """

    used: int
    stopping: int
    held: int
    foreign: int
    free: int
    warm: int = 0
    beyond_least: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who waits for a pool.

    Attributes:
        jobs: waiting jobs that could run there, whether or not they could elsewhere, too.
        units: what they would take of it, all together.
        more: whether there may be more: lanes of such jobs were not read to their end.
    """

    jobs: int = 0
    units: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class RemovalImpact:
    """Whom it concerns that a pool is removed.

    Attributes:
        holders: jobs that hold instances of it.
        warm: SageMaker names of the training jobs whose warm pools keep some.
        moved: waiting jobs that could run there, and can elsewhere.
        stranded: waiting jobs that could run there, and nowhere else.
        more: whether there may be more that wait.
    """

    holders: tuple[Job, ...] = ()
    warm: tuple[str, ...] = ()
    moved: tuple[Job, ...] = ()
    stranded: tuple[Job, ...] = ()
    more: bool = False


def pool_usage(snapshot: Snapshot, now: datetime) -> Mapping[str, Usage]:
    """How each pool of a snapshot stands."""
    used = total(job.units for job in snapshot.active)
    stopping = total(job.freeing for job in snapshot.active)
    beyond = total(map(_beyond_least, snapshot.active))
    held = total(job.hold.units for job in snapshot.waiting if job.hold is not None and job.hold.until > now)
    warm = total(pool.units for pool in counting(snapshot.warm, snapshot.active))
    taken = total([used, warm, snapshot.foreign])
    return {
        name: Usage(
            used=used.get(name, 0),
            stopping=stopping.get(name, 0),
            held=held.get(name, 0),
            foreign=snapshot.foreign.get(name, 0),
            warm=warm.get(name, 0),
            beyond_least=beyond.get(name, 0),
            free=max(pool.cap - taken.get(name, 0), 0) if not pool.draining else 0,
        )
        for name, pool in snapshot.pools.items()
    }


def _beyond_least(job: Job) -> Units:
    """What an elastic job could give back and run on."""
    if job.elastic is None or job.stopping:
        return {}
    return {pool: max(count - job.elastic.least, 0) for pool, count in job.staying.items()}


def state_of(pool: Pool, usage: Usage) -> State:
    """Whether it is being drained, and whether that is done: neither jobs nor warm pools hold any of it."""
    if not pool.draining:
        return State.IN_USE
    return State.DRAINING if usage.used or usage.warm else State.DRAINED


def waiting_for(snapshot: Snapshot) -> Mapping[str, Waiting]:
    """Who waits for each pool of a snapshot, as far as its lanes were read."""
    snapshot = resolve(snapshot)
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    found: dict[str, list[tuple[int, bool]]] = {name: [] for name in snapshot.pools}
    for job in snapshot.waiting:
        for name, count in _wanted(job, caps).items():
            found[name].append((count, job.lane in snapshot.cut_lanes))
    return {
        name: Waiting(len(each), sum(count for count, _ in each), any(cut for _, cut in each))
        for name, each in found.items()
    }


def weights(snapshot: Snapshot) -> Mapping[str, float]:
    """W_ini (Liu et al. 2022, equation 6) of the pools among which the queue may choose for a job by resources."""
    among = [name for name, pool in snapshot.pools.items() if pool.kind is Kind.ON_DEMAND and not pool.draining]
    # Weights are worked out, nothing is drawn.
    return PoolSelector(snapshot, random.Random(0)).weights(among) if among else {}  # noqa: S311


def removal_impact(snapshot: Snapshot, name: str) -> RemovalImpact:
    """Whom it concerns that this pool is removed.

    A waiting job goes elsewhere where another pool could hold it that is not being drained.
    """
    before = resolve(snapshot)
    after = resolve(replace(snapshot, pools={each: pool for each, pool in snapshot.pools.items() if each != name}))
    caps = {each: pool.cap for each, pool in before.pools.items()}
    open_ = {each: pool.cap for each, pool in after.pools.items() if not pool.draining}
    concerned = [
        (job, then) for job, then in zip(before.waiting, after.waiting, strict=True) if name in _wanted(job, caps)
    ]
    return RemovalImpact(
        holders=tuple(job for job in before.active if name in job.units),
        warm=tuple(each.training_job_name for each in counting(snapshot.warm, snapshot.active) if name in each.units),
        moved=tuple(job for job, then in concerned if _wanted(then, open_)),
        stranded=tuple(job for job, then in concerned if not _wanted(then, open_)),
        more=any(job.lane in snapshot.cut_lanes for job, _ in concerned),
    )


def _wanted(job: Job, caps: Units) -> Mapping[str, int]:
    """What the job would take of each pool that it could run in, most where its alternatives differ."""
    wanted: dict[str, int] = {}
    for name, count in _parts(job, caps):
        wanted[name] = max(count, wanted.get(name, 0))
    return wanted


def _parts(job: Job, caps: Units) -> Iterator[tuple[str, int]]:
    for units in job.demand.alternatives:
        if covers(caps, units):
            yield from units.items()
