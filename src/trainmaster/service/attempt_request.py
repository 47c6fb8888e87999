"""Build the CreateTrainingJob request of an attempt, or of one of its members, from the submitted one.

Elastic jobs' nodes receive the queue's settings as environment variables, which `worker/` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.elastic.rendezvous import Run
from trainmaster.domain.elastic.sizes import Elastic, RestartBudget
from trainmaster.domain.errors import ServiceError
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests.elastic.resized import member_request, with_instances
from trainmaster.domain.requests.pools import for_pool
from trainmaster.ports.store import Request
from trainmaster.service.context import ManagerContext


class PoolGoneError(ServiceError):
    """The pool that an attempt was to start in no longer exists."""


def base_request(context: ManagerContext, job: Job, attempt: Attempt) -> Request:
    """Return the request of the attempt's own training job, for the pool that the queue has chosen.

    The run of another kind is made from the job alone, so its request is not read. Raises `PoolGoneError` if the pool
    is gone and SageMaker does not have the attempt either; `Throttled`, `Unavailable`, `NotPermitted`.
    """
    if job.work is not None:
        return {}
    return _request(context, job, attempt, attempt.base_size)


def request_of_member(context: ManagerContext, job: Job, attempt: Attempt) -> Request:
    """Return the request of one member of the attempt. Raises what `base_request` raises."""
    return member_request(_request(context, job, attempt, 1))


def run_of(context: ManagerContext, job: Job) -> Run:
    """Return the rendezvous of the job's newest attempt. Raises `Throttled`, `Unavailable`, `NotPermitted`."""
    return _run(lifecycle.current(job), context.store.request_of(job.name))


def _run(attempt: Attempt, request: Request) -> Run:
    return Run(attempt.training_job_name, str(request.get("RoleArn", "")))


def environment(elastic: Elastic, run: Run, table: str, *, key: str = "", used: int = 0) -> dict[str, str]:
    """Return the environment variables for the nodes of an elastic job; `worker` documents each.

    Args:
        elastic: its bounds.
        run: the rendezvous of the nodes.
        table: the DynamoDB table of the rendezvous; "" if there is none.
        key: secret of the run; "" if there is no rendezvous.
        used: restarts that the job's earlier attempts have used of its total.
    """
    variables = {
        "RUN": run.name,
        "RENDEZVOUS_TABLE": table,
        "RENDEZVOUS_ROLE": run.role,
        "RENDEZVOUS_KEY": key,
        "MIN": str(elastic.min_instances),
        "MAX": str(elastic.max_instances),
        "SIZES": ",".join(map(str, elastic.sizes)) if elastic.values or elastic.step > 1 else "",
        "GRACE": _seconds(elastic.graceful_shutdown_timeout.total_seconds()),
        "FAULTY_WAIT": _seconds(elastic.faulty_scale_down_timeout.total_seconds()),
        "RESTARTS": _budget(elastic.budget, used),
        "HOOK": elastic.hook.value,
    }
    return {f"TRAINMASTER_{name}": value for name, value in variables.items() if value}


def _request(context: ManagerContext, job: Job, attempt: Attempt, instances: int) -> Request:
    """Return the request for this many instances in the attempt's pool. Raises what `base_request` raises."""
    request = context.requests.get(job.name) or context.store.request_of(job.name)
    if job.elastic is not None:
        run = _run(attempt, request)
        key = "" if context.rendezvous is None else context.rendezvous.key(run)
        bounds = lifecycle.bounds_for_nodes(job)
        variables = environment(bounds, run, context.table, key=key, used=job.restarts)
        request = with_instances({**request, "Environment": {**_environment(request), **variables}}, instances)
    if not job.demand.queue_selects_pool:
        return request
    name = next(iter(attempt.units))
    if name in context.pools:
        return for_pool(request, context.pools[name], instances)
    if context.launcher.describe(attempt.training_job_name) is None:
        raise PoolGoneError(f"the pool {name} no longer exists")
    # SageMaker has the training job and answers the same request with that; it would refuse one without a type.
    return for_pool(request, Pool(name, 0, type_=attempt.instance_type), instances)


def _environment(request: Request) -> Mapping[str, str]:
    given = request.get("Environment")
    return given if isinstance(given, Mapping) else {}


def _budget(budget: RestartBudget, used: int) -> str:
    """Return the budget as JSON, in seconds and counts, with the used part of its total; "" if nothing is limited."""
    if budget == RestartBudget():
        return ""
    bounds = {
        "max_restarts": budget.max_restarts,
        "period": budget.period.total_seconds(),
        "max_total_restarts": budget.max_total_restarts,
        "used": None if budget.max_total_restarts is None else used or None,
        "restarts_before_full": budget.restarts_before_full,
        "max_full_restarts": budget.max_full_restarts,
    }
    return json.dumps({name: bound for name, bound in bounds.items() if bound is not None}, separators=(",", ":"))


def _seconds(seconds: float) -> str:
    return f"{seconds:g}"
