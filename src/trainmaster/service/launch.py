"""Create and stop the training jobs of committed attempts.

Each step can be repeated: an attempt's name is fixed before SageMaker is called, so a second create finds the training
job of the first, and a second stop finds it stopping.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import (
    CapacityExhausted,
    NotPermitted,
    RequestRefused,
    ServiceError,
    Throttled,
    Unavailable,
)
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import NOT_PERMITTED
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.domain.times import VISIBLE_AFTER
from trainmaster.ports.sagemaker import CreateResult, Creator, StopResult, Unconfirmed
from trainmaster.service.admission.launch_check import LaunchNotAllowedError, check_repeated_launch
from trainmaster.service.attempt_request import PoolGoneError, base_request
from trainmaster.service.capacity.ownership import OURS, UNSETTLED, find_creator
from trainmaster.service.capacity.quotas import note_quota
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.observe import apply_observation, deleted, poll

log = logging.getLogger(__name__)

MAX_TAKEN_NAMES = 10
"""Attempts in a row that may be replaced by the next one because others' training jobs have their names."""


def launch(context: ManagerContext, job: Job, *, retry: bool = False) -> Job:
    """Create the attempt's training job; return the job as stored then.

    If SageMaker has no capacity, the job is requeued, or returns to its size before a growth; a refused request ends
    it. Raises `Throttled`, `Unavailable`: the job keeps its capacity, and the next pass retries.

    Args:
        context: the manager's dependencies.
        job: a job with an attempt that is not known to be created.
        retry: whether an earlier pass may have called SageMaker for it.
    """
    created = create_training_job(context, job, retry=retry)
    if isinstance(created, Job):
        return created
    reports = created is CreateResult.NEW and will_report(job) and not retry
    return job if reports else confirm_launch(context, job, created)


def will_report(job: Job) -> bool:
    """Return whether the first report of the attempt confirms its launch, so that no write of its own has to.

    Runs of other kinds report their beginning. A launch without a report is repeated and then confirmed (`reconcile`).
    """
    return job.work is not None


def create_training_job(context: ManagerContext, job: Job, *, retry: bool = False) -> CreateResult | Job:
    """Create the attempt's training job, without confirming it; return the job as stored then if there is none."""
    if retry and lifecycle.current(job).refused:
        return _after_doubt(context, job)
    try:
        created = _create(context, job, retry=retry)
    except Unconfirmed as error:
        return _after_unconfirmed(context, job, error)
    except (Throttled, Unavailable):
        called = lifecycle.mark_create_called(job, context.clock.now())
        if called is not job:
            commit(context, job, called)
        raise
    except REFUSALS as error:
        return _after_refusal(context, job, error)
    if created is CreateResult.EARLIER_START:
        return _with_another_number(context, job)
    if created is CreateResult.NAME_TAKEN:
        return _after_taken_name(context, job)
    return created


REFUSALS = (PoolGoneError, LaunchNotAllowedError, CapacityExhausted, NotPermitted, RequestRefused)
"""Errors after which there is no training job, unless an earlier call was accepted."""


def _create(context: ManagerContext, job: Job, *, retry: bool) -> CreateResult:
    attempt = lifecycle.current(job)
    try:
        request = base_request(context, job, attempt)
    except PoolGoneError as error:
        raise Unconfirmed(str(error), error) if retry else error from error
    check_repeated_launch(context, job, request, attempt.training_job_name, retry=retry)
    return context.launcher.create(job, attempt, request, retry=retry)


def _after_unconfirmed(context: ManagerContext, job: Job, error: Unconfirmed) -> Job:
    """Apply the refusal of a repeated call once no earlier one can have been accepted. Raises the error until then.

    Until then the attempt keeps its units, since its training job may run, and is not created again: another call
    without an answer would extend the doubt.
    """
    if not lifecycle.current(job).may_appear(context.clock.now()):
        return _after_taken_name(context, job) if error.refusal is None else _after_refusal(context, job, error.refusal)
    if error.refusal is not None:
        if isinstance(error.refusal, CapacityExhausted):
            note_quota(context, error.refusal)
        commit(context, job, lifecycle.mark_refused(job, str(error.refusal)))
    raise error


