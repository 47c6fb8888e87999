"""Variants for jobs that entered while nobody could describe their endpoint: chosen as soon as somebody has.

Such a job waits for the endpoint as a whole, a pool that does not see what jobs on its variants make. Those that have
started meanwhile go on without one: SageMaker spreads their requests by weight. It must not describe endpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.job import WAITING, Job
from trainmaster.domain.jobs.lifecycle import on_variant
from trainmaster.images.domain.endpoint import is_url
from trainmaster.images.domain.variant import choose_variant
from trainmaster.images.ports import KnownEndpoints
from trainmaster.ports.runtime import Clock
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)


def settle_variants(store: Store, known: KnownEndpoints, clock: Clock, jobs: Iterable[Job]) -> tuple[str, ...]:
    """Choose the variants of those that wait without one, where their endpoint is described by now; their names.

    Where none can be chosen the job stays as it is, and SageMaker tells it why. What somebody else changes meanwhile is
    left to the next tick. Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    open_ = [
        (job, job.image_work.endpoint)
        for job in jobs
        if job.state in WAITING and job.image_work is not None and not job.image_work.variant
    ]
    open_ = [(job, key) for job, key in open_ if not is_url(key)]
    if not open_:
        return ()
    described = {
        key: endpoint
        for key, endpoint in known.known({key for _, key in open_}).items()
        if endpoint.described_at is not None
    }
    settled = []
    for job, key in open_:
        try:
            variant = choose_variant(described[key], None, job.name) if key in described else ""
        except InvalidRequest as error:
            log.warning("no variant can be chosen", extra={"job": job.name, "cause": error.message})
            continue
        if variant and store.transition([(job, on_variant(job, variant, clock.now()))]):
            settled.append(job.name)
    return tuple(settled)
