"""Bring the snapshot of a pass up to date: resume unfinished actions, and poll what no event reports.

It changes jobs as far as earlier decisions and SageMaker's reports require; new decisions are the planner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from operator import is_

from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.capacity.units import total
from trainmaster.domain.capacity.warm_pools import counting, left_by
from trainmaster.domain.errors import ServiceError
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import OUR_FAULT
from trainmaster.domain.jobs.job import ACTIVE, WAITING, Job, JobState, awaits_capacity
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.times import is_turn
from trainmaster.service.capacity import warm_pools
from trainmaster.service.capacity.external import find_external_jobs
from trainmaster.service.capacity.ownership import OURS, find_creator
from trainmaster.service.capacity.refresh import record_checkpoints, refresh_training_plans, update_reclaim_times
from trainmaster.service.context import ManagerContext, commit, for_each_job
from trainmaster.service.faults import error_types, record_fault
from trainmaster.service.launch import launch, stop, stop_unconfirmed, will_report
from trainmaster.service.observe import poll, poll_training_job
from trainmaster.service.resizing import advance
from trainmaster.service.resizing.speed import record_speeds

MAX_CHECKS = 100
"""Approximate limit of DescribeTrainingJob calls in one tick; AWS does not publish the rate limit."""
POLLED_AFTER_REPORT = timedelta(minutes=15)
"""For this time after an unconfirmed report of a job's end, every tick polls the job."""
REPORTED_WITHIN = timedelta(minutes=1)
"""For this time after a run's start, its report that it has begun is awaited; then its launch is repeated."""
_RUNNING_MINUTES = 10
_OTHER_MINUTES = 2


def reconcile(context: ManagerContext, snapshot: Snapshot, *, tick: bool) -> Snapshot:
    """Return the snapshot after resuming what earlier passes committed and, in a tick, polling SageMaker.

    Raises `Fenced`.
    """
    before = snapshot
    pools = refresh_training_plans(context, snapshot.pools, tick=tick)
    snapshot = snapshot if pools is snapshot.pools else replace(snapshot, pools=pools)
    if tick:
        snapshot = replace(snapshot, external=find_external_jobs(context, snapshot))
    under_way = partial(_is_under_way, now=context.clock.now())
    snapshot = _with_jobs(snapshot, for_each_job(context, snapshot.active, resume, which=under_way))
    if tick:
        snapshot = _with_jobs(snapshot, update_reclaim_times(context, snapshot))
        snapshot = _with_jobs(snapshot, poll_due_jobs(context, snapshot.active))
        snapshot = _with_jobs(snapshot, give_up_starts(context, snapshot))
        snapshot = _with_jobs(snapshot, record_checkpoints(context, snapshot.active))
        snapshot = _with_jobs(snapshot, record_speeds(context, snapshot.active))
    snapshot = warm_pools.refresh(context, snapshot, tick=tick)
    return end_back_offs(context, snapshot, _freed_by_others(before, snapshot))


def end_back_offs(context: ManagerContext, snapshot: Snapshot, pools: frozenset[str]) -> Snapshot:
    """End the back-off of jobs that could use these pools, in which external jobs or warm pools gave units back.

    Nothing else records that these units became free; ends and shrinks of jobs are in the records (`Records.freed`).
    """
    now = context.clock.now()
    asleep = pools and [job.name for job in snapshot.waiting if awaits_capacity(job, now)]
    if not asleep:
        return snapshot
    resolved = (job for job in resolve(snapshot).waiting if job.name in asleep)
    names = {job.name for job in resolved if not pools.isdisjoint(job.demand.pools)}
    jobs = tuple(job for job in snapshot.waiting if job.name in names)
    woken = for_each_job(context, jobs, lambda c, job: commit(c, job, lifecycle.end_back_off(job)))
    stored = {job.name: job for job in woken if job.state in WAITING}
    waiting = (stored.get(job.name) if job.name in names else job for job in snapshot.waiting)
    return replace(snapshot, waiting=tuple(job for job in waiting if job is not None))


def _freed_by_others(before: Snapshot, after: Snapshot) -> frozenset[str]:
    """Return the pools in which external jobs and warm pools hold fewer units than when the pass began."""
    if before.external is after.external and not (before.warm or after.warm):
        return frozenset()
    held = [total([s.external, *(pool.units for pool in counting(s.warm, s.active))]) for s in (before, after)]
    return frozenset(name for name, count in held[0].items() if held[1].get(name, 0) < count)


