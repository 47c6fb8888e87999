"""Pools that a request can use, and the request to SageMaker once the queue has chosen one.

A request that names no pools states the kind of its capacity itself: its training plan, spot, or neither. With named
pools or requested resources the choice is the queue's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainmaster.domain.capacity.catalogue import AS_SHIPPED, Catalogue
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import OVER, Demand, Kind, Pool, pool_for, pool_of_plan, total
from trainmaster.domain.errors import InvalidRequest, NeverFits
from trainmaster.domain.requests.fields import entries, part, shown, text, whole
from trainmaster.domain.requests.resource_text import shortfalls
from trainmaster.domain.requests.resources import CONFIG, GROUPS, PREFERENCES, demand_of, instances_of, listed_types
from trainmaster.domain.requests.tag_names import OPTION_PREFIX
from trainmaster.domain.requests.tags import gives, option_field
from trainmaster.domain.requests.training_job import DEFAULT_RUNTIME

Object = Mapping[str, object]
Pools = Mapping[str, Pool]

MIN_WAIT, MAX_WAIT = 3_600, 86_400
"""Seconds that a spot job may wait for instances in all, where its request does not say: as long as it may run, within
these bounds."""


def demand_in(  # noqa: PLR0913 - a request, and all that it is held against
    request: Object,
    named: Sequence[str],
    pools: Pools,
    asked: Resources | None = None,
    catalogue: Catalogue = AS_SHIPPED,
    *,
    instances: int | None = None,
) -> Demand:
    """Return the demand of the request on these pools.

    Args:
        request: A request without `meaning_problems`.
        named: Pools of its option `trainmaster:pools`, in order; empty if it has none.
        pools: Pools in force.
        asked: Resources of its option `trainmaster:resources`; None if it has none.
        catalogue: Known instance types.
        instances: Minimum size of an elastic job, instead of the request's own number.

    Raises `InvalidRequest`; `NeverFits` if a pool that it needs does not exist.
    """
    demand = _named(request, named, pools) if named else _said(request, pools)
    if instances is not None:
        demand = demand.sized(instances)
    if asked is not None:
        sized = replace(demand, instances=instances or instances_of(request))
        return _by_resources(request, sized, asked, pools, catalogue)
    _check_plans(request, demand, pools)
    return demand


def _said(request: Object, pools: Pools) -> Demand:
    """Return the demand that the request itself states."""
    config = part(request, CONFIG)
    preferred = entries(config, PREFERENCES)
    found = []
    for index, units in enumerate(demand_of(request)):
        plans = preferred[index].get("TrainingPlanArns") if preferred else None
        found.append(total(_placed(request, name, count, plans, pools) for name, count in units.items()))
    return Demand(tuple(found))


def _by_resources(request: Object, listed: Demand, asked: Resources, pools: Pools, catalogue: Catalogue) -> Demand:
    """Return the alternatives that the request lists, which must cover its resources, and all other pools that do."""
    by_pool = gives(request, "pools")
    fields = [option_field(request, "pools")] if by_pool else [field for _, field in listed_types(request)]
    for index, units in enumerate(listed.alternatives):
        name = next(iter(units))
        known = catalogue.of_pool(pools[name]) if name in pools else catalogue.type_of(name)
        missing = list(shortfalls(asked, known or InstanceType(name=name)))
        if missing:
            raise InvalidRequest(
                f"{name} does not meet '{OPTION_PREFIX}resources': it has {', '.join(missing)}.",
                field=fields[0 if by_pool else index],
                hint="Name only pools that meet it, or omit the pools: the queue finds them.",
            )
    demand = replace(listed, queue_selects_pool=True, resources=asked, listed=len(listed.alternatives))
    return resolved(demand, Offers(pools, catalogue))


def for_pool(request: Mapping[str, Any], pool: Pool, instances: int) -> dict[str, Any]:
    """Return the request for these instances of the pool that the queue has chosen: type, plan, spot or not.

    A spot job without `MaxWaitTimeInSeconds` may wait as long as it may run, from an hour to a day. No warm pool is
    kept after a spot job (developer guide, "Train using SageMaker managed warm pools").
    """
    # A job by resources need not have one: what it would say, the queue says.
    config = {**part(request, CONFIG), "InstanceType": pool.instance_type, "InstanceCount": instances}
    config.pop("TrainingPlanArn", None)
    config.pop(PREFERENCES, None)
    if pool.kind is Kind.TRAINING_PLAN:
        config["TrainingPlanArn"] = pool.plan_arn
    made = {**request, CONFIG: config}
    if pool.kind is Kind.SPOT:
        config.pop("KeepAlivePeriodInSeconds", None)
        return made | {"EnableManagedSpotTraining": True, "StoppingCondition": _with_wait(request)}
    made.pop("EnableManagedSpotTraining", None)
    if "StoppingCondition" in made:
        limits = dict(made["StoppingCondition"])
        limits.pop("MaxWaitTimeInSeconds", None)
        made["StoppingCondition"] = limits
    return made


def pool_warnings(request: Object, demand: Demand, pools: Pools) -> list[str]:
    """Return warnings about the kinds of capacity that the request may run on."""
    kinds = {pools[name].kind for name in demand.pools if name in pools}
    saves = bool(text(part(request, "CheckpointConfig"), "S3Uri"))
    return [*_spot_warnings(request, demand, kinds, saves=saves), *_plan_warnings(kinds, saves=saves)]


def _named(request: Object, named: Sequence[str], pools: Pools) -> Demand:
    config = part(request, CONFIG)
    for other in (GROUPS, PREFERENCES):
        if entries(config, other):
            raise InvalidRequest(
                f"{other} cannot be combined with the option '{OPTION_PREFIX}pools'.",
                field=f"{CONFIG}.{other}",
                hint="Specify one InstanceType and InstanceCount: the chosen pool's type replaces it.",
            )
    for name in named:
        if name not in pools:
            raise NeverFits(
                f"There is no pool {shown(name)}.",
                field=option_field(request, "pools"),
                hint=f"The pools are: {', '.join(sorted(pools)) or 'none'}.",
            )
    by_resources = gives(request, "resources")
    count = instances_of(request) if by_resources else sum(demand_of(request)[0].values())
    return Demand(tuple({name: count} for name in named), queue_selects_pool=True)


def _placed(request: Object, type_: str, count: int, plans: object, pools: Pools) -> dict[str, int]:
    """Return these instances in the pool of the request's kind of capacity."""
    arn = text(part(request, CONFIG), "TrainingPlanArn")
    if arn is not None:
        return {_of_plan(arn, type_, pools): count}
    for own in plans if isinstance(plans, list | tuple) else ():
        pool = pool_of_plan(pools, own)
        if pool is not None and pool.instance_type == type_:
            return {pool.name: count}
    wants_spot = request.get("EnableManagedSpotTraining") is True
    spot = pool_for(pools, Kind.SPOT, type_) if wants_spot else None
    return {spot or pool_for(pools, Kind.ON_DEMAND, type_) or type_: count}


