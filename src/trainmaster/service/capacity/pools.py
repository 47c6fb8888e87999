"""What people do to pools: set them all or one, change one, drain it, remove it.

Each is one change of the settings, guarded by their version and tried again from the pools as they stand when somebody
else was faster, unless the caller named a version. It must not stop what runs: draining and removing wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.domain.capacity.pools import as_made, endpoint_problem, pool_problems, problems_of_one, with_windows
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.errors import PoolInUse, PoolNotFound
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.problems import policy_problems
from trainmaster.domain.requests.fields import shown
from trainmaster.ports.store import QueueSettings
from trainmaster.service.capacity.pool_use import RemovalImpact, removal_impact
from trainmaster.service.change import ApiContext, change_settings

MAX_NAMED = 3
"""Jobs that a refusal names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Removal:
    """What came of removing a pool: the settings then, and whom it concerned."""

    settings: QueueSettings
    impact: RemovalImpact


def set_pools(context: ApiContext, pools: Sequence[Pool], *, version: int | None = None) -> QueueSettings:
    """Replace the pools; jobs that hold more than a lowered cap run on, and those of a pool that is gone, too.

    Raises `InvalidRequest`, `PoolInUse` where a share names a pool that would be gone, or jobs hold instances of one
    that would be of another type, `VersionConflict`.
    """
    for problem in pool_problems(pools):
        raise problem.refusal()

    def change(now: QueueSettings) -> Iterable[Pool]:
        _check_named(now, now.pools.keys() - {pool.name for pool in pools})
        _check_same(context, pools, now.pools)
        return pools

    return _change(context, change, version)


def put_pool(context: ApiContext, pool: Pool, *, version: int | None = None) -> QueueSettings:
    """Make this pool, or have it take the place of the one of its name.

    Raises `InvalidRequest`, `PoolInUse` where that one is of another type and jobs hold instances of it,
    `VersionConflict`.
    """

    def change(now: QueueSettings) -> Iterable[Pool]:
        after = _with(pool, now.pools)
        _check_same(context, [pool], now.pools)
        return after

    return _change(context, change, version)


def change_pool(
    context: ApiContext, name: str, given: Mapping[str, Any], *, version: int | None = None
) -> QueueSettings:
    """Give a pool other values of these fields, and leave the others as they are; also drains it, or ends that.

    Raises `PoolNotFound`, `InvalidRequest`, `VersionConflict`.
    """

    def change(now: QueueSettings) -> Iterable[Pool]:
        return _with(replace(_existing(now, name), **given), now.pools)

    return _change(context, change, version)


def remove_pool(context: ApiContext, name: str, *, force: bool = False, version: int | None = None) -> Removal:
    """Remove a pool; jobs that wait for it and can run elsewhere simply do.

    Args:
        context: what the use cases need.
        name: the pool.
        force: remove it though jobs hold instances of it (they run on), or could run nowhere else (they wait on).
        version: of the settings that the caller has seen.

    Raises `PoolNotFound`, `PoolInUse`, `VersionConflict`.
    """
    found = RemovalImpact()

    def change(now: QueueSettings) -> Iterable[Pool]:
        nonlocal found
        pool = _existing(now, name)
        _check_named(now, {name})
        found = removal_impact(replace(context.store.read_snapshot(), pools=now.pools), name)
        if not force:
            _check_held(pool, found)
            _check_stranded(pool, found)
        return [each for each in now.pools.values() if each.name != name]

    settings = _change(context, change, version)
    return Removal(settings, found)


def _change(
    context: ApiContext, change: Callable[[QueueSettings], Iterable[Pool]], version: int | None
) -> QueueSettings:
    """Commit what `change` makes of the pools, with what is known of them that people do not set."""
    return change_settings(
        context, lambda now: (as_made(with_windows(change(now), now.pools), now.pools), None), version
    )


def _with(pool: Pool, pools: Mapping[str, Pool]) -> list[Pool]:
    """The pools with this one in its place. Raises `InvalidRequest`."""
    others = [each for each in pools.values() if each.name != pool.name]
    for problem in problems_of_one(pool, others):
        raise problem.refusal()
    return list({**pools, pool.name: pool}.values())


