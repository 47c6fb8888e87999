"""Chooses variants for waiting jobs whose endpoint does not have theirs.

Either the endpoint was not described yet when the job entered; until it is, the job waits for the endpoint as a whole,
a pool of its own that does not count requests to variants. Or the variant has been removed since, as at the end of a
rollout. Jobs that have started keep what they have: all tiles have to be processed by one version of the model.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import InvalidRequest, JobNotFound, UnreadableRow
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import WAITING, Job
from trainmaster.images.domain.endpoint import Endpoint, is_serving, is_url
from trainmaster.images.domain.variant import choose_variant
from trainmaster.images.domain.work import ImageWork, image_work
from trainmaster.images.ports import KnownEndpoints
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)


def settle_variants(store: Store, known: KnownEndpoints, clock: Clock, jobs: Iterable[Job]) -> tuple[str, ...]:
    """Choose a variant for waiting jobs whose endpoint is in service without theirs; return their names.

    If none can be chosen the job stays unchanged, and SageMaker reports the reason when it starts. Conflicting changes
    are left to the next tick. Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    waiting = [(job, work) for job in jobs if job.state in WAITING and (work := image_work(job)) is not None]
    keys = {work.endpoint for _, work in waiting if not is_url(work.endpoint)}
    endpoints = known.known(keys) if keys else {}
    settled = []
    for job, work in waiting:
        endpoint = endpoints.get(work.endpoint)
        if endpoint is None or not _lacks_variant(endpoint, job, work) or _names_variant(store, job, work):
            continue
        variant = _chosen(endpoint, job)
        if variant and store.transition([(job, on_variant(job, work, variant, clock.now()))]):
            settled.append(job.name)
    return tuple(settled)


def on_variant(job: Job, work: ImageWork, variant: str, now: datetime) -> Job:
    """Return the waiting job with its variant."""
    cause = f"no longer has the variant {work.variant}" if work.variant else "has been described"
    reason = f"its endpoint {cause}, and the variant {variant} was chosen"
    return lifecycle.set_work(job, replace(work, variant=variant), now, reason)


def _lacks_variant(endpoint: Endpoint, job: Job, work: ImageWork) -> bool:
    """Return whether the job has no variant, or one that its endpoint has no longer and that has processed nothing."""
    if not work.variant:
        return True
    gone = bool(endpoint.variants) and work.variant not in [each.name for each in endpoint.variants]
    return gone and is_serving(endpoint) and not job.attempts


def _names_variant(store: Store, job: Job, work: ImageWork) -> bool:
    """Return whether the job's variant is the one that its request names, which is always honored."""
    if not work.variant:
        return False
    try:
        parameters = store.request_of(job.name).get("imageProcessorParameters") or {}
    except (JobNotFound, UnreadableRow):
        return True
    return bool(parameters.get("TargetVariant"))


def _chosen(endpoint: Endpoint, job: Job) -> str:
    """Return the variant for a job; "" if none can be chosen now."""
    if endpoint.described_at is None:
        return ""
    try:
        return choose_variant(endpoint, None, job.name)
    except InvalidRequest as error:
        log.warning("no variant can be chosen", extra={"job": job.name, "cause": error.message})
        return ""
