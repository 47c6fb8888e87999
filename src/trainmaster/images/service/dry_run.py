"""Predicted consequences of a request for an image job, for itself and for other jobs; nothing is stored.

No image and no AWS API is read: the caller gives the image's size, and the endpoint is taken from the queue's table, or
from the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.images.domain.endpoint import Endpoint, Limits, has_unknown_variants, key_of, never_described
from trainmaster.images.domain.endpoint_set import caps_of, endpoint_pools, needed
from trainmaster.images.domain.request import SIZE_FIELD
from trainmaster.images.domain.tiling import Window
from trainmaster.images.domain.variant import choose_variant
from trainmaster.images.ports import KnownEndpoints
from trainmaster.images.service.intake import (
    IncomingRequest,
    RequestChecks,
    check_share_of,
    existing_job,
    job_of,
    work_in,
)
from trainmaster.images.service.submissions import SHARE_FIELD
from trainmaster.images.service.url_check import check_model
from trainmaster.service.admission.shares import check_budget
from trainmaster.service.change import ApiContext
from trainmaster.service.explain.consequences import Consequences, consequences
from trainmaster.service.explain.explain import Explanation, explain

USUAL_VARIANT = "AllTraffic"
"""Name that SageMaker's SDKs give to an endpoint's only variant."""


@dataclass(frozen=True, slots=True)
class DryRunContext:
    """Dependencies of a dry run beside the queue's.

    Attributes:
        known: the stored endpoints.
        limits: the deployment's settings.
        account: its AWS account.
        checks: checks of requests.
    """

    known: KnownEndpoints
    limits: Limits
    account: str
    checks: RequestChecks


def foresee(
    context: ApiContext, dry_run: DryRunContext, asked: IncomingRequest, size: tuple[int, int] | None
) -> tuple[Explanation, tuple[str, ...], Consequences]:
    """Return the explanation of a request as if it were sent now, with its warnings and its effects on other jobs.

    Args:
        context: the queue.
        dry_run: the other dependencies.
        asked: the request as it would be sent.
        size: width and height in pixels of the image, or of its region of interest; None only for a request whose job
            exists already.

    Raises `InvalidRequest`, `ShareNotAllowed`, `BudgetExhausted`, `NameTaken`.
    """
    policy = context.store.settings(catalogue=False).policy
    there, now = existing_job(context.store, asked), context.clock.now()
    advice: tuple[str, ...] = ()
    snapshot = None
    if there is not None:
        job = there
    else:
        check_share_of(context.access, asked, policy)
        dry_run.checks.resources.check(asked.body, asked.caller)
        check_model(dry_run.checks.reachable, asked.request)
        job, advice = _build_job(dry_run, asked, size, now)
        snapshot = check_budget(context.store, context.clock, job, asked.body, policy, field=SHARE_FIELD)
    snapshot = _with_its_endpoint(snapshot or context.store.read_snapshot(), dry_run, job, now)
    explanation = explain(context.store, now, [job], snapshot)[job.name]
    return explanation, advice, consequences(snapshot, now, job) if there is None else Consequences()


def _build_job(
    dry_run: DryRunContext, asked: IncomingRequest, size: tuple[int, int] | None, now: datetime
) -> tuple[Job, tuple[str, ...]]:
    """Return the job that the request would create for an image of this size."""
    if size is None:
        example = f'"{SIZE_FIELD}": [20480, 20480]'
        hint = f"Specify its width and height, or those of the region of interest if there is one: {example}."
        raise InvalidRequest(
            "A plan does not read the image, so the request must specify its size.", field=SIZE_FIELD, hint=hint
        )
    request = asked.request
    key = key_of(request.processor.name, role=request.processor.assumed_role, account=dry_run.account)
    endpoint = dry_run.known.known([key]).get(key) or never_described(key)
    variant, advice = _variant(endpoint, asked)
    part = Window(0, 0, *size)
    return job_of(asked, work_in(dry_run.limits, request, part, endpoint, variant), now), advice


def _variant(endpoint: Endpoint, asked: IncomingRequest) -> tuple[str, tuple[str, ...]]:
    """Return the job's variant; for an endpoint whose variants are not known yet, the likely one."""
    request = asked.request
    if endpoint.http or not has_unknown_variants(endpoint):
        return choose_variant(endpoint, request.target_variant, request.job_id), ()
    variant = request.target_variant or USUAL_VARIANT
    taken = f"it is assumed to have the variant {variant} with one instance."
    return variant, (f"The endpoint {endpoint.key} is not known yet: {taken}",)


def _with_its_endpoint(snapshot: Snapshot, dry_run: DryRunContext, job: Job, now: datetime) -> Snapshot:
    """Return the snapshot with the pools of the job's endpoint, which no other job may need."""
    asked = needed([job])
    pools = endpoint_pools(asked, dry_run.known.known(asked), caps_of(dry_run.limits, lambda: now))
    return replace(snapshot, pools={**pools, **snapshot.pools})