def _existing(now: QueueSettings, name: str) -> Pool:
    if (problem := endpoint_problem(Pool(name, 0))) is not None:
        raise problem.refusal()
    if name not in now.pools:
        raise PoolNotFound(f"There is no pool {shown(name)}.", field="name", hint="GET /pools lists the pools.")
    return now.pools[name]


def _check_named(now: QueueSettings, gone: Collection[str]) -> None:
    """No share may be left naming a pool that is not there. Raises `PoolInUse`."""
    left = {name: pool for name, pool in now.pools.items() if name not in gone}
    before = {problem.message for problem in policy_problems(now.policy, now.pools, now.catalogue)} if gone else set()
    for problem in policy_problems(now.policy, left, now.catalogue) if gone else ():
        if problem.message not in before:
            wrong = f"The settings name a pool that would be gone: {problem.field}."
            raise PoolInUse(wrong, field=problem.field, hint="Take it out of the settings first (PUT /settings).")


def _check_same(context: ApiContext, pools: Iterable[Pool], before: Mapping[str, Pool]) -> None:
    """What is held of a pool is what the pool has. Raises `PoolInUse` where a change would make it something else.

    Jobs of a pool that was removed count again in one of its name, so that has to be of their type as well.
    """
    changed = [pool for pool in pools if pool.name not in before or _what(pool) != _what(before[pool.name])]
    if not changed:
        return
    snapshot = context.store.read_snapshot()
    warm = counting(snapshot.warm, snapshot.active)
    for pool in changed:
        name, there = pool.name, pool.name in before
        held = [job.name for job in snapshot.active if name in job.units and (there or _is_of_another(job, pool))]
        held += [f"the warm pool of {each.training_job_name}" for each in warm if there and name in each.units]
        if held:
            raise PoolInUse(
                f"The pool {pool.name} cannot become another one while instances of it are held: {_listed(held)}.",
                field="instanceType",
                hint="Give the new pool another name; or drain this one first, and change it once it is drained.",
            )


def _what(pool: Pool) -> tuple[object, ...]:
    return pool.instance_type, pool.kind, pool.plan_arn


def _is_of_another(job: Job, pool: Pool) -> bool:
    """Whether a job that holds units of that name is known to have instances of another type."""
    type_ = job.attempt.instance_type if job.attempt is not None else ""
    return bool(type_) and type_ != pool.instance_type


def _check_held(pool: Pool, found: RemovalImpact) -> None:
    """Raises `PoolInUse` where anything of the pool is held."""
    if not found.holders and not found.warm:
        return
    count = sum(job.units[pool.name] for job in found.holders)
    hold = "holds" if len(found.holders) == 1 else "hold"
    held = [f"{_listed([job.name for job in found.holders])} {hold} {count} x {pool.name}"] if found.holders else []
    warm = [f"warm pools of {_listed(found.warm)} keep some"] if found.warm else []
    again = "Wait until it is drained" if pool.draining else "Drain it first, so that nothing more starts there"
    raise PoolInUse(
        f"The pool is in use: {' and '.join(held + warm)}.",
        field="name",
        hint=f"{again}, or force it: jobs then run on, and count in no pool until one of its name and type is made.",
    )


def _check_stranded(pool: Pool, found: RemovalImpact) -> None:
    """Raises `PoolInUse` where waiting jobs could run nowhere else."""
    if not found.stranded:
        return
    least = "At least " if found.more else ""
    names = _listed([job.name for job in found.stranded])
    raise PoolInUse(
        f"{least}{_jobs(len(found.stranded))} could run nowhere else than in {pool.name}: {names}.",
        field="name",
        hint="Cancel them, or force it: they then wait until a pool could hold them.",
    )


def _jobs(count: int) -> str:
    return "1 waiting job" if count == 1 else f"{count} waiting jobs"


def _listed(names: Sequence[str]) -> str:
    """The first few, and how many others there are."""
    others = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {others} more" if others > 0 else "")
