"""Commands on pools: set all or one, change, drain or remove one.

Each is one change of the settings, guarded by their version and made again after a conflict unless the caller gave a
version. Running jobs are never stopped: draining and removing wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.capacity.external import external_units
from trainmaster.domain.capacity.pools import (
    as_made,
    pool_problems,
    problems_of_one,
    service_problem,
    with_raises,
    with_windows,
)
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.errors import PoolInUse, PoolNotFound
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.document import policy_of
from trainmaster.domain.policy.problems import policy_problems
from trainmaster.domain.requests.fields import did_you_mean, shown
from trainmaster.ports.store import QueueSettings, Store
from trainmaster.service.capacity.pool_usage import RemovalImpact, removal_impact
from trainmaster.service.change import ApiContext, SettingsChange, change_settings, check_ceilings

MAX_NAMED = 3
"""Jobs that an error message names; it counts the others."""


@dataclass(frozen=True, slots=True)
class PoolsChange:
    """Result of a change of the pools.

    Attributes:
        settings: the settings in force.
        snapshot: the snapshot that the change was checked against; None if it needed none.
    """

    settings: QueueSettings
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Removal:
    """Result of removing a pool, and the jobs affected."""

    change: PoolsChange
    impact: RemovalImpact


@dataclass(slots=True)
class _Reader:
    """Reads the snapshot for the checks of one change, and keeps it for the answer."""

    store: Store
    snapshot: Snapshot | None = None

    def read(self) -> Snapshot:
        self.snapshot = self.store.read_snapshot()
        return self.snapshot


def set_pools(
    context: ApiContext,
    caller: Caller,
    pools: Sequence[Pool],
    *,
    version: int | None = None,
) -> PoolsChange:
    """Replace all pools; jobs beyond a lowered cap, and jobs of a removed pool, continue to run.

    Raises `InvalidRequest`; `PoolInUse` if a share names a pool that would be removed, or if jobs hold instances of a
    pool whose type would change; `VersionConflict`.
    """
    for problem in pool_problems(pools):
        raise problem.refusal()
    reader = _Reader(context.store)

    def change(now: QueueSettings) -> Iterable[Pool]:
        _check_named(now, now.pools.keys() - {pool.name for pool in pools})
        _check_type(reader, pools, now.pools)
        return pools

    return _change(context, caller, change, version, reader)


def replace_all(
    context: ApiContext,
    caller: Caller,
    pools: Sequence[Pool] | None,
    document: Mapping[str, Any] | None,
    *,
    dry_run: bool,
) -> QueueSettings:
    """Replace the pools that people have set and the settings, as one change; None leaves either.

    Returns the settings then in force; with `dry_run` nothing is changed. Raises what `set_pools` and `set_policy`
    raise.
    """
    reader, at = _Reader(context.store), context.clock.now()
    for problem in pool_problems(pools or ()):
        raise problem.refusal()

    def change(now: QueueSettings) -> SettingsChange:
        after = list(now.pools.values()) if pools is None else _with_made(pools, now.pools)
        policy = now.policy if document is None else policy_of(document, now.deployed)
        for problem in policy_problems(policy, {pool.name: pool for pool in after}, now.catalogue):
            raise problem.refusal()
        _check_type(reader, after, now.pools)
        return None if pools is None else _completed(after, now.pools, at), None if document is None else policy

    if dry_run:
        now = context.store.settings()
        found, policy = change(now)
        check_ceilings(context, now, found, policy)
        kept = now.pools if found is None else {pool.name: pool for pool in found}
        return replace(now, pools=kept, policy=now.policy if policy is None else policy)
    return change_settings(context, caller, change, None)


def _completed(pools: Iterable[Pool], before: Mapping[str, Pool], at: datetime) -> list[Pool]:
    """Return the pools with what only the manager sets: windows of plans, and why a pool was made."""
    return with_raises(as_made(with_windows(pools, before), before), before, at)


def _with_made(pools: Sequence[Pool], before: Mapping[str, Pool]) -> list[Pool]:
    """Return these pools, and those that the manager has made."""
    names = {pool.name for pool in pools}
    return [*pools, *(pool for pool in before.values() if pool.made_for and pool.name not in names)]


def put_pool(
    context: ApiContext,
    caller: Caller,
    pool: Pool,
    *,
    version: int | None = None,
) -> PoolsChange:
    """Create a pool, or replace the one of its name.

    Raises `InvalidRequest`; `PoolInUse` if that one has another type and jobs hold instances of it; `VersionConflict`.
    """
    reader = _Reader(context.store)

    def change(now: QueueSettings) -> Iterable[Pool]:
        after = _with(pool, now.pools)
        _check_type(reader, [pool], now.pools)
        return after

    return _change(context, caller, change, version, reader)


def change_pool(
    context: ApiContext,
    caller: Caller,
    name: str,
    given: Mapping[str, Any],
    *,
    version: int | None = None,
) -> PoolsChange:
    """Change these fields of a pool and leave the others; also starts or ends draining it.

    Raises `PoolNotFound`, `InvalidRequest`, `VersionConflict`.
    """

    def change(now: QueueSettings) -> Iterable[Pool]:
        return _with(replace(_existing(now, name), **given), now.pools)

    return _change(context, caller, change, version, _Reader(context.store))


def remove_pool(
    context: ApiContext,
    caller: Caller,
    name: str,
    *,
    force: bool = False,
    version: int | None = None,
) -> Removal:
    """Remove a pool; jobs that wait for it run in other pools if they can.

    Args:
        context: the dependencies.
        caller: the caller.
        name: the pool.
        force: remove it even if jobs hold instances of it (they run on), or could run nowhere else (they keep waiting).
        version: the version of the settings that must still be in force; None for any.

    Raises `PoolNotFound`, `PoolInUse`, `VersionConflict`.
    """
    found, reader = RemovalImpact(), _Reader(context.store)

    def change(now: QueueSettings) -> Iterable[Pool]:
        nonlocal found
        pool = _existing(now, name)
        _check_named(now, {name})
        found = removal_impact(replace(reader.read(), pools=now.pools), name)
        if not force:
            _check_held(pool, found)
            _check_stranded(pool, found)
        return [other for other in now.pools.values() if other.name != name]

    changed = _change(context, caller, change, version, reader)
    return Removal(changed, found)


def _change(
    context: ApiContext,
    caller: Caller,
    change: Callable[[QueueSettings], Iterable[Pool]],
    version: int | None,
    reader: _Reader,
) -> PoolsChange:
    at = context.clock.now()
    settings = change_settings(context, caller, lambda now: (_completed(change(now), now.pools, at), None), version)
    if reader.snapshot is None:
        return PoolsChange(settings, None)
    # The pools in force decide which external jobs count, and in which pools.
    external = external_units(reader.snapshot.external_jobs, settings.pools)
    return PoolsChange(settings, replace(reader.snapshot, external=external))


def _with(pool: Pool, pools: Mapping[str, Pool]) -> list[Pool]:
    """Return the pools with this one added or replaced. Raises `InvalidRequest`."""
    others = [other for other in pools.values() if other.name != pool.name]
    for problem in problems_of_one(pool, others):
        raise problem.refusal()
    return list({**pools, pool.name: pool}.values())


def _existing(now: QueueSettings, name: str) -> Pool:
    if (problem := service_problem(Pool(name, 0))) is not None:
        raise problem.refusal()
    if name not in now.pools:
        meant = did_you_mean(name, now.pools)
        guess = f"Did you mean '{meant}'? " if meant else ""
        raise PoolNotFound(f"There is no pool {shown(name)}.", field="name", hint=f"{guess}GET /pools lists the pools.")
    return now.pools[name]


def _check_named(now: QueueSettings, gone: Collection[str]) -> None:
    """Raise `PoolInUse` if the settings of shares name a pool that would be removed."""
    left = {name: pool for name, pool in now.pools.items() if name not in gone}
    before = {problem.message for problem in policy_problems(now.policy, now.pools, now.catalogue)} if gone else set()
    for problem in policy_problems(now.policy, left, now.catalogue) if gone else ():
        if problem.message not in before:
            wrong = f"The settings name a pool that would be removed: {problem.field}."
            raise PoolInUse(wrong, field=problem.field, hint="Remove it from the settings first (PUT /settings).")


def _check_type(reader: _Reader, pools: Iterable[Pool], before: Mapping[str, Pool]) -> None:
    """Raise `PoolInUse` if a pool's type would change while instances of it are held.

    Jobs of a removed pool count again in a new pool of its name, so that must be of their type as well.
    """
    changed = [pool for pool in pools if pool.name not in before or _identity(pool) != _identity(before[pool.name])]
    if not changed:
        return
    snapshot = reader.read()
    warm = counting(snapshot.warm, snapshot.active)
    for pool in changed:
        name, exists = pool.name, pool.name in before
        held = [job.name for job in snapshot.active if name in job.units and (exists or _has_other_type(job, pool))]
        held += [f"the warm pool of {kept.training_job_name}" for kept in warm if exists and name in kept.units]
        if held:
            raise PoolInUse(
                f"The type of the pool {pool.name} cannot change while instances of it are held: {_listed(held)}.",
                field="instanceType",
                hint="Give the new pool another name, or drain this one first and change it then.",
            )


def _identity(pool: Pool) -> tuple[object, ...]:
    return pool.instance_type, pool.kind, pool.plan_arn


def _has_other_type(job: Job, pool: Pool) -> bool:
    """Return whether a job that holds units of that name is known to have instances of another type."""
    type_ = job.attempt.instance_type if job.attempt is not None else ""
    return bool(type_) and type_ != pool.instance_type


def _check_held(pool: Pool, found: RemovalImpact) -> None:
    """Raise `PoolInUse` if jobs or warm pools hold instances of the pool."""
    if not found.holders and not found.warm:
        return
    count = sum(job.units[pool.name] for job in found.holders)
    hold = "holds" if len(found.holders) == 1 else "hold"
    held = [f"{_listed([job.name for job in found.holders])} {hold} {count} x {pool.name}"] if found.holders else []
    warm = [f"warm pools of {_listed(found.warm)} hold some"] if found.warm else []
    first = "Wait until it is drained" if pool.draining else "Drain it first, so that no more jobs start there"
    raise PoolInUse(
        f"The pool is in use: {' and '.join(held + warm)}.",
        field="name",
        hint=(
            f"{first}, or force it: jobs then continue, and count toward no pool until one of its name and type is "
            "created."
        ),
    )


def _check_stranded(pool: Pool, found: RemovalImpact) -> None:
    """Raise `PoolInUse` if waiting jobs could run nowhere else."""
    if not found.stranded:
        return
    at_least = "At least " if found.more else ""
    names = _listed([job.name for job in found.stranded])
    raise PoolInUse(
        f"{at_least}{_jobs(len(found.stranded))} could run only in {pool.name}: {names}.",
        field="name",
        hint="Cancel them, or force it: they then wait until a pool can hold them.",
    )


def _jobs(count: int) -> str:
    return "1 waiting job" if count == 1 else f"{count} waiting jobs"


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    others = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {others} more" if others > 0 else "")
