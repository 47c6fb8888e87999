"""What every pass does for the jobs that hold capacity: it ends what earlier passes began, and asks after silent ones.

It must not decide what starts, stops or changes its size.
"""

from __future__ import annotations

from datetime import timedelta

from trainmaster.domain.errors import ServiceTrouble
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import OUR_FAULT
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.images.domain.demand import pool_of
from trainmaster.service.context import ManagerContext, commit, for_each_job
from trainmaster.service.faults import error_types, note
from trainmaster.service.launch import launch, poll_training_job, stop, stop_unconfirmed
from trainmaster.service.resizing import advance

MAX_CHECKS = 100
"""About as many DescribeTrainingJob calls as one tick makes at most (its rate is not published)."""
GIVEN_BACK_AFTER = timedelta(minutes=2)
"""An attempt that a fault of ours keeps from being created for so long holds its capacity no longer."""
_QUIET_MINUTES = 10
_BUSY_MINUTES = 2


def resume_unfinished(context: ManagerContext, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Do what an earlier pass committed and did not get done; returns the active jobs as they stand then."""
    return for_each_job(context, active, resume)


def poll_due_jobs(context: ManagerContext, active: tuple[Job, ...]) -> tuple[Job, ...]:
    """Ask SageMaker about the jobs whose turn it is: events may have been lost.

    Whose turn it is follows from the minute and the name alone, so that nothing needs to be written down. Image jobs'
    always is: nobody else tells of workers that have died.
    """
    now = context.clock.now()
    minute = int(now.timestamp()) // 60
    asked_of = (job.attempt for job in active if job.image_work is None)
    training_jobs = sum(len(attempt.training_job_names) for attempt in asked_of if attempt is not None)
    rounds = max(1, training_jobs // MAX_CHECKS)
    return for_each_job(context, active, lambda h, job: _look_at_all(h, job) if _is_due(job, minute, rounds) else job)


def resume(context: ManagerContext, job: Job) -> Job:
    """Do what was committed for this job and is not known to be done; the job as it stands then.

    Raises `Throttled`, `Unavailable`, `NotPermitted`.
    """
    attempt = job.attempt
    if attempt is None:
        return job
    if not attempt.launched:
        job = stop_unconfirmed(context, job) if job.stop_asked else _launched(context, job)
    elif job.stop_asked and not attempt.stop_sent and attempt.base_ended_at is None:
        job = stop(context, job)
    return advance(context, job)


def _launched(context: ManagerContext, job: Job) -> Job:
    """Launch what an earlier pass has committed; where a fault of ours keeps it from that, it waits with back-off.

    It would hold its capacity for ever. Nor is it ended: a fault that every job meets would end the whole queue's, and
    a new release mends it. Raises like `launch`.
    """
    try:
        return launch(context, job)
    except ServiceTrouble:
        raise
    except Exception as error:
        attempt, now = lifecycle.current(job), context.clock.now()
        since = attempt.created_at + GIVEN_BACK_AFTER
        if now < since or context.launcher.describe(attempt.training_job_name) is not None:
            raise
        note(error, job.name, context.faults)
        return commit(context, job, lifecycle.give_back(job, now, f"{OUR_FAULT}{error_types(error)}", context.retries))


def _is_due(job: Job, minute: int, rounds: int) -> bool:
    if job.attempt is None or not job.attempt.launched:
        return False
    if job.image_work is not None:
        return True
    quiet = job.state is JobState.RUNNING and not job.stopping and job.attempt.faulty_since is None
    period = rounds * (_QUIET_MINUTES if quiet else _BUSY_MINUTES)
    return (minute + sum(job.name.encode())) % period == 0


def _look_at_all(context: ManagerContext, job: Job) -> Job:
    """Ask after the attempt's own training job and those of its members."""
    attempt = job.attempt
    if attempt is None:
        return job
    if job.image_work is not None and context.images is not None:
        pool = context.pools.get(pool_of(job.image_work))
        context.images.tend(job, None if pool is None else pool.cap)
    launched = [member.training_job_name for member in attempt.members if member.launched]
    for name in (attempt.training_job_name, *launched):
        job = poll_training_job(context, job, name)
    return job
