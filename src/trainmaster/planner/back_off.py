"""Back-off after a start for which SageMaker had no capacity: the jobs that wait for it, and its early end.

A job in back-off keeps its place in the order: no job of lower priority starts in a pool in which it would fit, since
that job might get the very instances for which it waits. Instances that are given back end its back-off at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.jobs.job import Job, JobState, awaits_capacity, backing_off
from trainmaster.domain.plan import Snapshot


def may_lack_again(job: Job) -> bool:
    """Return True if the last training job of a waiting job got no instances, which takes minutes to turn out."""
    return job.attempt is not None and job.attempt.launched and job.attempt.found_no_capacity


def retries_capacity(job: Job) -> bool:
    """Return True if the last attempt of an active job got no instances, and this one has not got them yet either."""
    if job.state is not JobState.STARTING or job.attempt is None or job.attempt.started_at is not None:
        return False
    return bool(job.past) and job.past[-1].found_no_capacity


def awakened(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return the snapshot without the back-off of jobs in whose pools units became free since their last start."""
    if not any(backing_off(job, now) for job in snapshot.special):
        return snapshot
    freed = {name: at for name in snapshot.pools if (at := _freed_at(snapshot, name)) is not None}
    waiting = tuple(_awakened(job, freed) if awaits_capacity(job, now) else job for job in snapshot.waiting)
    return replace(snapshot, waiting=waiting)


def awakened_by(jobs: Collection[Job], pools: Collection[str], now: datetime) -> tuple[Job, ...]:
    """Return the jobs without the back-off of those that could use pools in which units became free now."""
    return tuple(
        replace(job, retry_at=None)
        if job.retry_at is not None and awaits_capacity(job, now) and not set(pools).isdisjoint(job.demand.pools)
        else job
        for job in jobs
    )


def _awakened(job: Job, freed: Mapping[str, datetime]) -> Job:
    # Counted from the decision to start: what became free while SageMaker refused the start may be free still.
    last = None if job.attempt is None else job.attempt.created_at
    since = max((freed[pool] for pool in job.demand.pools if pool in freed), default=None)
    return replace(job, retry_at=None) if since is not None and last is not None and since > last else job


def _freed_at(snapshot: Snapshot, name: str) -> datetime | None:
    """Return when units of a pool last became free: jobs gave them back, or the pool got larger."""
    pool = snapshot.pools[name]
    times = (snapshot.records.freed.get(name), pool.raised_at, pool.made_at)
    return max((at for at in times if at is not None), default=None)
