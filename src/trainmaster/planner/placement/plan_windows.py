"""Training plans: whether a job may start on a plan's units now and still save its work before SageMaker reclaims them.

SageMaker reclaims a plan's instances from 30 minutes before the reserved capacity ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool, Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.reasons.rules import PlanClosed
from trainmaster.domain.times import clock

SAFE_QUANTILE = 0.9
"""The run-time quantile for a job without checkpoints, which has only one chance."""
CHECKPOINT_INTERVAL = timedelta(minutes=10)
"""The assumed interval of checkpoints until some are observed."""
_UNUSABLE = {
    None: "SageMaker has not reported yet when its training plan is usable",
    PlanStatus.PENDING: "its training plan is not paid for yet",
    PlanStatus.FAILED: "its training plan has failed",
    PlanStatus.EXPIRED: "its training plan has ended",
}


def window_refusal(
    job: Job, units: Units, pools: Mapping[str, Pool], now: datetime, history: History
) -> PlanClosed | None:
    """Return why the job may not start on these units now, however free they are; None if it may.

    A job may not start before the plan is Active or after its end, nor if its work would be lost: without checkpoints
    it has to be expected to end before the instances are reclaimed, with checkpoints to write one.

    Args:
        job: a waiting job.
        units: what it would start on, by pool.
        pools: the pools in force.
        now: UTC.
        history: run times and startup times by class.
    """
    return next((found for pool in _plans(units, pools) if (found := _refusal(pool, job, now, history))), None)


def checkpoint_interval(job: Job) -> timedelta:
    """Return how often the job saves its work: the shortest interval observed between two checkpoints."""
    intervals = (job.attempt_totals.saves_every, *(attempt.saves_every for attempt in job.attempts))
    return min((span for span in intervals if span is not None), default=CHECKPOINT_INTERVAL)


def _plans(units: Units, pools: Mapping[str, Pool]) -> Iterator[Pool]:
    found = (pools[name] for name in units if name in pools)
    return (pool for pool in found if pool.kind is Kind.TRAINING_PLAN)


def _refusal(pool: Pool, job: Job, now: datetime, history: History) -> PlanClosed | None:
    if pool.plan_status in _UNUSABLE:
        return PlanClosed(pool.name, None, _UNUSABLE[pool.plan_status])
    if pool.starts_at is not None and now < pool.starts_at:
        return PlanClosed(pool.name, pool.starts_at, "its training plan is not active yet")
    if pool.ends_at is not None and now >= pool.ends_at:
        # If more capacity is reserved, the next Describe shows it.
        return PlanClosed(pool.name, None, "its training plan has ended")
    if pool.reclaimed_at is not None and now + _min_time(job, history) > pool.reclaimed_at:
        return PlanClosed(pool.name, None, _too_late(job, pool.reclaimed_at))
    return None


def _min_time(job: Job, history: History) -> timedelta:
    """Return how long the job must hold units before its work there is safe."""
    startup = timedelta(seconds=history.startup(job))
    if job.checkpointed:
        return startup + min(checkpoint_interval(job), _run_time(job, history))
    return startup + _run_time(job, history)


def _run_time(job: Job, history: History) -> timedelta:
    """Return how long one attempt of the job runs from its beginning."""
    seconds = history.run_time(job, 0.0, SAFE_QUANTILE)
    return job.max_runtime if seconds is None else min(timedelta(seconds=seconds), job.max_runtime)


def _too_late(job: Job, reclaimed_at: datetime) -> str:
    what = "it could save its work" if job.checkpointed else "it is expected to end, and it writes no checkpoints"
    return f"SageMaker reclaims the plan's instances from {clock(reclaimed_at)}, before {what}"
