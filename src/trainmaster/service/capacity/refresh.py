"""Refresh what ticks learn about capacity: training plans' windows, reclaim times, and the jobs' newest checkpoints.

The values only improve later decisions, so after an error of AWS the next tick tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime

from trainmaster.domain.capacity.pools import with_window
from trainmaster.domain.capacity.units import OVER, Kind, PlanStatus, PlanWindow, Pool, reclaimed_at
from trainmaster.domain.errors import NotPermitted, Throttled, Unavailable, VersionConflict
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.requests.fields import part, text
from trainmaster.domain.times import is_turn, names_in_turn
from trainmaster.ports.store import Store
from trainmaster.service.context import ManagerContext, for_each_job
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

PERIOD = 5
"""Minutes between two reads of a training plan, or of a job's checkpoints."""
MAX_CHECKPOINTS = 10
"""Jobs whose checkpoints one tick reads; each may take five S3 calls."""


def refresh_training_plans(context: ManagerContext, pools: Mapping[str, Pool], *, tick: bool) -> Mapping[str, Pool]:
    """Describe the training plans that are due and store their windows; return the pools with these windows.

    Every pass describes a plan that is not known yet, so that a new pool is usable at once.
    """
    now = context.clock.now()
    plans = [pool for pool in pools.values() if pool.kind is Kind.TRAINING_PLAN]
    due = [pool for pool in plans if pool.plan_status is None or (tick and _is_due(pool, now))]
    if not due:
        return pools
    windows = {pool.plan_arn: window for pool in due if (window := _describe(context, pool)) is not None}
    known = {name: with_window(pool, windows) for name, pool in pools.items()}
    if known != dict(pools):
        _store_windows(context.store, windows)
    return known


def update_reclaim_times(context: ManagerContext, snapshot: Snapshot) -> tuple[Job, ...]:
    """Update when SageMaker takes back the instances of active jobs; return the jobs as stored then.

    The time moves when a training plan continues its jobs from one of its reserved capacities to the next.
    """
    return for_each_job(context, snapshot.active, lambda _, job: _with_reclaim_time(context, job, snapshot.pools))


def record_checkpoints(context: ManagerContext, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Record the newest checkpoints of the running jobs that are due; return the active jobs as stored then.

    Which jobs are due follows from the minute and the name alone, so no state is kept.
    """
    if context.checkpoints is None:
        return active
    names = [job.name for job in active if _may_lose_work(job)]
    due, result = names_in_turn(names, context.clock.now(), PERIOD, MAX_CHECKPOINTS), list(active)
    for index, job in enumerate(active):
        if job.name in due:
            try:
                with isolate_fault(job.name, context.faults):
                    result[index] = _with_checkpoint(context, job)
            except (Throttled, Unavailable) as error:
                log.warning("could not read checkpoints", extra={"job": job.name, "cause": str(error)})
                break
    return tuple(result)


def _is_due(pool: Pool, now: datetime) -> bool:
    """Return whether to describe a plan: every few minutes, and every minute while a change of its status is due."""
    over = pool.plan_status in OVER
    begins = pool.plan_status is not PlanStatus.ACTIVE and pool.starts_at is not None and now >= pool.starts_at
    ends = pool.ends_at is not None and now >= pool.ends_at
    regular = is_turn(pool.name, now, PERIOD)
    return regular or (not over and (begins or ends))


def _describe(context: ManagerContext, pool: Pool) -> PlanWindow | None:
    try:
        window = context.launcher.describe_training_plan(pool.plan_arn or "")
    except (Throttled, Unavailable, NotPermitted) as error:
        log.warning("could not describe a training plan", extra={"pool": pool.name, "cause": str(error)})
        return None
    if window is None:
        log.warning("SageMaker does not know a pool's training plan", extra={"pool": pool.name, "plan": pool.plan_arn})
    return window


def _store_windows(store: Store, windows: Mapping[str | None, PlanWindow]) -> None:
    """Store the windows with the pools; after a conflict with a change of the settings, a later tick stores them."""
    stored = store.settings()
    try:
        store.set_settings(pools=[with_window(pool, windows) for pool in stored.pools.values()], version=stored.version)
    except VersionConflict:
        log.info("the settings changed meanwhile; training plans are stored later")


def _with_reclaim_time(context: ManagerContext, job: Job, pools: Mapping[str, Pool]) -> Job:
    attempt, at = job.attempt, reclaimed_at(job.units, pools)
    if attempt is None or at is None or attempt.reclaimed_at == at or job.stopping:
        return job
    return _commit(context, job, lifecycle.set_reclaim_time(job, at))


def _may_lose_work(job: Job) -> bool:
    """Return whether the work lost to a preemption depends on checkpoints; other kinds report their progress."""
    keeps = job.checkpointed and job.work is None
    return job.state is JobState.RUNNING and job.preemptible and keeps and not job.stopping


def _with_checkpoint(context: ManagerContext, job: Job) -> Job:
    uri = text(part(context.store.request_of(job.name), "CheckpointConfig"), "S3Uri")
    if context.checkpoints is None or uri is None:
        return job
    newest = context.checkpoints.newest(uri)
    after = None if newest is None else lifecycle.record_checkpoint(job, newest)
    return job if after is None else _commit(context, job, after)


def _commit(context: ManagerContext, before: Job, after: Job) -> Job:
    """Commit a change; return the job as stored then. After a conflict, a later tick finds the same again."""
    return after if context.store.transition([(before, after)]) else context.store.find(before.name) or before