def _of_plan(arn: str, type_: str, pools: Pools) -> str:
    pool = pool_of_plan(pools, arn)
    if pool is not None and pool.instance_type == type_:
        return pool.name
    wrong = "has no pool" if pool is None else f"has {pool.instance_type}, not {type_}"
    raise NeverFits(
        f"The training plan {shown(arn.rpartition('/')[2])} {wrong}.",
        field=f"{CONFIG}.TrainingPlanArn",
        hint="Add a pool of kind training-plan (PUT /pools)." if pool is None else "Use the plan's type.",
    )


def _check_plans(request: Object, demand: Demand, pools: Pools) -> None:
    """Refuse what could only ever run in training plans that are over."""
    over = {name for name in demand.pools if name in pools and pools[name].plan_status in OVER}
    if not over or any(over.isdisjoint(units) for units in demand.alternatives):
        return
    raise NeverFits(
        f"The training plan of {', '.join(sorted(over))} has ended or failed.",
        field=option_field(request, "pools") if demand.queue_selects_pool else f"{CONFIG}.TrainingPlanArn",
        hint="Name another pool, or leave the training plan out.",
    )


def _with_wait(request: Mapping[str, Any]) -> dict[str, Any]:
    limits = dict(request.get("StoppingCondition") or {})
    runtime = limits.get("MaxRuntimeInSeconds") or DEFAULT_RUNTIME
    wait = runtime + min(max(runtime, MIN_WAIT), MAX_WAIT)
    return limits | {"MaxWaitTimeInSeconds": max(limits.get("MaxWaitTimeInSeconds") or wait, runtime)}


def _spot_warnings(request: Object, demand: Demand, kinds: set[Kind], *, saves: bool) -> Iterator[str]:
    if request.get("EnableManagedSpotTraining") is True and not demand.queue_selects_pool and Kind.SPOT not in kinds:
        yield (
            f"There is no spot pool for {', '.join(demand.pools)}, so this spot job counts against the cap of "
            "on-demand instances: add a pool of kind spot."
        )
    if Kind.SPOT in kinds and not saves:
        yield (
            "This job may run on spot instances and has no CheckpointConfig, so it would start over "
            "whenever SageMaker reclaims them: set CheckpointConfig.S3Uri and save checkpoints."
        )
    if Kind.SPOT in kinds and whole(part(request, CONFIG), "KeepAlivePeriodInSeconds"):
        yield "On spot instances this job keeps no warm pool: SageMaker does not support it."


def _plan_warnings(kinds: set[Kind], *, saves: bool) -> Iterator[str]:
    if Kind.TRAINING_PLAN in kinds and not saves:
        yield (
            "This job may run in a training plan and has no CheckpointConfig, so it starts there only if it is "
            "expected to end half an hour before the plan does: set CheckpointConfig.S3Uri and save checkpoints."
        )
