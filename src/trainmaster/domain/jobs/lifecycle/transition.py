"""What all changes of a job share: one table of transitions, one version, one line of history.

It must not know what a change is for.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.attempt_totals import KEPT
from trainmaster.domain.jobs.job import TRANSITIONS, WAITING, Change, Job, JobState

CLOCK_TOLERANCE = timedelta(seconds=5)
"""How far SageMaker's clock and ours may differ before we call one of them the earlier."""


def move(job: Job, state: JobState, now: datetime, reason: str, *, size: int | None = None, **changes: Any) -> Job:
    """The job in another state. Raises `IllegalTransition` where the table does not have it.

    A job of another kind that waits again asks for what its work has left.

    Args:
        job: as it stands.
        state: the other state.
        now: UTC.
        reason: what its history is to tell.
        size: instances, where a resize is done by this.
        changes: what else changes of it.
    """
    if state not in TRANSITIONS[job.state]:
        raise IllegalTransition(f"job {job.name} is {job.state}; it cannot become {state}", field="jobState")
    number = number_of(job) if (attempt := changes.get("attempt")) is None else attempt.number
    line = Change(now, job.state, state, reason, number, size)
    if state in WAITING and job.work is not None:
        changes["demand"] = changes.get("work", job.work).demand()
    return touch(job, state=state, history=(*job.history, line), **changes)


def note(job: Job, now: datetime, reason: str, **changes: Any) -> Job:
    """The job in the state that it is in, with something else changed that its history is to tell."""
    line = Change(now, job.state, job.state, reason, number_of(job))
    return touch(job, history=(*job.history, line), **changes)


def touch(job: Job, **changes: Any) -> Job:
    """The job with something changed that its history does not tell."""
    return replace(job, version=job.version + 1, **changes)


def closed(job: Job, outcome: Outcome, now: datetime, reason: str) -> Attempt:
    """The newest attempt as it ends. Raises `IllegalTransition` before the first start."""
    return replace(current(job).at_rest(now), outcome=outcome, ended_at=now, reason=reason)


def followed(job: Job, ended: Attempt) -> dict[str, Any]:
    """What changes of a job when another attempt follows this one: the newest are kept, older ones are added up."""
    past, earlier = (*job.past, ended), job.earlier
    most_full = 0 if job.elastic is None else job.elastic.budget.most_full
    for attempt in past[:-KEPT]:
        earlier = earlier.after(attempt, most_full)
    return {"past": past[-KEPT:], "earlier": earlier}


def end(job: Job, state: JobState, attempt: Attempt, now: datetime, reason: str) -> Job:
    """The job ends with its newest attempt; `reason` may say more than the attempt's own."""
    failure = reason if state is not JobState.COMPLETED else None
    return move(job, state, now, reason, attempt=attempt, failure=failure, ended_at=now, reservation=None)


def current(job: Job) -> Attempt:
    """The newest attempt. Raises `IllegalTransition` before the first start."""
    if job.attempt is None:
        raise IllegalTransition(f"job {job.name} has no attempt yet", field="jobState")
    return job.attempt


def number_of(job: Job) -> int | None:
    """The newest attempt's number."""
    return None if job.attempt is None else job.attempt.number


def waiting_state(job: Job) -> JobState:
    """As what the job waits when it waits again: as preempted where it has stepped aside before, else as new."""
    aside = (Outcome.PREEMPTED, Outcome.RECLAIMED, Outcome.RESIZED)
    before = job.earlier.ended(*aside) or any(attempt.outcome in aside for attempt in job.attempts)
    return JobState.PREEMPTED if before or job.state is JobState.PREEMPTING else JobState.PENDING
