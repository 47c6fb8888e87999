"""Apply SageMaker's reports about a job's newest attempt to the job; they may be late, repeated or out of order."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.capacity.units import counted
from trainmaster.domain.capacity.warm_pools import MAX_KEEP_ALIVE
from trainmaster.domain.elastic.sizes import Hook
from trainmaster.domain.jobs.attempt import NO_CAPACITY_IN_TIME, Attempt, Outcome
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle.failures import Retries, fail, may_retry, restart_in_full, retry_or_fail
from trainmaster.domain.jobs.lifecycle.progress import record_progress, with_progress
from trainmaster.domain.jobs.lifecycle.resizing import (
    abandon_resize,
    complete_resize,
    elastic_of,
    mark_member_launched,
    mark_member_started,
    member_of,
    remove_member,
    replace_base,
    resume_resized,
    stop_attempt,
    stop_members,
    successor_of,
)
from trainmaster.domain.jobs.lifecycle.transition import CLOCK_TOLERANCE, close_attempt, current, end, move, note, touch
from trainmaster.domain.jobs.observation import (
    WAITED_TOO_LONG,
    WORKED_TOO_LONG,
    Observation,
    Status,
    Warm,
    failure_class_of,
)
from trainmaster.domain.policy.settings import FailureClass
from trainmaster.domain.times import ROUNDING, SAME_TIME

_MAX_RESTARTS = 1_000_000
_LOSSES = (FailureClass.CAPACITY, FailureClass.SERVICE)
"""Failures of a base that its members survive."""
_ENDED_BY_SAGEMAKER = "SageMaker ended it: "
_CAME_TOO_LATE = "its instances came after MaxPendingTimeInSeconds, when it was being stopped"


def observe(job: Job, seen: Observation, now: datetime, retries: Retries | None = None) -> Job | None:
    """Return the job after a report about its training job; None if it changes nothing.

    A report about an older attempt, or about a job that holds no capacity, changes nothing.

    Args:
        job: the stored job.
        seen: the report.
        now: UTC.
        retries: the queue's retry limits (`Policy.retries`); needed only if `seen.ends_badly`.
    """
    attempt = job.attempt
    if attempt is None or not job.units or seen.training_job_name not in attempt.training_job_names:
        return None
    if seen.training_job_name != attempt.base_name:
        return _apply_member_report(job, seen, now)
    known = with_progress(job, seen, now)
    after = _apply_report(known, current(known), seen, now, retries)
    return record_progress(job, known, now) if after is None and known is not job else after


def _apply_report(job: Job, attempt: Attempt, seen: Observation, now: datetime, retries: Retries | None) -> Job | None:
    # Members are created only after the attempt is known to be created.
    if seen.terminal and attempt.members and attempt.launched:
        if attempt.base_ended_at is not None:
            return None
        return _without_base(job, seen, now) if _survives(job, seen, now, retries) else stop_members(job, now)
    if seen.terminal:
        # Its end may be its first report, since earlier ones may have been lost.
        known = replace(
            attempt,
            launched=attempt.launched or seen.progress is not None,
            started_at=attempt.started_at or seen.started_at,
            interruptions=_interruptions(job, seen),
            instance_type=_chosen_type_changes(attempt, seen).get("instance_type", attempt.instance_type),
        )
        known_job = job.changed(attempt=known)
        return _with_warm_pool(known_job, _apply_end(known_job, seen, now, retries), seen, now)
    if seen.status is Status.STOPPING:
        return _apply_stopping(job, attempt, now)
    return _apply_progress(job, attempt, seen, now)


def ends_attempt(job: Job, seen: Observation) -> bool:
    """Return whether a report ends the newest attempt's base while the job holds capacity."""
    attempt = job.attempt
    return seen.terminal and bool(job.units) and attempt is not None and attempt.base_name == seen.training_job_name


def record_restarts(job: Job, times: int) -> Job:
    """Return the job with its nodes' count of restarts, before the report of their end is applied.

    The count comes from users' containers, so it is limited.
    """
    attempt = current(job)
    return replace(job, attempt=replace(attempt, restarts=max(attempt.restarts, min(times, _MAX_RESTARTS))))


