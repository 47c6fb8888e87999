"""Derive the events of a job's change from its new lines of history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from trainmaster.domain.compat import UTC
from trainmaster.domain.events.types import EventType
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.attempt_totals import NO_TOTALS
from trainmaster.domain.jobs.job import ACTIVE, ENDED, Change, Job, JobState
from trainmaster.domain.jobs.past_intervals import lost_seconds
from trainmaster.domain.text import one_line

DETAIL_VERSION = 1
MAX_MESSAGE = 500
"""Characters of a reason in an event, at most; the job's history has the whole of it."""
_TO = {
    JobState.STARTING: EventType.STARTING,
    JobState.PREEMPTING: EventType.PREEMPTING,
    JobState.RESIZING: EventType.RESIZING,
    JobState.HELD: EventType.HELD,
    **dict.fromkeys(ENDED, EventType.ENDED),
}


def job_events(before: Job | None, after: Job) -> Iterator[dict[str, Any]]:
    """Yield the details of a change's events, oldest first.

    Each line of history raised the job's version by one, so versions number the lines of one commit.

    Args:
        before: the job before the change; None at its submission.
        after: the job as committed.
    """
    lines = after.history[:1] if before is None else after.history[len(before.history) :]
    verdict = _verdict(before, after)
    for place, line in enumerate(lines, after.version + 1 - len(lines)):
        kind = verdict if line is lines[0] and verdict is not None else _type_of(line, after)
        if kind is not None:
            yield _detail(kind, line, place, after)


def timestamp(at: datetime) -> str:
    """Return a time in UTC as events have it, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _verdict(before: Job | None, after: Job) -> EventType | None:
    """Return the type of the first line of a commit that changes whether a pool can hold the job; None for others."""
    if before is None or before.infeasible is after.infeasible:
        return None
    return EventType.INFEASIBLE if after.infeasible else EventType.FEASIBLE


def _type_of(line: Change, job: Job) -> EventType | None:
    """Return the type of a line's event; None for a line that changes neither the state nor the size."""
    if line.before is None:
        return EventType.SUBMITTED
    if (line.before, line.after) == (JobState.RESIZING, JobState.RUNNING):
        return EventType.RESIZED
    if line.before is line.after:
        return None
    if line.after is JobState.RUNNING:
        return EventType.RESUMED if _has_worked_before(job) else EventType.STARTED
    return _TO.get(line.after) or _waits_again(line, job)


def _has_worked_before(job: Job) -> bool:
    return job.attempt_totals != NO_TOTALS or any(attempt.started_at is not None for attempt in job.past)


def _waits_again(line: Change, job: Job) -> EventType:
    """Return the type of a change to pending or preempted."""
    if line.before not in ACTIVE:
        return EventType.RELEASED
    attempt = job.attempt
    taken = attempt is not None and attempt.outcome in (Outcome.PREEMPTED, Outcome.RECLAIMED)
    return EventType.PREEMPTED if taken else EventType.REQUEUED


def _detail(kind: EventType, line: Change, sequence: int, job: Job) -> dict[str, Any]:
    detail = {
        "version": DETAIL_VERSION,
        "type": kind.value,
        "jobName": job.name,
        "kind": job.kind,
        "from": line.before and line.before.value,
        "to": line.after.value,
        "at": timestamp(line.at),
        "sequence": sequence,
        "reason": {"message": one_line(line.reason)[:MAX_MESSAGE]},
        "share": job.share,
        "priority": job.priority,
        "submittedBy": job.submitted_by,
        "group": job.group,
        "notify": list(job.notify),
        **(_of_attempt(kind, job.attempt, job) if line.attempt is not None and job.attempt is not None else {}),
    }
    return {key: value for key, value in detail.items() if value not in (None, [])}


def _of_attempt(kind: EventType, attempt: Attempt, job: Job) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "attempt": attempt.number,
        "trainingJobName": attempt.training_job_name if job.work is None else None,
        "units": dict(attempt.units),
    }
    if kind in (EventType.PREEMPTING, EventType.PREEMPTED):
        found["preemptedBy"] = attempt.freed_for
    if kind is EventType.PREEMPTED:
        found["lostSeconds"] = lost_seconds(job, attempt)
    return found
