"""Holds, releases, parents, priorities and cancellations: what becomes of a job while it waits.

A job is held by a person, by a moment that has not come, or by jobs that have to end first; it enters the queue when
none of them holds it any more. A job that never was in the queue enters it only then, so that nobody takes a place in
it by submitting early what may run late.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.job import ENDED, Job, JobState, ParentRule
from trainmaster.domain.jobs.lifecycle.transition import move, note, waiting_state
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import Held, NotBefore, WaitsForJobs


def cancel(job: Job, now: datetime, who: str) -> Job:
    """A waiting job is taken off the queue for good."""
    return move(job, JobState.CANCELLED, now, f"cancelled by {who}", reservation=None, retry_at=None, ended_at=now)


def reprioritise(job: Job, priority: int, now: datetime, who: str) -> Job:
    """The job gets another priority; it keeps its entry time."""
    return note(job, now, f"priority {job.priority} -> {priority} by {who}", priority=priority)


def pool_made(job: Job, now: datetime, size: str) -> Job:
    """The manager has made a pool of this size for a job that no other could hold, or made one larger."""
    return note(job, now, f"a pool of {size} was made for it")


def hold(job: Job, now: datetime, who: str) -> Job:
    """A waiting job stays out of consideration until a person releases it."""
    if job.state is JobState.HELD and job.held_by is None:
        return note(job, now, f"held by {who}", held_by=who)
    return move(job, JobState.HELD, now, f"held by {who}", reservation=None, held_by=who)


def release(job: Job, now: datetime, who: str) -> Job:
    """A job that a person holds waits again, unless its own times and parents hold it still."""
    if job.state is not JobState.HELD:
        raise IllegalTransition(f"job {job.name} is {job.state}, not held", field="hold")
    freed = replace(job, held_by=None)
    if not _held_by_rules(freed, now):
        return _enter(freed, now, f"released by {who}")
    if job.held_by is None:
        reason = held_reason(job)
        why = "" if reason is None else f": it {reason.message()}"
        raise IllegalTransition(
            f"job {job.name} has no hold to release{why}", field="hold", hint="it enters the queue by itself"
        )
    return note(freed, now, f"released by {who}")


def hold_if_needed(job: Job, now: datetime) -> Job:
    """A job that is about to be stored: held where its times or parents say so, else as it is."""
    if not _held_by_rules(job, now):
        return job
    first, *rest = job.history
    return replace(job, state=JobState.HELD, history=(replace(first, after=JobState.HELD), *rest))


def enqueue_if_due(job: Job, now: datetime) -> Job | None:
    """A job that only its own times and parents held enters the queue; None where something holds it still."""
    if job.state is not JobState.HELD or job.held_by is not None or _held_by_rules(job, now):
        return None
    return _enter(job, now, "its time has come")


def parent_ended(job: Job, parent: Job, now: datetime) -> Job | None:
    """The job after one that it waits for has ended; None where that changes nothing."""
    if job.state is not JobState.HELD or parent.name not in job.after or parent.state not in ENDED:
        return None
    if parent.state is not JobState.COMPLETED and job.if_parent_fails is not ParentRule.RUN:
        return _follow(job, parent, now)
    rest = tuple(name for name in job.after if name != parent.name)
    freed = replace(job, after=rest, entry_time=job.entry_time if rest else max(job.entry_time, now))
    reason = f"{parent.name}, which it runs after, {_fate(parent)}"
    if job.held_by is not None or _held_by_rules(freed, now):
        return note(freed, now, reason)
    return _enter(freed, now, reason)


def held_reason(job: Job) -> Reason | None:
    """Why a held job does not wait in the queue; None for any other."""
    if job.state is not JobState.HELD:
        return None
    if job.held_by is None and job.after:
        return WaitsForJobs(job.after)
    if job.held_by is None and job.not_before is not None:
        return NotBefore(job.not_before)
    return Held(job.held_by or "an unknown user")


def _follow(job: Job, parent: Job, now: datetime) -> Job:
    """The job does not run, since one that it runs after did not complete."""
    state = JobState.FAILED if job.if_parent_fails is ParentRule.FAIL else JobState.CANCELLED
    reason = f"runs after {parent.name}, which {_fate(parent)}"
    return move(job, state, now, reason, failure=reason, ended_at=now, held_by=None)


def _fate(parent: Job) -> str:
    """What became of a parent, as a verb."""
    return {
        JobState.COMPLETED: "completed",
        JobState.FAILED: "failed",
        JobState.STOPPED: "was stopped",
        JobState.CANCELLED: "was cancelled",
    }[parent.state]


def _held_by_rules(job: Job, now: datetime) -> bool:
    return bool(job.after) or (job.not_before is not None and job.not_before > now)


def _enter(job: Job, now: datetime, reason: str) -> Job:
    """A job that has run before keeps its entry time; a new one enters when it may first run."""
    entry = job.entry_time
    if not job.attempts and job.not_before is not None:
        entry = max(entry, job.not_before)
    return move(job, waiting_state(job), now, reason, retry_at=None, held_by=None, entry_time=entry)