def _apply_end(job: Job, seen: Observation, now: datetime, retries: Retries | None) -> Job:
    if seen.status is Status.COMPLETED:
        return end(job, JobState.COMPLETED, close_attempt(job, Outcome.COMPLETED, now, "completed"), now, "completed")
    if seen.secondary == WORKED_TOO_LONG:
        return _stopped(job, now, f"{_ENDED_BY_SAGEMAKER}{seen.secondary}")
    if job.stop_requested:
        return _stopped(job, now, "stopped by its user")
    if _reclaimed(job, seen, now):
        reason = "SageMaker took its instances back: its training plan ends"
        return _step_aside(job, Outcome.RECLAIMED, now, reason)
    if seen.secondary == WAITED_TOO_LONG:
        return _without_capacity(job, FailureClass.SPOT, now, f"{_ENDED_BY_SAGEMAKER}{seen.secondary}", retries)
    if seen.status is Status.FAILED:
        return _apply_failure(job, seen, now, retries)
    return _apply_stop(job, seen, now, retries)


def _survives(job: Job, seen: Observation, now: datetime, retries: Retries | None) -> bool:
    """Return whether the infrastructure ended the base of a group that works on without it.

    A failure of the user's code, a time limit and a stop end the whole attempt; so does a loss beyond the retry limit.
    """
    lost = seen.failure_class in _LOSSES or (seen.ends_badly and seen.secondary == WAITED_TOO_LONG)
    ends = job.stop_asked or job.stop_requested or _reclaimed(job, seen, now)
    at_work = job.state in (JobState.RUNNING, JobState.RESIZING)
    able = lost and at_work and not ends and successor_of(current(job)) is not None
    return able and may_retry(job, _class_of_loss(seen.failure_reason or ""), retries)


def _class_of_loss(reason: str) -> FailureClass:
    """Return the class of the failure by which a base was lost."""
    return failure_class_of(reason) or FailureClass.SPOT


def _without_base(job: Job, seen: Observation, now: datetime) -> Job:
    """Return the job after the loss of its base, which counts as a failure, with the warm pool that the base leaves."""
    reason = seen.failure_reason or f"{_ENDED_BY_SAGEMAKER}{seen.secondary}"
    failure, known = _class_of_loss(reason), replace(current(job), interruptions=_interruptions(job, seen))
    known_job = replace(job, attempt=known, failures={**job.failures, failure: job.failures.get(failure, 0) + 1})
    return replace_base(known_job, now, reason, warm_until=_warm_until(job, seen, now))


def _wait_after_given_up(job: Job, now: datetime, retries: Retries | None) -> Job:
    """Return the job after the queue gave its attempt up; instances that came after all were no shortage."""
    if current(job).base_lost is not None:
        return _wait_after_loss(job, now, retries)
    if current(job).started_at is not None:
        return _step_aside(job, Outcome.PREEMPTED, now, _CAME_TOO_LATE)
    return retry_or_fail(job, FailureClass.CAPACITY, now, NO_CAPACITY_IN_TIME, retries)


def _wait_after_loss(job: Job, now: datetime, retries: Retries | None) -> Job:
    """Return the job after an attempt that was given up: the loss of its base, counted already, ended it."""
    reason = current(job).base_lost or ""
    failure = _class_of_loss(reason)
    before = {**job.failures, failure: max(job.failures.get(failure, 0) - 1, 0)}
    return retry_or_fail(replace(job, failures=before), failure, now, reason, retries)


def _apply_member_report(job: Job, seen: Observation, now: datetime) -> Job | None:
    member = member_of(current(job), seen.training_job_name)
    if seen.terminal:
        why = "has completed" if seen.status is Status.COMPLETED else f"has ended: {seen.failure_reason or seen.status}"
        return remove_member(job, seen.training_job_name, now, why, lost=seen.status is not Status.COMPLETED)
    if seen.at_work and member.started_at is None:
        return mark_member_started(job, seen.training_job_name, seen.started_at or now, now)
    return None if member.launched else mark_member_launched(job, seen.training_job_name, now)


def _apply_stop(job: Job, seen: Observation, now: datetime, retries: Retries | None) -> Job:
    if _stopped_to_resize(job) and not user_stopped_it(current(job), seen):
        return resume_resized(job, now)
    if job.state is JobState.PREEMPTING and not user_stopped_it(current(job), seen):
        return _preempted(job, now)
    if current(job).given_up and not user_stopped_it(current(job), seen):
        return _wait_after_given_up(job, now, retries)
    if _pending_timed_out(job, seen, now):
        return _without_capacity(job, FailureClass.CAPACITY, now, NO_CAPACITY_IN_TIME, retries)
    return _stopped(job, now, "stopped outside the queue")


