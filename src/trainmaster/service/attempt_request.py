"""The request of an attempt, and of a member of it, made of the one that was submitted.

What an elastic job's nodes have to know of the queue reaches them as environment variables, which `worker/` reads.
It must not create anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.sizes import Elastic, RestartBudget
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests import for_pool, member_request, with_instances
from trainmaster.ports.store import Request
from trainmaster.service.context import ManagerContext


class PoolGoneError(Exception):
    """The pool that an attempt was to start in is there no more."""


def base_request(context: ManagerContext, job: Job, attempt: Attempt) -> Request:
    """The request of the attempt's own training job, as it has to be for the pool that the queue has chosen.

    Where that pool is gone and SageMaker does not have the attempt either, there is nothing to create. An image job's
    run is made of what the job itself says, so its request is not read. Raises `PoolGoneError`, `Throttled`,
    `Unavailable`, `NotPermitted`.
    """
    if job.image_work is not None:
        return {}
    return _made(context, job, attempt, attempt.size - len(attempt.members))


def request_of_member(context: ManagerContext, job: Job, attempt: Attempt) -> Request:
    """The request of one member of the attempt. Raises like `base_request`."""
    return member_request(_made(context, job, attempt, 1))


def environment(elastic: Elastic, run: str, table: str, *, used: int = 0) -> dict[str, str]:
    """What the nodes of an elastic job are told: each variable is documented with `worker`.

    Args:
        elastic: the job's bounds.
        run: the rendezvous that they meet in, the name of the attempt's own training job.
        table: the DynamoDB table that it is kept in; "" where there is none.
        used: restarts that the job's earlier attempts have used of its total.
    """
    told = {
        "RUN": run,
        "TABLE": table,
        "MIN": str(elastic.least),
        "MAX": str(elastic.most),
        "SIZES": ",".join(map(str, elastic.sizes)) if elastic.values or elastic.step > 1 else "",
        "GRACE": _seconds(elastic.graceful_shutdown_timeout.total_seconds()),
        "FAULTY_WAIT": _seconds(elastic.faulty_scale_down_timeout.total_seconds()),
        "RESTARTS": _budget(elastic.budget, used),
        "HOOK": elastic.hook.value,
    }
    return {f"TRAINMASTER_{name}": value for name, value in told.items() if value}


def _made(context: ManagerContext, job: Job, attempt: Attempt, instances: int) -> Request:
    request = context.store.request_of(job.name)
    if job.elastic is not None:
        told = environment(job.elastic, attempt.training_job_name, context.table, used=job.restarts)
        request = with_instances({**request, "Environment": {**_environment(request), **told}}, instances)
    if not job.demand.ours:
        return request
    name = next(iter(attempt.units))
    if name in context.pools:
        return for_pool(request, context.pools[name], instances)
    if context.launcher.describe(attempt.training_job_name) is None:
        raise PoolGoneError(f"there is no pool {name} any more")
    # SageMaker has it, and says so to the same request once more; one without a type it would refuse, and end the job.
    return for_pool(request, Pool(name, 0, type_=attempt.instance_type), instances)


def _environment(request: Request) -> Mapping[str, str]:
    given = request.get("Environment")
    return given if isinstance(given, Mapping) else {}


def _budget(budget: RestartBudget, used: int) -> str:
    """The budget as JSON, seconds and counts, with what is used of its total; "" where nothing is bounded."""
    if budget == RestartBudget():
        return ""
    bounds = {
        "most": budget.most,
        "period": budget.period.total_seconds(),
        "total": budget.total,
        "used": None if budget.total is None else used or None,
        "before_full": budget.before_full,
        "most_full": budget.most_full,
    }
    return json.dumps({name: bound for name, bound in bounds.items() if bound is not None}, separators=(",", ":"))


def _seconds(seconds: float) -> str:
    return f"{seconds:g}"
