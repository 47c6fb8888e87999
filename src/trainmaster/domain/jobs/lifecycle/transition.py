"""Helpers shared by all changes of a job: the transition check, the version, the line of history."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.attempt_totals import MAX_PAST_ATTEMPTS
from trainmaster.domain.jobs.job import TRANSITIONS, WAITING, Change, Job, JobState

CLOCK_TOLERANCE = timedelta(seconds=5)
"""Tolerance when times of SageMaker's clock and the queue's clock are compared."""


def move(job: Job, state: JobState, now: datetime, reason: str, *, size: int | None = None, **changes: Any) -> Job:
    """Return the job in another state. Raises `IllegalTransition` if the table does not allow it.

    A waiting job of another kind demands units for the remaining work.

    Args:
        job: the stored job.
        state: the new state.
        now: UTC.
        reason: the reason in its history.
        size: instances that an elastic job works with from now on, if this completes a start or a resize.
        changes: other changed fields.
    """
    if state not in TRANSITIONS[job.state]:
        raise IllegalTransition(f"Job {job.name} is {job.state}; it cannot become {state}", field="jobState")
    number = number_of(job) if (attempt := changes.get("attempt")) is None else attempt.number
    line = Change(now, job.state, state, reason, number, size)
    if state in WAITING and job.work is not None:
        changes["demand"] = changes.get("work", job.work).demand()
    return touch(job, state=state, history=(*job.history, line), **changes)


def note(job: Job, now: datetime, reason: str, **changes: Any) -> Job:
    """Return the job with changed fields and a line in its history, in the same state."""
    line = Change(now, job.state, job.state, reason, number_of(job))
    return touch(job, history=(*job.history, line), **changes)


def touch(job: Job, **changes: Any) -> Job:
    """Return the job with changed fields, without a line in its history."""
    return job.changed(version=job.version + 1, **changes)


def close_attempt(job: Job, outcome: Outcome, now: datetime, reason: str) -> Attempt:
    """Return the newest attempt as it ends. Raises `IllegalTransition` before the first start."""
    pending: dict[str, Any] = {"called_at": None, "refused": "", "stop_called_at": None, "end_reported_at": None}
    return replace(current(job).at_rest(now), outcome=outcome, ended_at=now, reason=reason, **pending)


def archive_attempt(job: Job, ended: Attempt) -> dict[str, Any]:
    """Return the changed fields when another attempt follows: the newest are stored, older ones added to the totals."""
    past, totals = (*job.past, ended), job.attempt_totals
    max_full_restarts = 0 if job.elastic is None else job.elastic.budget.max_full_restarts
    for attempt in past[:-MAX_PAST_ATTEMPTS]:
        totals = totals.after(attempt, max_full_restarts)
    return {"past": past[-MAX_PAST_ATTEMPTS:], "attempt_totals": totals}


def end(job: Job, state: JobState, attempt: Attempt, now: datetime, reason: str) -> Job:
    """End the job with its newest attempt; `reason` may be longer than the attempt's own."""
    failure = reason if state is not JobState.COMPLETED else None
    return move(job, state, now, reason, attempt=attempt, failure=failure, ended_at=now, reservation=None)


def current(job: Job) -> Attempt:
    """Return the newest attempt. Raises `IllegalTransition` before the first start."""
    if job.attempt is None:
        raise IllegalTransition(f"job {job.name} has no attempt yet", field="jobState")
    return job.attempt


def number_of(job: Job) -> int | None:
    """Return the newest attempt's number."""
    return None if job.attempt is None else job.attempt.number


def waiting_state(job: Job) -> JobState:
    """Return the state in which the job waits again: preempted if it ever was, else pending."""
    aside = (Outcome.PREEMPTED, Outcome.RECLAIMED, Outcome.RESIZED)
    before = job.attempt_totals.ended(*aside) or any(attempt.outcome in aside for attempt in job.attempts)
    return JobState.PREEMPTED if before or job.state is JobState.PREEMPTING else JobState.PENDING