def _after_doubt(context: ManagerContext, job: Job) -> CreateResult | Job:
    """Look for the training job of an attempt whose repeated call was refused; requeue the job once none can appear.

    Raises `Unconfirmed` until then.
    """
    attempt, creator = lifecycle.current(job), find_creator(context, job)
    if creator is Creator.ATTEMPT:
        return CreateResult.ALREADY_THERE
    if creator is Creator.EARLIER_START:
        return _with_another_number(context, job)
    if creator is Creator.OTHER:
        return _after_taken_name(context, job)
    if attempt.may_appear(context.clock.now()):
        raise Unconfirmed(attempt.refused)
    if creator is Creator.UNKNOWN:
        return _after_taken_name(context, job)
    return _without_capacity(context, job, attempt.refused)


def _after_refusal(context: ManagerContext, job: Job, error: ServiceError) -> Job:
    """Requeue, hold or fail the job, or return a growing job to its size before; return it as stored then."""
    now, reason = context.clock.now(), str(error)
    if isinstance(error, LaunchNotAllowedError):
        return commit(context, job, lifecycle.hold_unlaunched(job, now, reason, context.retries))
    if isinstance(error, CapacityExhausted):
        note_quota(context, error)
        return _without_capacity(context, job, reason)
    if isinstance(error, RequestRefused):
        return commit(context, job, lifecycle.fail(job, now, reason))
    if isinstance(error, NotPermitted):
        # An administrator can add a permission; jobs that failed for the lack of it would be lost.
        reason = f"{NOT_PERMITTED}{reason}"
    return commit(context, job, lifecycle.requeue_unlaunched(job, now, reason, context.retries))


def _with_another_number(context: ManagerContext, job: Job) -> Job:
    """Requeue a job whose training job's name an earlier start of its own has used after all; stop what is left of it.

    The attempt counts as launched, so the next one has another number.
    """
    name, now = lifecycle.current(job).training_job_name, context.clock.now()
    context.launcher.stop(name, end_warm_pool=job.keep_alive)
    reason = f"an earlier start created {name}; the next attempt has another name"
    used = replace(job, attempt=replace(lifecycle.current(job), launched=True))
    return commit(context, job, lifecycle.requeue_unlaunched(used, now, reason, context.retries))


def _after_taken_name(context: ManagerContext, job: Job) -> Job:
    """Launch the next attempt in place of one whose name another's training job has; return the job as stored then.

    Later attempts' names can be foreseen, so that anyone who may create training jobs could otherwise end the job. The
    first attempt has the user's own name, under which their tools would find the other training job: the job fails.
    After `MAX_TAKEN_NAMES` in a row a person has to release the job.
    """
    attempt, now = lifecycle.current(job), context.clock.now()
    reason = _taken(attempt.training_job_name)
    if attempt.number == 1:
        return commit(context, job, lifecycle.fail(job, now, reason))
    log.warning("an attempt's name is taken", extra={"job": job.name, "trainingJob": attempt.training_job_name})
    if lifecycle.taken_names(job) >= MAX_TAKEN_NAMES:
        # The attempt counts as launched, so the next one has another number.
        used = replace(job, attempt=replace(attempt, launched=True))
        return commit(context, job, lifecycle.hold_unlaunched(used, now, _all_taken(reason), context.retries))
    renumbered = lifecycle.take_next_number(job, now, reason)
    stored = commit(context, job, renumbered)
    return launch(context, stored) if stored == renumbered else stored


def _all_taken(reason: str) -> str:
    return f"{reason}, as did those of the {MAX_TAKEN_NAMES} attempts before it"


def _taken(name: str) -> str:
    return f"the name {name} belongs to a training job that the queue did not start"


def confirm_launch(context: ManagerContext, job: Job, created: CreateResult) -> Job:
    """Commit that the attempt's training job exists; return the job as stored then."""
    name = lifecycle.current(job).training_job_name
    confirmed = confirm_or_stop(context, job, lifecycle.mark_launched(job, context.clock.now()), name)
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


def stop(context: ManagerContext, job: Job, *, retry: bool = False) -> Job:
    """Stop the attempt's base and end its warm pool, which would occupy the pool's cap.

    Raises `Throttled`, `Unavailable`, `NotPermitted`: the next pass retries.

    Args:
        context: the manager's dependencies.
        job: a job whose attempt is to stop.
        retry: whether an earlier pass may have called SageMaker for it, so that SageMaker stops it on that call.
    """
    if not retry and _is_stopping(context, job):
        return commit(context, job, lifecycle.mark_stopped_outside(job))
    # Stored before the call: if the manager dies in it, the end of the attempt is still known to be the queue's.
    called = lifecycle.mark_stop_called(job, context.clock.now())
    job = commit(context, job, called)
    if job != called:
        return job
    try:
        attempt = lifecycle.current(job)
        result = context.launcher.stop(attempt.base_name, end_warm_pool=job.keep_alive and not attempt.successor)
    except NotPermitted as error:
        return _after_forbidden_stop(context, job, error)
    if result is StopResult.ACCEPTED:
        return commit(context, job, lifecycle.mark_stop_sent(job))
    if result is StopResult.ALREADY_STOPPING:
        return _already_stopping(context, job, retry=retry)
    return poll(context, job)