def _apply_failure(job: Job, seen: Observation, now: datetime, retries: Retries | None) -> Job:
    reason = seen.failure_reason or "SageMaker gave no reason"
    failure = seen.failure_class
    if failure is None:
        return fail(job, now, reason)
    if failure is FailureClass.ALGORITHM and (full_restart := restart_in_full(job, now, reason)) is not None:
        return full_restart
    if failure is FailureClass.CAPACITY and job.state is JobState.PREEMPTING:
        return _preempted(job, now)
    if failure is FailureClass.CAPACITY:
        return _without_capacity(job, failure, now, reason, retries)
    return retry_or_fail(job, failure, now, reason, retries)


def _without_capacity(job: Job, failure: FailureClass, now: datetime, reason: str, retries: Retries | None) -> Job:
    """Apply a capacity failure: a growth by restart returns to the size before."""
    under_way = current(job).resizing
    if under_way is None or not under_way.grows or elastic_of(job).hook is not Hook.RESTART:
        return retry_or_fail(job, failure, now, reason, retries)
    known = replace(job, attempt=replace(current(job), launched=True))
    return resume_resized(abandon_resize(known, now, reason), now)


def _stopped_to_resize(job: Job) -> bool:
    attempt = current(job)
    return job.state is JobState.RESIZING and attempt.resizing is not None and attempt.stop_asked_at is not None


def _stopped(job: Job, now: datetime, reason: str) -> Job:
    return end(job, JobState.STOPPED, close_attempt(job, Outcome.STOPPED, now, reason), now, reason)


def _reclaimed(job: Job, seen: Observation, now: datetime) -> bool:
    """Return whether SageMaker ended it because its training plan's reserved capacity ends.

    AWS does not document the status, so the time decides: any failure from half an hour before the end on. A failure of
    the user's code in that half hour is therefore retried once.
    """
    at = current(job).reclaimed_at
    ended = seen.stopping_since or now
    return at is not None and ended + CLOCK_TOLERANCE >= at and job.state is not JobState.PREEMPTING


def _with_warm_pool(before: Job, after: Job, seen: Observation, now: datetime) -> Job:
    """Return the ended attempt with the warm pool that it leaves, unless the report excludes one.

    Completed, stopped and failed jobs leave one if they have had instances (SageMaker developer guide, "Train using
    SageMaker managed warm pools"). If the report does not mention it, it is assumed to exist until polled.
    """
    until = _warm_until(before, seen, now)
    if until is None:
        return after
    if current(after).number == current(before).number:
        return replace(after, attempt=replace(current(after), warm_until=until))
    *past, ended = after.past
    return replace(after, past=(*past, replace(ended, warm_until=until)))


def _warm_until(job: Job, seen: Observation, now: datetime) -> datetime | None:
    """Return when the warm pool that an ended base leaves ends; None if it leaves none, as members do."""
    attempt = current(job)
    stays = job.keep_alive and not attempt.successor and seen.warm in (None, Warm.IN_USE, Warm.AVAILABLE)
    return (seen.warm_until or now + MAX_KEEP_ALIVE) if stays and attempt.started_at is not None else None


def user_stopped_it(attempt: Attempt, seen: Observation) -> bool:
    """Return whether it stops on another's request: decided by whose stop SageMaker accepted.

    Times decide only where that is unknown, since SageMaker accepts repeated stops, and a call may have got no answer
    or may never have been made. They are compared on SageMaker's clock.
    """
    asked, since = attempt.stop_asked_at, seen.stopping_since
    if attempt.stopped_outside or asked is None or since is None:
        return attempt.stopped_outside
    if not attempt.stop_sent and attempt.stop_called_at is None:
        return True
    least, most = _clock_difference(attempt, seen)
    if since < asked + least or attempt.stop_sent:
        return since < asked + least
    # Each pass repeats the call, so SageMaker may have accepted one between the first and the newest.
    newest = max(asked, attempt.stop_called_at or asked)
    return since > newest + max(most, SAME_TIME)


