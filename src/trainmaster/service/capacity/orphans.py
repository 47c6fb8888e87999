"""Stop orphans: training jobs with the queue's tag that no stored job has as an active attempt or member.

A create call whose answer was lost may take effect after its job has moved on. Events can be forged, so a training
job's own tags decide, and the stored job is read after SageMaker has described the training job: a start is committed
before its training job is created, so every wanted training job is then an active attempt.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from trainmaster.domain.capacity.external import ExternalJob, Origin
from trainmaster.domain.errors import ServiceError, UnreadableRow
from trainmaster.domain.jobs.job import Job
from trainmaster.ports.sagemaker import OpenJob, Owner, StopResult
from trainmaster.service.context import ManagerContext
from trainmaster.service.faults import isolate_fault

log = logging.getLogger(__name__)

MIN_AGE = timedelta(minutes=1)
"""Younger orphans count, but are not stopped yet."""
RECENT = timedelta(minutes=2)
"""SageMaker may list and describe an attempt as open for so long after it has reported its end."""


def stop_reported(context: ManagerContext, training_job_name: str) -> None:
    """Stop the training job of an event if it is an orphan; errors of AWS are left to the tick."""
    try:
        with isolate_fault(training_job_name, context.faults):
            found = context.launcher.identify(training_job_name)
            orphan = stop_if_orphan(context, found) if found is not None and found.owner is Owner.QUEUE else None
            if orphan is not None:
                context.store.update_external_jobs({training_job_name: orphan})
    except ServiceError as error:
        extra = {"trainingJob": training_job_name, "cause": str(error)}
        log.warning("could not look at a training job that no job has; the next tick does", extra=extra)


def stop_if_orphan(context: ManagerContext, found: OpenJob) -> ExternalJob | None:
    """Stop a training job that has the queue's tag, unless a stored job has it; return it if it is an orphan."""
    try:
        if is_attempt(context, found.job_name, found.name):
            return None
    except UnreadableRow as error:
        # Its job may well have it. It counts in its pools, and is not stopped.
        log.warning("cannot tell an orphan", extra={"trainingJob": found.name, "cause": str(error)})
        return ExternalJob(found.units, Origin.ORPHAN)
    if context.clock.now() < found.created_at + MIN_AGE:
        return ExternalJob(found.units, Origin.ORPHAN)
    extra = {"trainingJob": found.name, "job": found.job_name}
    try:
        result = context.launcher.stop(found.name, end_warm_pool=found.keep_alive)
        if result in (StopResult.ENDED, StopResult.NOT_FOUND):
            return None
    except ServiceError as error:
        log.warning("could not stop an orphan; the next tick retries", extra={**extra, "cause": str(error)})
        return ExternalJob(found.units, Origin.ORPHAN)
    if not found.stopping:
        log.warning("stopped an orphan: a training job of the queue that no job has as an attempt", extra=extra)
        if context.orphans is not None:
            context.orphans.append(found.name)
    return ExternalJob(found.units, Origin.STOPPED_ORPHAN)


def is_attempt(context: ManagerContext, job_name: str, training_job_name: str) -> bool:
    """Return whether the job, as stored now, has the training job: active, or as an attempt that has just ended."""
    job = context.store.find(job_name)
    return job is not None and (has_active(job, training_job_name) or _has_just_ended(context, job, training_job_name))


def has_active(job: Job, training_job_name: str) -> bool:
    """Return whether the training job is the job's active attempt, or one of its members."""
    return bool(job.units) and job.attempt is not None and training_job_name in job.attempt.training_job_names


def _has_just_ended(context: ManagerContext, job: Job, training_job_name: str) -> bool:
    since = context.clock.now() - RECENT
    attempts = (each for each in job.attempts if each.training_job_name == training_job_name)
    # One that was never seen has not ended at SageMaker: its create call may take effect after its job has moved on.
    ends = (each.ended_at for each in attempts if each.launched or each.started_at is not None)
    return any(ended is not None and ended > since for ended in ends)
