"""Attempts that SageMaker has and that a restored table does not know: jobs take them as theirs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState
from trainmaster.domain.jobs.lifecycle.transition import archive_attempt, close_attempt, current, move
from trainmaster.domain.jobs.observation import Status

_LATER = "a later attempt exists: the table was restored"


def adopt(job: Job, attempt: Attempt, now: datetime) -> Job:
    """Return the job with a later attempt of its own as its newest. Raises `IllegalTransition` for an ended job.

    Args:
        job: the stored job, in any state but an ended one.
        attempt: the attempt as SageMaker has it, with a greater number than the job's.
        now: UTC.
    """
    if job.state in ACTIVE:
        job = move(job, JobState.PREEMPTED, now, _LATER, attempt=close_attempt(job, Outcome.PREEMPTED, now, _LATER))
    elif job.state is JobState.HELD:
        waits = JobState.PENDING if job.attempt is None else JobState.PREEMPTED
        job = move(job, waits, now, _LATER, held_by=None, after=())
    archived: dict[str, Any] = {} if job.attempt is None else archive_attempt(job, job.attempt)
    cleared: dict[str, Any] = {"reservation": None, "retry_at": None}
    reason = f"adopted {attempt.training_job_name}: the table was restored"
    return move(job, JobState.STARTING, now, reason, attempt=attempt, **cleared, **archived)


def expect_stop(job: Job, status: Status, now: datetime) -> Job:
    """Return the job so that the end of its stopped training job lets it wait again.

    The restored table does not know who stopped it. To lose a preempted job is worse than to run a cancelled one again.
    """
    if status not in (Status.STOPPED, Status.STOPPING) or job.stop_requested or job.stop_asked:
        return job
    attempt = current(job)
    asked = replace(attempt, stop_asked_at=attempt.created_at, stop_sent=True)
    return move(job, JobState.PREEMPTING, now, "was stopped: the table was restored", attempt=asked)