def _clock_difference(attempt: Attempt, seen: Observation) -> tuple[timedelta, timedelta]:
    """Return the least and the largest time by which SageMaker's clock may be ahead of the queue's.

    The training job was created between the decision to start it and the answer to the call, which is exact to the
    duration of a call. Where that tells less, the clocks are taken to differ by no more than `SAME_TIME`.
    """
    created = seen.created_at if seen.training_job_name == attempt.training_job_name else None
    if created is None:
        return -SAME_TIME, SAME_TIME
    largest = created - attempt.created_at
    smallest = -SAME_TIME if attempt.launched_at is None else created - attempt.launched_at - ROUNDING
    if attempt.launched_at is not None and largest - smallest <= SAME_TIME:
        return smallest, largest
    return max(smallest, -SAME_TIME), min(largest, SAME_TIME)


def _pending_timed_out(job: Job, seen: Observation, now: datetime) -> bool:
    """Return whether SageMaker stopped it after `MaxPendingTimeInSeconds` without capacity; no status shows that."""
    attempt = current(job)
    waited = now - attempt.created_at
    never_worked = attempt.started_at is None and seen.started_at is None
    return never_worked and job.max_pending is not None and waited + CLOCK_TOLERANCE >= job.max_pending


def _preempted(job: Job, now: datetime) -> Job:
    return _step_aside(job, Outcome.PREEMPTED, now, f"preempted for {current(job).freed_for}")


def _step_aside(job: Job, outcome: Outcome, now: datetime, reason: str) -> Job:
    """Return the job waiting, without back-off, to continue from its checkpoints."""
    return move(job, JobState.PREEMPTED, now, reason, attempt=close_attempt(job, outcome, now, reason))


def _apply_stopping(job: Job, attempt: Attempt, now: datetime) -> Job | None:
    if attempt.stop_asked_at is not None:
        return None
    # A user stopped it in the console or by an SDK, or SageMaker did at a limit; the end will show which.
    stopping = replace(
        stop_attempt(attempt, now), launched=True, stop_asked_at=now, stop_sent=True, stopped_outside=True
    )
    return note(job, now, "is being stopped outside the queue", attempt=stopping)


def _apply_progress(job: Job, attempt: Attempt, seen: Observation, now: datetime) -> Job | None:
    choice = _chosen_type_changes(attempt, seen)
    known = replace(attempt, launched=True, interruptions=_interruptions(job, seen), **choice)
    if "units" in choice:
        job = note(job, now, f"SageMaker has chosen {_units_text(known)}", attempt=known)
    if job.state is JobState.STARTING and seen.at_work:
        known = replace(known, started_at=seen.started_at or now)
        others = {failure: times for failure, times in job.failures.items() if failure is not FailureClass.CAPACITY}
        at_work = "instances at work" if job.work is None else job.work.at_work_reason
        size = None if job.elastic is None else known.size
        return move(job, JobState.RUNNING, now, at_work, size=size, attempt=known, capacity_failures=0, failures=others)
    if job.state is JobState.RESIZING and attempt.started_at is None and seen.at_work:
        if attempt.stop_asked_at is not None:
            # It came too late; later decisions stand.
            return touch(job, attempt=replace(known, started_at=seen.started_at or now))
        return complete_resize(replace(job, attempt=replace(known, started_at=seen.started_at or now)), now)
    if "units" in choice:
        return job
    return None if known == attempt else touch(job, attempt=known)


def _interruptions(job: Job, seen: Observation) -> int:
    """Return the maximum that any report gave, since they may be out of order."""
    return max(current(job).interruptions, seen.interruptions)


def _chosen_type_changes(attempt: Attempt, seen: Observation) -> dict[str, Any]:
    """Return the changes once SageMaker has chosen among preferences, which frees the other pools' units."""
    chosen = seen.chosen_type
    if chosen is None or chosen not in attempt.choices:
        return {}
    if len(attempt.choices) == 1:
        return {"instance_type": chosen}
    # Choices are types; a pool's name may differ from its type.
    pool = list(attempt.units)[attempt.choices.index(chosen)]
    return {"units": {pool: attempt.units[pool]}, "choices": (chosen,), "instance_type": chosen}


def _units_text(attempt: Attempt) -> str:
    """Return the attempt's units as text, with the type if the pool's name differs."""
    ((pool, count),) = attempt.units.items()
    return counted(count, pool) + ("" if pool == attempt.instance_type else f" ({attempt.instance_type})")
