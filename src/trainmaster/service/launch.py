"""Create and stop the training jobs of committed attempts.

Each step can be repeated: an attempt's name is fixed before SageMaker is called, so a second create finds the training
job of the first, and a second stop finds it stopping.
"""

from __future__ import annotations

from trainmaster.domain.errors import CapacityExhausted, NotPermitted, RequestRefused
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import NOT_PERMITTED
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.service.attempt_request import PoolGoneError, base_request
from trainmaster.service.capacity.quotas import note_quota
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.observe import apply_observation, poll


def launch(context: ManagerContext, job: Job) -> Job:
    """Create the attempt's training job; return the job as stored then.

    If SageMaker has no capacity, the job is requeued, or returns to its size before a growth; a refused request ends
    it. Raises `Throttled`, `Unavailable`: the job keeps its capacity, and the next pass retries.
    """
    created = create_training_job(context, job)
    return created if isinstance(created, Job) else confirm_launch(context, job, created)


def create_training_job(context: ManagerContext, job: Job) -> CreateResult | Job:
    """Create the attempt's training job, without confirming it; return the job as stored then if there is none."""
    attempt = lifecycle.current(job)
    try:
        created = context.launcher.create(job, attempt, base_request(context, job, attempt))
    except PoolGoneError as error:
        return commit(context, job, lifecycle.requeue_unlaunched(job, context.clock.now(), str(error), context.retries))
    except CapacityExhausted as error:
        note_quota(context, error)
        return _without_capacity(context, job, str(error))
    except NotPermitted as error:
        # An administrator can add a permission; jobs that failed for the lack of it would be lost.
        requeued = lifecycle.requeue_unlaunched(job, context.clock.now(), f"{NOT_PERMITTED}{error}", context.retries)
        return commit(context, job, requeued)
    except RequestRefused as error:
        return commit(context, job, lifecycle.fail(job, context.clock.now(), str(error)))
    if created is CreateResult.NAME_TAKEN:
        reason = f"the name {attempt.training_job_name} belongs to a training job that the queue did not start"
        return commit(context, job, lifecycle.fail(job, context.clock.now(), reason))
    return created


def confirm_launch(context: ManagerContext, job: Job, created: CreateResult) -> Job:
    """Commit that the attempt's training job exists; return the job as stored then."""
    name = lifecycle.current(job).training_job_name
    confirmed = confirm_or_stop(context, job, lifecycle.mark_launched(job), name)
    # A training job of an earlier pass may have started or ended meanwhile.
    return poll(context, confirmed) if created is CreateResult.ALREADY_THERE else confirmed


def confirm_or_stop(context: ManagerContext, before: Job, after: Job, created: str) -> Job:
    """Commit that a training job exists, and stop it if the stored job no longer includes it.

    The transition that dropped it described it before it was created, so it could not stop it. Raises what `stop`
    raises.
    """
    stored = commit(context, before, after)
    wanted = stored.attempt.training_job_names if stored.attempt is not None and stored.units else ()
    if created not in wanted:
        context.launcher.stop(created, end_warm_pool=before.keep_alive)
    return stored


def stop(context: ManagerContext, job: Job) -> Job:
    """Stop the attempt's base and end its warm pool, which would occupy the pool's cap.

    Raises `Throttled`, `Unavailable`, `NotPermitted`: the next pass retries.
    """
    attempt = lifecycle.current(job)
    if context.launcher.stop(attempt.base_name, end_warm_pool=job.keep_alive and not attempt.successor):
        return commit(context, job, lifecycle.mark_stop_sent(job))
    return poll(context, job)


def stop_unconfirmed(context: ManagerContext, job: Job) -> Job:
    """Stop an attempt that is not known to be created. Raises what `stop` raises."""
    name = lifecycle.current(job).training_job_name
    if context.launcher.describe(name) is None:
        return apply_observation(context, job, Observation(training_job_name=name, status=Status.STOPPED))
    confirmed = commit(context, job, lifecycle.mark_launched(job))
    # It may have ended before the commit; then there is nothing to stop.
    return stop(context, confirmed) if confirmed.units else confirmed


def _without_capacity(context: ManagerContext, job: Job, reason: str) -> Job:
    """Return a growing job to its size before the growth and launch it; requeue any other job."""
    now, resize = context.clock.now(), lifecycle.current(job).resizing
    if resize is None or not resize.grows:
        requeued = lifecycle.retry_or_fail(job, FailureClass.CAPACITY, now, reason, context.retries)
        return commit(context, job, requeued)
    smaller = lifecycle.abandon_resize(job, now, reason)
    stored = commit(context, job, smaller)
    return launch(context, stored) if stored == smaller else stored
