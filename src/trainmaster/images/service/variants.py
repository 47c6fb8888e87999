"""Chooses variants for waiting jobs that entered before their endpoint could be described, after it has been.

Until then such a job waits for the endpoint as a whole, a pool of its own that does not count requests to variants.
Jobs that have already started continue without a variant: SageMaker distributes their requests by weight.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import WAITING, Job
from trainmaster.images.domain.endpoint import is_url
from trainmaster.images.domain.variant import choose_variant
from trainmaster.images.domain.work import ImageWork, image_work
from trainmaster.images.ports import KnownEndpoints
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)


def settle_variants(store: Store, known: KnownEndpoints, clock: Clock, jobs: Iterable[Job]) -> tuple[str, ...]:
    """Choose a variant for waiting jobs without one whose endpoint is described by now; return their names.

    If none can be chosen the job stays unchanged, and SageMaker reports the reason when it starts. Conflicting changes
    are left to the next tick. Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    open_ = [
        (job, work)
        for job in jobs
        if job.state in WAITING and (work := image_work(job)) is not None and not work.variant
    ]
    open_ = [(job, work) for job, work in open_ if not is_url(work.endpoint)]
    if not open_:
        return ()
    described = {
        key: endpoint
        for key, endpoint in known.known({work.endpoint for _, work in open_}).items()
        if endpoint.described_at is not None
    }
    settled = []
    for job, work in open_:
        try:
            variant = choose_variant(described[work.endpoint], None, job.name) if work.endpoint in described else ""
        except InvalidRequest as error:
            log.warning("no variant can be chosen", extra={"job": job.name, "cause": error.message})
            continue
        if variant and store.transition([(job, on_variant(job, work, variant, clock.now()))]):
            settled.append(job.name)
    return tuple(settled)


def on_variant(job: Job, work: ImageWork, variant: str, now: datetime) -> Job:
    """Return the waiting job with its variant."""
    reason = f"its endpoint has been described, and the variant {variant} was chosen"
    return lifecycle.set_work(job, replace(work, variant=variant), now, reason)
