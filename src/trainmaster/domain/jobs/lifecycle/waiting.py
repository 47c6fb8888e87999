"""Changes of waiting jobs: holds, releases, parents, priorities, cancellations.

A job is held by a person, by a start time, or by jobs that must end first, and enters the queue when none of them holds
it. Its entry time is that moment, so submitting early gains no place in the queue.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs.job import ENDED, WAITING, Job, JobState, ParentRule
from trainmaster.domain.jobs.lifecycle.failures import Retries, requeue_unlaunched
from trainmaster.domain.jobs.lifecycle.running import request_stop
from trainmaster.domain.jobs.lifecycle.transition import move, note, touch, waiting_state
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import Held, NotBefore, WaitsForJobs

THE_QUEUE = "the queue"
"""Holds a job that it must not launch."""


def end_back_off(job: Job) -> Job:
    """Let a waiting job start again at once, since units became free that it could use."""
    return touch(job, retry_at=None)


def cancel(job: Job, now: datetime, who: str) -> Job:
    """Cancel a waiting job."""
    return move(job, JobState.CANCELLED, now, f"cancelled by {who}", reservation=None, retry_at=None, ended_at=now)


def cancel_or_stop(job: Job, now: datetime, who: str) -> Job:
    """Cancel a waiting or held job, or request that an active one is stopped for good.

    Raises `IllegalTransition` if it has ended.
    """
    if job.state in WAITING or job.state is JobState.HELD:
        return cancel(job, now, who)
    if job.stop_requested and job.state not in ENDED:
        return job
    return request_stop(job, now, who)


def reprioritize(job: Job, priority: int, now: datetime, who: str) -> Job:
    """Set the job's priority; it keeps its entry time."""
    return note(job, now, f"priority {job.priority} -> {priority} by {who}", priority=priority)


def record_pool_creation(job: Job, now: datetime, size: str) -> Job:
    """Note that the manager created or enlarged a pool of this size for the job."""
    return note(job, now, f"a pool of {size} was created for it")


def set_infeasible(job: Job, now: datetime, reason: str) -> Job:
    """Note that no pool can hold the job."""
    return note(job, now, reason, infeasible=True)


def set_feasible(job: Job, now: datetime) -> Job:
    """Note that a pool can hold the job again; return the job itself if that is known."""
    return note(job, now, "a pool can hold it again", infeasible=False) if job.infeasible else job


def hold(job: Job, now: datetime, who: str) -> Job:
    """Hold a waiting job until a person releases it. Raises `IllegalTransition` for other jobs."""
    if job.state is JobState.HELD and job.held_by is None:
        return note(job, now, f"held by {who}", held_by=who)
    if job.state not in WAITING:
        hint = "Only a waiting job can be held."
        raise IllegalTransition(f"Job {job.name} is {job.state}.", field="hold", hint=hint)
    return move(job, JobState.HELD, now, f"held by {who}", reservation=None, held_by=who)


def hold_unlaunched(job: Job, now: datetime, reason: str, retries: Retries | None = None) -> Job:
    """Hold a job whose start the queue must not carry out, until a person releases it; no attempt is counted."""
    return hold(requeue_unlaunched(job, now, reason, retries), now, f"{THE_QUEUE} ({reason})")


def release(job: Job, now: datetime, who: str) -> Job:
    """Release a job that a person holds; its own times and parents may still hold it."""
    if job.state is not JobState.HELD:
        hint = "Only a held job can be released."
        raise IllegalTransition(f"Job {job.name} is {job.state}, not held.", field="hold", hint=hint)
    freed = replace(job, held_by=None)
    if not _held_by_rules(freed, now):
        return _enqueue(freed, now, f"released by {who}")
    if job.held_by is None:
        reason = held_reason(job)
        why = "" if reason is None else f": it {reason.message()}"
        raise IllegalTransition(
            f"Job {job.name} has no hold to release{why}.", field="hold", hint="It enters the queue by itself."
        )
    return note(freed, now, f"released by {who}")


def hold_if_needed(job: Job, now: datetime) -> Job:
    """Return a job about to be stored, held if its times or parents require it."""
    if not _held_by_rules(job, now):
        return job
    first, *rest = job.history
    return replace(job, state=JobState.HELD, history=(replace(first, after=JobState.HELD), *rest))


def enqueue_if_due(job: Job, now: datetime) -> Job | None:
    """Enqueue a job that only its own times and parents held; return None if something still holds it."""
    if job.state is not JobState.HELD or job.held_by is not None or _held_by_rules(job, now):
        return None
    return _enqueue(job, now, "its start time has come")


def apply_parent_end(job: Job, parent: Job, now: datetime) -> Job | None:
    """Return the job after the end of a parent; None if that changes nothing."""
    if job.state is not JobState.HELD or parent.name not in job.after or parent.state not in ENDED:
        return None
    if parent.state is not JobState.COMPLETED and job.if_parent_fails is not ParentRule.RUN:
        return _end_without_running(job, parent, now)
    rest = tuple(name for name in job.after if name != parent.name)
    freed = replace(job, after=rest, entry_time=job.entry_time if rest else max(job.entry_time, now))
    reason = f"{parent.name}, which it runs after, {_outcome_text(parent)}"
    if job.held_by is not None or _held_by_rules(freed, now):
        return note(freed, now, reason)
    return _enqueue(freed, now, reason)


def held_reason(job: Job) -> Reason | None:
    """Return the reason why a held job is not in the queue; None for other jobs."""
    if job.state is not JobState.HELD:
        return None
    if job.held_by is None and job.after:
        return WaitsForJobs(job.after)
    if job.held_by is None and job.not_before is not None:
        return NotBefore(job.not_before)
    return Held(job.held_by or "an unknown user")


def _end_without_running(job: Job, parent: Job, now: datetime) -> Job:
    """End the job without a run, since a parent did not complete."""
    state = JobState.FAILED if job.if_parent_fails is ParentRule.FAIL else JobState.CANCELLED
    reason = f"runs after {parent.name}, which {_outcome_text(parent)}"
    return move(job, state, now, reason, failure=reason, ended_at=now, held_by=None)


def _outcome_text(parent: Job) -> str:
    """Return the outcome of a parent as a verb."""
    return {
        JobState.COMPLETED: "completed",
        JobState.FAILED: "failed",
        JobState.STOPPED: "was stopped",
        JobState.CANCELLED: "was cancelled",
    }[parent.state]


def _held_by_rules(job: Job, now: datetime) -> bool:
    return bool(job.after) or (job.not_before is not None and job.not_before > now)


def _enqueue(job: Job, now: datetime, reason: str) -> Job:
    """Enqueue the job; one that has run keeps its entry time, a new one enters when it may first run."""
    entry = job.entry_time
    if not job.attempts and job.not_before is not None:
        entry = max(entry, job.not_before)
    return move(job, waiting_state(job), now, reason, retry_at=None, held_by=None, entry_time=entry)
