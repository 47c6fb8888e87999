"""Warm pools in a plan: the jobs that start on them, and the warm pools that are ended for a job.

They count against the caps until SageMaker reports that they are gone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from trainmaster.domain.capacity.units import Kind, Pool, Units, total
from trainmaster.domain.capacity.warm_pools import WarmPool, counting
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot

MAX_PASSED = timedelta(hours=1)
"""The wait after which equals no longer pass a job because of a warm pool."""
MARGIN = timedelta(seconds=60)
"""A warm pool that ends sooner than this may be gone when the request reaches SageMaker."""


class WarmPoolsToEnd(NamedTuple):
    """Warm pools to end for a job, and what it would still lack after that.

    Attributes:
        pools: those to end; empty if none would help.
        missing: units that would still have to be freed, by pool name.
    """

    pools: tuple[WarmPool, ...]
    missing: Units


@dataclass(slots=True)
class WarmPools:
    """The warm pools of one plan.

    Attributes:
        now: UTC.
        pools: the pools in force.
        held_units: units of all warm pools that count against the caps, including those that are ending.
        ending: warm pools that are releasing their units.
    """

    now: datetime
    pools: Mapping[str, Pool]
    held_units: Units
    ending: tuple[WarmPool, ...]
    _idle: dict[str, WarmPool]

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> WarmPools:
        """Return the warm pools of a snapshot."""
        held = counting(snapshot.warm, snapshot.active)
        idle = sorted((pool for pool in held if _is_idle(pool, now)), key=_age)
        return cls(
            now=now,
            pools=snapshot.pools,
            held_units=total(pool.units for pool in held),
            ending=tuple(pool for pool in held if pool.ending_since is not None),
            _idle={pool.training_job_name: pool for pool in idle},
        )

    def match(self, job: Job, units: Units) -> WarmPool | None:
        """Return the idle warm pool that SageMaker would start the job on with these units; None if there is none.

        SageMaker reuses one wherever it can, so a matching job must not be charged other units.
        """
        return self._match(job, units, frozenset())

    def use(self, pool: WarmPool) -> None:
        """Remove a warm pool on which a job starts."""
        self._idle.pop(pool.training_job_name, None)

    def matching_first(self, equals: Sequence[Job]) -> list[Job]:
        """Return jobs of equal rank with those first that match an idle warm pool, one for each pool.

        Their starts take no units from the others, and keep a warm pool from being ended. They do not pass a job that
        has waited for `MAX_PASSED`, so that a stream of them starves no job.
        """
        taken: dict[str, str] = {}
        for job in equals if self._idle else ():
            if len(taken) < len(self._idle) and (pool := self._match_any(job, taken)) is not None:
                taken[pool.training_job_name] = job.name
        warm = set(taken.values())
        return sorted(equals, key=lambda job: job.name not in warm and self.now - job.entry_time < MAX_PASSED)

    def pools_to_end(self, job: Job, missing: Units) -> WarmPoolsToEnd:
        """Return the idle warm pools to end for what a job lacks, no more than needed.

        Those of the lowest priority go first, then those that end soonest. A pool that a job of higher priority left
        stays, since its user asked for it.
        """
        wanted = {name: count for name, count in missing.items() if count > 0}
        taken: list[WarmPool] = []
        for pool in sorted(self._idle.values(), key=lambda pool: (pool.priority, *_age(pool))):
            if pool.priority <= job.priority and any(wanted.get(name, 0) > 0 for name in pool.units):
                taken.append(pool)
                wanted = {name: count - pool.units.get(name, 0) for name, count in wanted.items()}
        needed = _drop_redundant(taken, missing)
        return WarmPoolsToEnd(needed, _still_missing(missing, needed))

    def end(self, pools: Iterable[WarmPool]) -> None:
        """Remove warm pools that are being ended."""
        for pool in pools:
            self._idle.pop(pool.training_job_name, None)

    def _match(self, job: Job, units: Units, excluded: Container[str]) -> WarmPool | None:
        if not self._idle or not job.warm_pool_key or any(self._is_spot(name) for name in units):
            return None
        fitting = (
            pool
            for pool in self._idle.values()
            if pool.warm_pool_key == job.warm_pool_key and dict(pool.units) == dict(units)
        )
        return next((pool for pool in fitting if pool.training_job_name not in excluded), None)

    def _match_any(self, job: Job, excluded: Container[str]) -> WarmPool | None:
        """Return a matching warm pool for any alternative of the job."""
        found = (self._match(job, units, excluded) for units in job.demand.alternatives)
        return next((pool for pool in found if pool is not None), None)

    def _is_spot(self, name: str) -> bool:
        return name in self.pools and self.pools[name].kind is Kind.SPOT


def stranded_warm_pools(snapshot: Snapshot) -> tuple[WarmPool, ...]:
    """Return idle warm pools of pools that are being drained, on which no job may start: to be ended."""
    draining = {name for name, pool in snapshot.pools.items() if pool.draining}
    free = (pool for pool in snapshot.warm if pool.used_by is None and pool.ending_since is None)
    return tuple(pool for pool in free if draining.intersection(pool.units))


def _is_idle(pool: WarmPool, now: datetime) -> bool:
    return pool.used_by is None and pool.ending_since is None and pool.until > now + MARGIN


def _age(pool: WarmPool) -> tuple[datetime, str]:
    """Return a sort key that puts pools that end first before others."""
    return (pool.until, pool.training_job_name)


def _still_missing(missing: Units, pools: Iterable[WarmPool]) -> dict[str, int]:
    brought = total(pool.units for pool in pools)
    left = {name: count - brought.get(name, 0) for name, count in missing.items()}
    return {name: count for name, count in left.items() if count > 0}


def _drop_redundant(taken: Sequence[WarmPool], missing: Units) -> tuple[WarmPool, ...]:
    """Return the pools without those that bring nothing missing, tested from the last one."""
    held_units = list(taken)
    unmet = _still_missing(missing, held_units)
    for pool in reversed(taken):
        without = [other for other in held_units if other is not pool]
        if _still_missing(missing, without) == unmet:
            held_units = without
    return tuple(held_units)