def _with_jobs(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    """Return the snapshot with its active jobs replaced; jobs that left their capacity move to the waiting ones."""
    jobs = list(jobs)
    if all(map(is_, jobs, snapshot.active)) and len(jobs) == len(snapshot.active):
        return snapshot
    names = {job.name for job in jobs}
    before = {job.name: job for job in snapshot.active}
    warm = (left_by(before[job.name], job) for job in jobs)
    waiting = (job for job in snapshot.waiting if job.name not in names)
    return replace(
        snapshot,
        warm=(*snapshot.warm, *(pool for pool in warm if pool is not None)),
        active=tuple(job for job in jobs if job.state in ACTIVE),
        waiting=(*waiting, *(job for job in jobs if job.state in WAITING)),
    )


def poll_due_jobs(context: ManagerContext, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Poll SageMaker for the jobs that are due, since events may be lost; return the active jobs as stored then.

    Which jobs are due follows from the minute and the name alone, so no state is kept. Other kinds always are: no event
    reports a worker that died.
    """
    now = context.clock.now()
    attempts = (job.attempt for job in active if job.work is None)
    training_jobs = sum(len(attempt.training_job_names) for attempt in attempts if attempt is not None)
    rounds = max(1, training_jobs // MAX_CHECKS)
    return for_each_job(context, active, lambda c, job: _poll(c, job) if _is_due(job, now, rounds) else job)


def give_up_starts(context: ManagerContext, snapshot: Snapshot) -> tuple[Job, ...]:
    """Stop spot jobs that have waited for instances too long and name other pools; return the active jobs as stored."""
    overdue = partial(lifecycle.pends_too_long, pools=snapshot.pools, now=context.clock.now())
    return for_each_job(context, snapshot.active, partial(_give_up_start, overdue=overdue), which=overdue)


def _give_up_start(context: ManagerContext, job: Job, overdue: Callable[[Job], bool]) -> Job:
    # It may be at work: events may be lost, and not every minute polls it.
    job = poll(context, job)
    if not overdue(job):
        return job
    given_up = lifecycle.give_up_start(job, context.clock.now())
    stored = commit(context, job, given_up)
    return resume(context, stored, retry=False) if stored == given_up else stored


def _is_under_way(job: Job, now: datetime) -> bool:
    """Return False for a job for which `resume` has nothing to do, as for nearly all."""
    attempt = job.attempt
    if job.elastic is not None or attempt is None or attempt.stop_asked_at is not None:
        return True
    return not attempt.launched and not (will_report(job) and now < attempt.created_at + REPORTED_WITHIN)


def resume(context: ManagerContext, job: Job, *, retry: bool = True) -> Job:
    """Carry out what was committed for a job and is not known to be done; return the job as stored then.

    Args:
        context: the manager's dependencies.
        job: an active job.
        retry: whether an earlier pass may have begun to carry it out.

    Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    attempt = job.attempt
    if attempt is None:
        return job
    if not attempt.launched:
        job = stop_unconfirmed(context, job) if job.stop_asked else _launch_or_requeue(context, job)
    elif job.stop_asked and not attempt.stop_sent and attempt.base_ended_at is None:
        job = stop(context, job, retry=retry)
    return advance(context, job, retry=retry)


def _launch_or_requeue(context: ManagerContext, job: Job) -> Job:
    """Launch a committed attempt; requeue the job with a back-off if an unexpected exception keeps preventing that.

    Otherwise it would hold its capacity forever. It does not fail: an exception that every job causes would end all
    jobs of the queue, while a new release fixes it. Raises what `launch` raises.
    """
    try:
        return launch(context, job, retry=True)
    except ServiceError:
        raise
    except Exception as error:
        attempt, now = lifecycle.current(job), context.clock.now()
        if attempt.may_appear(now) or find_creator(context, job) in OURS:
            raise
        record_fault(error, job.name, context.faults)
        reason = f"{OUR_FAULT}{error_types(error)}"
        return commit(context, job, lifecycle.requeue_unlaunched(job, now, reason, context.retries))


def _is_due(job: Job, now: datetime, rounds: int) -> bool:
    if job.attempt is None or not job.attempt.launched:
        return False
    reported = job.attempt.end_reported_at
    if job.work is not None or (reported is not None and now < reported + POLLED_AFTER_REPORT):
        return True
    running = job.state is JobState.RUNNING and not job.stopping and job.attempt.faulty_since is None
    return is_turn(job.name, now, rounds * (_RUNNING_MINUTES if running else _OTHER_MINUTES))


def _poll(context: ManagerContext, job: Job) -> Job:
    """Poll the attempt's base and its members."""
    attempt = job.attempt
    if attempt is None:
        return job
    if job.work is not None and (runs := context.kinds.get(job.work.kind)) is not None:
        pool = context.pools.get(job.work.pool)
        runs.reconcile(job, None if pool is None else pool.cap)
    launched = [member.training_job_name for member in attempt.members if member.launched]
    for name in (attempt.base_name, *launched):
        job = poll_training_job(context, job, name)
    return job
