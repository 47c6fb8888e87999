"""Converts pools between the domain and the API: responses about pools, and pools in requests.

It reads the store once for all pools.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.capacity.pools import default_name
from trainmaster.domain.capacity.reported_quotas import QuotaBound, quota_bounds
from trainmaster.domain.capacity.units import Kind, Pool, ServiceLoad
from trainmaster.domain.plan import Snapshot
from trainmaster.handlers.models import pools as pool_models
from trainmaster.ports.store import QueueSettings
from trainmaster.service.capacity.pool_usage import Usage, Waiting, pool_usage, state_of, waiting_for, weights
from trainmaster.service.capacity.pools import PoolsChange, Removal
from trainmaster.service.change import ApiContext

_FIELDS = {"accelerators": "accelerators_per_unit"}
"""Fields of a pool that are called otherwise when they travel."""


def pools(
    context: ApiContext, in_force: QueueSettings, *, history: bool = False, snapshot: Snapshot | None = None
) -> pool_models.Pools:
    """Return the state of the pools.

    Args:
        context: the dependencies.
        in_force: the settings in force.
        history: whether to add the manager's recent changes to managed pools.
        snapshot: a snapshot that has been read for the same request; None to read one.
    """
    return pool_models.Pools(
        pools=use_of_pools(in_force, snapshot or context.store.read_snapshot(), context.clock.now()),
        version=in_force.version,
        history=[event_view(event) for event in reversed(in_force.history)] if history else None,
    )


def event_view(event: PoolEvent) -> pool_models.ManagedPoolEvent:
    """Return a change that the manager made."""
    return pool_models.ManagedPoolEvent(at=event.at, **_change_fields(event))


def pool_change_view(event: PoolEvent) -> pool_models.ManagedPoolChange:
    """Return a change that the manager would make."""
    return pool_models.ManagedPoolChange(**_change_fields(event))


def changed_pools(context: ApiContext, changed: PoolsChange) -> pool_models.Pools:
    """Return the state of the pools after a change."""
    return pools(context, changed.settings, snapshot=changed.snapshot)


def changed_pool(context: ApiContext, changed: PoolsChange, name: str) -> pool_models.Pool:
    """Return the state of one pool after a change."""
    return next(pool for pool in changed_pools(context, changed).pools if pool.name == name)


def removal(context: ApiContext, done: Removal) -> pool_models.Removal:
    """Return the result of a pool's removal."""
    left, found = changed_pools(context, done.change), done.impact
    return pool_models.Removal(
        pools=left.pools,
        version=left.version,
        moved=len(found.moved),
        stranded=len(found.stranded),
        more=found.more,
        running=[job.name for job in found.holders],
    )


def use_of_pools(in_force: QueueSettings, snapshot: Snapshot, now: datetime) -> list[pool_models.Pool]:
    """Return the use of the pools in force, by name; they may be newer than the snapshot, and the caps are theirs.

    The pools of services are those of the snapshot: those that waiting or active jobs need.
    """
    services = {name: pool for name, pool in snapshot.pools.items() if pool.kind is Kind.SERVICE}
    pools = {**in_force.pools, **services}
    catalogue = replace(in_force.catalogue, reported=snapshot.catalogue.reported)
    snapshot = replace(snapshot, pools=pools, policy=in_force.policy, catalogue=catalogue)
    bounds = quota_bounds(pools, catalogue, now)
    usage, waiting, weight = pool_usage(snapshot, now), waiting_for(snapshot), weights(snapshot)
    return [
        _pool_view(pool, snapshot, usage[name], waiting[name], weight.get(name, 0.0), bounds.get(name))
        for name, pool in sorted(pools.items())
    ]


def pool_asked(setting: pool_models.PoolSetting) -> Pool:
    """Return the pool that a request describes."""
    name = default_name(setting.instance_type, setting.kind) if setting.name is None else setting.name
    return _asked(name, setting.instance_type, setting)


def named_pool_asked(name: str, setting: pool_models.NamedPool) -> Pool:
    """Return the pool of that name that a request describes."""
    return _asked(name, setting.instance_type or name, setting)


