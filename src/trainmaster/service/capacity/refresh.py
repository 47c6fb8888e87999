"""What is learned about capacity, mostly by ticks: when training plans are usable, when jobs last saved their work.

Both only make later decisions better, so trouble at AWS costs this tick's news and nothing else. It must not decide.
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
from trainmaster.ports.store import Store
from trainmaster.service.context import ManagerContext, for_each_job
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

PERIOD = 5
"""Minutes after which a plan, or a job's checkpoints, are looked at again."""
MAX_LOOKS = 10
"""Jobs whose checkpoints one tick looks for; each may take five calls of S3."""


def refresh_training_plans(context: ManagerContext, pools: Mapping[str, Pool], *, tick: bool) -> Mapping[str, Pool]:
    """Ask about the training plans whose turn it is; the pools with what is known then, which is stored with them.

    A plan of which nothing is known is asked about by every pass, so that a new pool is usable at once.
    """
    now = context.clock.now()
    plans = [pool for pool in pools.values() if pool.kind is Kind.TRAINING_PLAN]
    due = [pool for pool in plans if pool.plan_status is None or (tick and _is_due(pool, now))]
    windows = {pool.plan_arn: window for pool in due if (window := _ask(context, pool)) is not None}
    known = {name: with_window(pool, windows) for name, pool in pools.items()}
    if known != dict(pools):
        _store(context.store, windows)
    return known


def update_reclaim_times(context: ManagerContext, snapshot: Snapshot) -> tuple[Job, ...]:
    """Tell attempts when their instances are taken back, where that has moved; the active jobs as they stand then.

    A plan of several reserved capacities keeps its jobs from one to the next.
    """
    return for_each_job(context, snapshot.active, lambda _, job: _on_time(context, job, snapshot.pools))


def record_checkpoints(context: ManagerContext, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Look when those running jobs last saved their work whose turn it is; returns the active jobs as they stand then.

    Whose turn it is follows from the minute and the name alone, so that nothing needs to be written down.
    """
    if context.checkpoints is None:
        return active
    minute = int(context.clock.now().timestamp()) // 60
    saving = sorted(job.name for job in active if _may_lose_work(job))
    period = max(PERIOD, -(-len(saving) // MAX_LOOKS))
    due = frozenset([name for name in saving if (minute + sum(name.encode())) % period == 0][:MAX_LOOKS])
    result = list(active)
    for index, job in enumerate(active):
        if job.name in due:
            try:
                with isolate_fault(job.name, context.faults):
                    result[index] = _look(context, job)
            except (Throttled, Unavailable) as error:
                log.warning("cannot look for checkpoints now", extra={"job": job.name, "cause": str(error)})
                break
    return tuple(result)


def _is_due(pool: Pool, now: datetime) -> bool:
    """Every few minutes, and every minute while a change is due that SageMaker has not told yet."""
    over = pool.plan_status in OVER
    begins = pool.plan_status is not PlanStatus.ACTIVE and pool.starts_at is not None and now >= pool.starts_at
    ends = pool.ends_at is not None and now >= pool.ends_at
    regular = (int(now.timestamp()) // 60 + sum(pool.name.encode())) % PERIOD == 0
    return regular or (not over and (begins or ends))


def _ask(context: ManagerContext, pool: Pool) -> PlanWindow | None:
    try:
        window = context.launcher.describe_training_plan(pool.plan_arn or "")
    except (Throttled, Unavailable, NotPermitted) as error:
        log.warning("cannot ask about a training plan", extra={"pool": pool.name, "cause": str(error)})
        return None
    if window is None:
        log.warning("SageMaker does not know a pool's training plan", extra={"pool": pool.name, "plan": pool.plan_arn})
    return window


def _store(store: Store, windows: Mapping[str | None, PlanWindow]) -> None:
    """Somebody may be setting pools at this moment; then the next look finds the same again."""
    stored = store.settings()
    try:
        store.set_settings(pools=[with_window(pool, windows) for pool in stored.pools.values()], version=stored.version)
    except VersionConflict:
        log.info("the pools were being changed; their training plans are stored later")


def _on_time(context: ManagerContext, job: Job, pools: Mapping[str, Pool]) -> Job:
    """The job with the time at which its instances are taken back, where that has moved."""
    attempt, at = job.attempt, reclaimed_at(job.units, pools)
    if attempt is None or at is None or attempt.reclaimed_at == at or job.stopping:
        return job
    return _commit(context, job, lifecycle.set_reclaim_time(job, at))


def _may_lose_work(job: Job) -> bool:
    """Whether anybody would ask how much of its work a preemption loses; an image job tells by itself."""
    keeps = job.checkpointed and job.image_work is None
    return job.state is JobState.RUNNING and job.preemptible and keeps and not job.stopping


def _look(context: ManagerContext, job: Job) -> Job:
    uri = text(part(context.store.request_of(job.name), "CheckpointConfig"), "S3Uri")
    if context.checkpoints is None or uri is None:
        return job
    newest = context.checkpoints.newest(uri)
    after = None if newest is None else lifecycle.record_checkpoint(job, newest)
    return job if after is None else _commit(context, job, after)


def _commit(context: ManagerContext, before: Job, after: Job) -> Job:
    """Where somebody was faster, the next look tells the same again."""
    return after if context.store.transition([(before, after)]) else context.store.find(before.name) or before
