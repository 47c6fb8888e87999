"""Carrying out what was committed: creating and stopping an attempt's training job, and asking how it stands.

Each step can be repeated: an attempt's name is fixed before SageMaker is called, so a second create finds the
first one's training job, and a second stop finds it stopping. It must not decide what starts or stops.
"""

from __future__ import annotations

import logging

from trainmaster.domain.errors import CapacityExhausted, NotPermitted, RequestRefused, UnreadableRendezvous
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import NOT_PERMITTED
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation, Status
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.ports.sagemaker import CreateResult
from trainmaster.service.attempt_request import PoolGoneError, base_request
from trainmaster.service.context import ManagerContext, commit

log = logging.getLogger(__name__)


def launch(context: ManagerContext, job: Job) -> Job:
    """Create the attempt's training job; returns the job as it stands then.

    Missing capacity puts the job back, or to the size that it had before it was to grow; a refused request ends it.
    Throttling and trouble leave it not launched: it keeps its capacity and the next pass tries again. Raises
    `Throttled`, `Unavailable`.
    """
    created = create(context, job)
    return created if isinstance(created, Job) else confirm_launch(context, job, created)


def create(context: ManagerContext, job: Job) -> CreateResult | Job:
    """The first half of `launch`: what became of the training job, or the job as it stands where there is none."""
    attempt = lifecycle.current(job)
    try:
        created = context.launcher.create(job, attempt, base_request(context, job, attempt))
    except PoolGoneError as not_found:
        return commit(context, job, lifecycle.give_back(job, context.clock.now(), str(not_found), context.retries))
    except CapacityExhausted as error:
        return _without_capacity(context, job, str(error))
    except NotPermitted as error:
        # An administrator can mend a missing permission; ending the whole queue's jobs for it could not be mended.
        back = lifecycle.give_back(job, context.clock.now(), f"{NOT_PERMITTED}{error}", context.retries)
        return commit(context, job, back)
    except RequestRefused as error:
        return commit(context, job, lifecycle.fail(job, context.clock.now(), str(error)))
    if created is CreateResult.NAME_TAKEN:
        reason = f"the name {attempt.training_job_name} belongs to a training job that the queue did not start"
        return commit(context, job, lifecycle.fail(job, context.clock.now(), reason))
    return created


def confirm_launch(context: ManagerContext, job: Job, created: CreateResult) -> Job:
    """The second half of `launch`: commit that there is a training job; the job as it stands then."""
    known = confirm_or_stop(context, job, lifecycle.launched(job), lifecycle.current(job).training_job_name)
    # An earlier pass had created it, so it may have gone on, or ended, without us.
    return poll(context, known) if created is CreateResult.ALREADY_THERE else known


def confirm_or_stop(context: ManagerContext, before: Job, after: Job, created: str) -> Job:
    """Commit that SageMaker has a training job; where nobody wants it any more, it is stopped. The job as it stands.

    Whoever dropped it since had asked SageMaker for it too early to find it. Raises like `stop`.
    """
    stands = commit(context, before, after)
    wanted = stands.attempt.training_job_names if stands.attempt is not None and stands.units else ()
    if created not in wanted:
        context.launcher.stop(created, end_warm_pool=before.keep_alive)
    return stands


def stop(context: ManagerContext, job: Job) -> Job:
    """Ask SageMaker to stop the attempt; its warm pool would eat the cap, so it goes too.

    Raises `Throttled`, `Unavailable`, `NotPermitted`: the next pass tries again.
    """
    if context.launcher.stop(lifecycle.current(job).training_job_name, end_warm_pool=job.keep_alive):
        return commit(context, job, lifecycle.stop_sent(job))
    return poll(context, job)


def poll(context: ManagerContext, job: Job) -> Job:
    """Ask SageMaker how the job's attempt stands, and take it over."""
    return job if job.attempt is None else poll_training_job(context, job, job.attempt.training_job_name)


def poll_training_job(context: ManagerContext, job: Job, training_job_name: str) -> Job:
    """Ask SageMaker how one of the attempt's training jobs stands, and take it over."""
    if not job.units:
        return job
    # Unknown to SageMaker although it was there: somebody deleted it.
    seen = context.launcher.describe(training_job_name) or not_found(training_job_name)
    return apply_observation(context, job, seen)


def not_found(training_job_name: str) -> Observation:
    """What there is to say of a training job that SageMaker does not know any more."""
    return Observation(training_job_name=training_job_name, status=Status.DELETING)


def apply_observation(context: ManagerContext, job: Job, seen: Observation) -> Job:
    """Turn a report about the job's newest attempt into one guarded transition."""
    retries = context.retries if seen.ends_badly else None
    after = lifecycle.observe(_with_restarts(context, job, seen), seen, context.clock.now(), retries)
    return job if after is None else commit(context, job, after)


def _with_restarts(context: ManagerContext, job: Job, seen: Observation) -> Job:
    """The job with what its nodes have used of its restarts in all, where their rendezvous has come to its end.

    Raises `Throttled`, `Unavailable`: then the end is taken over by whoever asks next.
    """
    counts = job.elastic is not None and job.elastic.budget.total is not None
    if context.rendezvous is None or not counts or not lifecycle.ends(job, seen):
        return job
    try:
        group = context.rendezvous.get(seen.training_job_name)
    except UnreadableRendezvous as error:
        log.warning("cannot read how often a job was restarted", extra={"job": job.name, "cause": str(error)})
        return job
    return job if group is None else lifecycle.restarted(job, group.restarts)


def stop_unconfirmed(context: ManagerContext, job: Job) -> Job:
    """Its user stopped it before we knew whether SageMaker has it. Raises like `stop`."""
    name = lifecycle.current(job).training_job_name
    if context.launcher.describe(name) is None:
        return apply_observation(context, job, Observation(training_job_name=name, status=Status.STOPPED))
    known = commit(context, job, lifecycle.launched(job))
    # It may have ended while we asked; then there is nothing to stop.
    return stop(context, known) if known.units else known


def _without_capacity(context: ManagerContext, job: Job, reason: str) -> Job:
    """SageMaker has no room: a job that grows falls back to the size that it had, any other waits again."""
    now, under_way = context.clock.now(), lifecycle.current(job).resizing
    if under_way is None or not under_way.grows:
        lacking = lifecycle.failed_as(job, FailureClass.CAPACITY, now, reason, context.retries)
        return commit(context, job, lacking)
    smaller = lifecycle.give_up(job, now, reason)
    stands = commit(context, job, smaller)
    return launch(context, stands) if stands == smaller else stands