def change_asked(change: pool_models.PoolChange) -> dict[str, Any]:
    """Return the fields of a pool that a request changes."""
    given = change.model_dump(exclude_none=True, exclude={"version"})
    return {_FIELDS.get(name, name): value for name, value in given.items()}


def _change_fields(event: PoolEvent) -> dict[str, Any]:
    return {
        "change": event.action,
        "pool": event.pool,
        "instance_type": event.instance_type,
        "before": event.before,
        "after": event.after,
        "dollars_per_hour": event.dollars_per_hour or None,
        "made_for": event.made_for,
        "jobs": list(event.jobs),
        "job_count": event.job_count,
        "why": event.why,
    }


def _asked(name: str, instance_type: str, setting: pool_models.PoolParts) -> Pool:
    return Pool(
        name,
        setting.cap,
        setting.count_external,
        type_="" if name == instance_type else instance_type,
        kind=setting.kind,
        plan_arn=setting.training_plan_arn,
        price=setting.price,
        accelerators_per_unit=setting.accelerators,
        draining=setting.draining,
        vcpus=setting.vcpus,
        memory_gib=setting.memory_gib,
        accelerator=setting.accelerator,
        accelerator_memory_gib=setting.accelerator_memory_gib,
    )


def _pool_view(  # noqa: PLR0913, PLR0917 -- one parameter for each source of the view
    pool: Pool, snapshot: Snapshot, usage: Usage, waiting: Waiting, weight: float, bound: QuotaBound | None
) -> pool_models.Pool:
    kind, known = snapshot.catalogue.of_pool(pool), snapshot.catalogue.type_of(pool.instance_type)
    return pool_models.Pool(
        name=pool.name,
        instance_type=pool.instance_type,
        kind=pool.kind,
        training_plan_arn=pool.plan_arn,
        plan_status=pool.plan_status,
        starts_at=pool.starts_at,
        ends_at=pool.ends_at,
        state=state_of(pool, usage),
        made_for=pool.made_for or None,
        made_at=pool.made_at,
        price=pool.price,
        on_demand_price=0.0 if known is None else known.price,
        vcpus=kind.vcpus,
        memory_gib=kind.memory_gib,
        accelerators=kind.accelerators,
        accelerator=kind.accelerator or None,
        accelerator_memory_gib=kind.accelerator_memory_gib,
        cap=pool.cap,
        quota=None if bound is None else bound.quota.limit,
        quota_at=None if bound is None else bound.quota.at,
        used=usage.used,
        stopping=usage.stopping,
        beyond_minimum=usage.beyond_minimum,
        held=usage.held,
        external=usage.external,
        warm=usage.warm,
        free=usage.free,
        load=None if pool.load is None else _load_view(pool.load),
        count_external=pool.count_external,
        waiting=waiting.jobs,
        waiting_units=waiting.units,
        waiting_more=waiting.more,
        weight=round(weight, 3),
        setting=pool_setting(pool),
    )


def _load_view(load: ServiceLoad) -> pool_models.ServiceLoad:
    return pool_models.ServiceLoad(
        capacity=load.capacity,
        target=load.target,
        pressure=round(load.pressure, 3),
        throttled_at=load.throttled_at,
        external=load.external,
        external_at=load.external_at,
        window_seconds=None if load.window is None else int(load.window.total_seconds()),
    )


def pool_setting(pool: Pool) -> dict[str, Any]:
    """Return the pool as `PUT /pools` accepts it; empty for a service's pool, which it does not accept."""
    if pool.kind is Kind.SERVICE:
        return {}
    given = {
        "name": "" if pool.name == default_name(pool.instance_type, pool.kind) else pool.name,
        "kind": "" if pool.kind is Kind.ON_DEMAND else pool.kind.value,
        "trainingPlanArn": pool.plan_arn,
        "draining": pool.draining,
        "price": pool.price,
        "vcpus": pool.vcpus,
        "memoryGib": pool.memory_gib,
        "accelerators": pool.accelerators_per_unit,
        "accelerator": pool.accelerator,
        "acceleratorMemoryGib": pool.accelerator_memory_gib,
    }
    always = {"instanceType": pool.instance_type, "cap": pool.cap, "countExternal": pool.count_external}
    return always | {name: value for name, value in given.items() if value}