def _after_forbidden_stop(context: ManagerContext, job: Job, error: NotPermitted) -> Job:
    """End an attempt whose training job was deleted and its name used by another's, which the role may not stop.

    Raises the error if the training job is the queue's: the job's history has it once, and the next pass retries.
    """
    attempt, now = lifecycle.current(job), context.clock.now()
    creator = find_creator(context, job, attempt.base_name)
    # The tags of a young training job may not be visible yet, to IAM neither.
    visible = not attempt.may_appear(now)
    if creator is Creator.OTHER or (creator is Creator.UNKNOWN and visible):
        return apply_observation(context, job, deleted(attempt.base_name))
    reason = f"the queue may not stop {attempt.base_name}: {error}"
    if visible and all(change.reason != reason for change in job.history):
        commit(context, job, lifecycle.note(job, now, reason))
    raise error


def _is_stopping(context: ManagerContext, job: Job) -> bool:
    """Return whether SageMaker stops the attempt already: it accepts a repeated stop like the first one.

    An error of this call must not keep the job from stopping.
    """
    try:
        seen = context.launcher.describe(lifecycle.current(job).base_name)
    except (Throttled, Unavailable, NotPermitted):
        return False
    return seen is not None and seen.status is Status.STOPPING


def _already_stopping(context: ManagerContext, job: Job, *, retry: bool) -> Job:
    """Note that SageMaker stops the attempt on another's request, or on an earlier one of the queue.

    Which one is unknown after an earlier call: its end will show since when it was stopping.
    """
    if not retry:
        return commit(context, job, lifecycle.mark_stopped_outside(job))
    seen = context.launcher.describe(lifecycle.current(job).base_name)
    if seen is None or seen.status is not Status.STOPPING:
        return poll(context, job)
    outside = lifecycle.user_stopped_it(lifecycle.current(job), seen)
    marked = lifecycle.mark_stopped_outside(job) if outside else lifecycle.mark_stop_sent(job)
    return commit(context, job, marked)


def stop_unconfirmed(context: ManagerContext, job: Job) -> Job:
    """Stop an attempt that is not known to be created. Raises what `stop` raises.

    It keeps its units while a create call of an earlier pass may have been accepted. Another's training job of the same
    name is not stopped.
    """
    now, creator = context.clock.now(), find_creator(context, job)
    if creator in UNSETTLED and _may_appear(job, now):
        return job
    if creator not in OURS:
        return _end_uncreated(context, job, creator)
    confirmed = commit(context, job, lifecycle.mark_launched(job, now))
    # It may have ended before the commit; then there is nothing to stop.
    return stop(context, confirmed, retry=True) if confirmed.units else confirmed


def _end_uncreated(context: ManagerContext, job: Job, creator: Creator) -> Job:
    """End an attempt that has no training job of its own: as stopped, or failed if another's has the job's own name."""
    name = lifecycle.current(job).training_job_name
    if creator is not Creator.NONE and not job.stop_requested and name == job.name:
        return _after_taken_name(context, job)
    if creator is not Creator.NONE:
        job = commit(context, job, lifecycle.note(job, context.clock.now(), f"{_taken(name)} and was not stopped"))
    return apply_observation(context, job, Observation(training_job_name=name, status=Status.STOPPED))


def _may_appear(job: Job, now: datetime) -> bool:
    """Return whether an unconfirmed attempt may still appear: a pass may have called SageMaker until it was to stop."""
    attempt = lifecycle.current(job)
    asked = attempt.stop_asked_at
    return attempt.may_appear(now) or (asked is not None and now < asked + VISIBLE_AFTER)


def _without_capacity(context: ManagerContext, job: Job, reason: str) -> Job:
    """Return a growing job to its size before the growth and launch it; requeue any other job."""
    now, resize = context.clock.now(), lifecycle.current(job).resizing
    if resize is None or not resize.grows:
        requeued = lifecycle.retry_or_fail(job, FailureClass.CAPACITY, now, reason, context.retries)
        return commit(context, job, requeued)
    smaller = lifecycle.abandon_resize(job, now, reason)
    stored = commit(context, job, smaller)
    return launch(context, stored) if stored == smaller else stored
