"""Admission of other size bounds for an elastic job: what the pools, and the ceilings of its share, allow."""

from __future__ import annotations

from datetime import datetime

from trainmaster.domain.access.ceilings import job_problems
from trainmaster.domain.capacity.resolve import Offers, resolved
from trainmaster.domain.errors import IllegalTransition, NeverFits
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.requests.elastic.size_change import MAXIMUM, MINIMUM, SizeBounds
from trainmaster.ports.store import QueueSettings
from trainmaster.service.admission.feasibility import FeasibilityCheck


def with_bounds(job: Job, bounds: SizeBounds, settings: QueueSettings, now: datetime, who: str) -> Job:
    """Return an elastic job with other size bounds; the job itself if it has them already.

    Raises `IllegalTransition` for a job that is not elastic, or whose attempt cannot be as small; `InvalidRequest` for
    bounds that are no sizes of the job, or a maximum above a ceiling; `NeverFits` for a minimum that no pool can hold.
    """
    if job.elastic is None:
        hint = "Submit it again with a maximum number of instances ('trainmaster:max-instances')."
        raise IllegalTransition(
            f"Job {job.name} is not elastic: its size cannot change.", field=bounds.field, hint=hint
        )
    elastic = bounds.apply(job.elastic)
    if elastic == job.elastic:
        return job
    after = lifecycle.set_bounds(job, elastic, now, who)
    if elastic.max_instances > job.elastic.max_instances:
        _check_ceilings(after, settings)
    if elastic.min_instances > job.elastic.min_instances:
        _check_minimum(after, elastic.min_instances, settings)
    return after


def _check_ceilings(job: Job, settings: QueueSettings) -> None:
    """Raise `InvalidRequest` for a size above a ceiling of the job's share."""
    share = settings.policy.shares.get(job.share)
    for problem in job_problems(job, share, settings.pools, settings.catalogue):
        raise problem.at(MAXIMUM).refusal()


def _check_minimum(job: Job, minimum: int, settings: QueueSettings) -> None:
    """Raise `NeverFits` for a minimum that the job's pool, or any that a waiting job could start in, cannot hold."""
    for name in job.units:
        cap = settings.pools[name].cap if name in settings.pools else 0
        if cap < minimum:
            wrong = f"The job runs in the pool {name}, whose cap is {cap}: it could never have {minimum} instances."
            raise NeverFits(wrong, field=MINIMUM, hint=f"Specify at most {cap}, or raise the cap (PUT /pools).")
    if not job.units:
        demand = resolved(job.demand, Offers(settings.pools, settings.catalogue))
        try:
            FeasibilityCheck(settings.pools, settings.policy.expansion, settings.catalogue).check({}, demand)
        except NeverFits as error:
            raise NeverFits(error.message, field=MINIMUM, hint=error.hint) from error
