"""Every change that a job can go through, as a pure function from the job before to the job after.

Each asks `TRANSITIONS`, counts the version up and writes one line of history. It must not read a clock, store
anything or decide whether the change is wise.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.capacity import Units
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.job import (
    TRANSITIONS,
    Attempt,
    Change,
    Hold,
    Job,
    JobState,
    Outcome,
    attempt_name,
)
from trainmaster.domain.observation import TIMED_OUT, Observation, Status

FIRST_BACK_OFF = timedelta(seconds=60)
LONGEST_BACK_OFF = timedelta(minutes=16)
CLOCK_TOLERANCE = timedelta(seconds=5)
"""How far SageMaker's clock and ours may differ before we call one of them the earlier."""


def back_off(returns: int) -> timedelta:
    """How long a job waits after its n-th start in a row without capacity: 60 s, doubled, at most 16 minutes.

    The first figure is Kueue's for jobs whose pods did not become ready (`waitForPodsReady`); the cap is shorter,
    """
    doublings = min(max(returns - 1, 0), 10)
    return min(FIRST_BACK_OFF * (1 << doublings), LONGEST_BACK_OFF)


def start(job: Job, units: Units, choices: tuple[str, ...], now: datetime) -> Job:
    """The job takes capacity under a new attempt; its name is fixed before SageMaker is called.

    A start that SageMaker refused for its limits left no training job behind, so its number is used again.
    """
    last = job.attempt
    reuse = last is not None and last.outcome is Outcome.RETURNED and not last.launched
    number = 1 if last is None else last.number + (0 if reuse else 1)
    attempt = Attempt(
        number=number,
        training_job_name=attempt_name(job.name, number),
        units=dict(units),
        choices=choices,
        created_at=now,
    )
    past = job.past if last is None or reuse else (*job.past, last)
    return _move(job, JobState.STARTING, now, _places(units), attempt=attempt, past=past, hold=None, retry_at=None)


def launched(job: Job) -> Job:
    """SageMaker is known to have the attempt."""
    return _touch(job, attempt=replace(current(job), launched=True))


def preempt(job: Job, beneficiary: str, now: datetime) -> Job:
    """The job is to step aside; its capacity is freed for `beneficiary`."""
    attempt = replace(current(job), stop_asked_at=now, freed_for=beneficiary)
    return _move(job, JobState.PREEMPTING, now, f"steps aside for {beneficiary}", attempt=attempt)


def keep_for(job: Job, hold: Hold) -> Job:
    """A waiting job gets capacity that is being freed for it."""
    return _touch(job, hold=hold)


def ask_stop(job: Job, now: datetime, who: str) -> Job:
    """Its user wants an active job stopped: it will end as stopped and not be resumed."""
    if job.state not in (JobState.STARTING, JobState.RUNNING, JobState.PREEMPTING):
        raise IllegalTransition(f"job {job.name} is {job.state}: there is nothing to stop", field="jobState")
    attempt = current(job)
    attempt = replace(attempt, stop_asked_at=attempt.stop_asked_at or now)
    line = Change(now, job.state, job.state, f"stop asked by {who}", attempt.number)
    return _touch(job, attempt=attempt, stop_requested=True, history=(*job.history, line))


def stop_sent(job: Job) -> Job:
    """SageMaker is known to have been asked to stop the attempt."""
    return _touch(job, attempt=replace(current(job), stop_sent=True))


def cancel(job: Job, now: datetime, who: str) -> Job:
    """A waiting job is taken off the queue for good."""
    return _move(job, JobState.CANCELLED, now, f"cancelled by {who}", hold=None, retry_at=None, ended_at=now)


def hold(job: Job, now: datetime, who: str) -> Job:
    """A waiting job stays out of consideration until it is released."""
    return _move(job, JobState.HELD, now, f"held by {who}", hold=None)


def release(job: Job, now: datetime, who: str) -> Job:
    """A held job waits again, as preempted where it had run before, keeping its entry time."""
    target = JobState.PREEMPTED if _ran(job) else JobState.PENDING
    if job.state is not JobState.HELD:
        raise IllegalTransition(f"job {job.name} is {job.state}, not held", field="hold")
    return _move(job, target, now, f"released by {who}", retry_at=None)


def reprioritise(job: Job, priority: int, now: datetime, who: str) -> Job:
    """The job gets another priority; it keeps its entry time."""
    line = Change(now, job.state, job.state, f"priority {job.priority} -> {priority} by {who}", _number(job))
    return _touch(job, priority=priority, history=(*job.history, line))


def give_back(job: Job, now: datetime, reason: str) -> Job:
    """A start met no capacity: the job waits again with back-off, and no attempt is burnt."""
    returns = job.returns + 1
    attempt = replace(current(job), outcome=Outcome.RETURNED, ended_at=now, reason=reason)
    target = JobState.PREEMPTED if _ran(job) else JobState.PENDING
    return _move(
        job, target, now, reason, attempt=attempt, returns=returns, retry_at=now + back_off(returns), hold=None
    )


def fail(job: Job, now: datetime, reason: str) -> Job:
    """The attempt cannot go on, for a reason that another try would meet again."""
    return _end(job, JobState.FAILED, Outcome.FAILED, now, reason)


def observe(job: Job, seen: Observation, now: datetime) -> Job | None:
    """The job after a report about its training job; None where the report changes nothing.

    A report about another attempt than the newest, or about a job that holds no capacity, changes nothing: events
    come late, twice and out of order.
    """
    attempt = job.attempt
    if attempt is None or not job.units or attempt.training_job_name != seen.training_job_name:
        return None
    if seen.terminal:
        return _ended(job, seen, now)
    if seen.status is Status.STOPPING:
        return _seen_stopping(job, attempt, now)
    return _seen_in_progress(job, attempt, seen, now)


def _ended(job: Job, seen: Observation, now: datetime) -> Job:
    if seen.status is Status.COMPLETED:
        return _end(job, JobState.COMPLETED, Outcome.COMPLETED, now, "completed")
    if seen.secondary in TIMED_OUT:
        return _end(job, JobState.STOPPED, Outcome.STOPPED, now, f"SageMaker ended it: {seen.secondary}")
    if job.stop_requested:
        return _end(job, JobState.STOPPED, Outcome.STOPPED, now, "stopped by its user")
    if seen.status is Status.FAILED:
        return _ended_failed(job, seen, now)
    if job.state is JobState.PREEMPTING and not _user_was_first(current(job), seen):
        return _preempted(job, now)
    if _pending_timed_out(job, seen, now):
        return give_back(job, now, "no EC2 capacity within MaxPendingTimeInSeconds")
    return _end(job, JobState.STOPPED, Outcome.STOPPED, now, "stopped outside the queue")


def _ended_failed(job: Job, seen: Observation, now: datetime) -> Job:
    reason = seen.failure_reason or "SageMaker gave no reason"
    if not seen.no_capacity:
        return fail(job, now, reason)
    if job.state is JobState.PREEMPTING:
        return _preempted(job, now)
    return give_back(job, now, reason)


def _user_was_first(attempt: Attempt, seen: Observation) -> bool:
    """Whether SageMaker began to stop the job before we decided to: then its user, not the queue, stopped it."""
    asked, since = attempt.stop_asked_at, seen.stopping_since
    return asked is not None and since is not None and since < asked - CLOCK_TOLERANCE


def _pending_timed_out(job: Job, seen: Observation, now: datetime) -> bool:
    """SageMaker stops a job that found no capacity within its `MaxPendingTimeInSeconds`; no status tells it so."""
    attempt = current(job)
    waited = now - attempt.created_at
    never_worked = attempt.started_at is None and seen.started_at is None
    return never_worked and job.max_pending is not None and waited + CLOCK_TOLERANCE >= job.max_pending


def _preempted(job: Job, now: datetime) -> Job:
    attempt = current(job)
    reason = f"preempted for {attempt.freed_for}"
    done = replace(attempt, outcome=Outcome.PREEMPTED, ended_at=now, reason=reason)
    return _move(job, JobState.PREEMPTED, now, reason, attempt=done)


def _seen_stopping(job: Job, attempt: Attempt, now: datetime) -> Job | None:
    if attempt.stop_asked_at is not None:
        return None
    # Nobody asked us: a person stopped it in the console or by an SDK, or SageMaker did at a limit. The end will tell.
    stopping = replace(attempt, launched=True, stop_asked_at=now, stop_sent=True)
    line = Change(now, job.state, job.state, "is being stopped outside the queue", attempt.number)
    return _touch(job, attempt=stopping, history=(*job.history, line))


def _seen_in_progress(job: Job, attempt: Attempt, seen: Observation, now: datetime) -> Job | None:
    known = replace(attempt, launched=True, **_chosen(attempt, seen))
    if job.state is JobState.STARTING and seen.at_work:
        known = replace(known, started_at=seen.started_at or now)
        return _move(job, JobState.RUNNING, now, "instances at work", attempt=known, returns=0)
    return None if known == attempt else _touch(job, attempt=known)


def _chosen(attempt: Attempt, seen: Observation) -> dict[str, Any]:
    """Once SageMaker has chosen among preferences, the other pools' units are free."""
    chosen = seen.chosen_type
    if chosen is None or len(attempt.choices) < 2 or chosen not in attempt.units:
        return {}
    return {"units": {chosen: attempt.units[chosen]}, "choices": (chosen,)}


def _end(job: Job, state: JobState, outcome: Outcome, now: datetime, reason: str) -> Job:
    attempt = replace(current(job), outcome=outcome, ended_at=now, reason=reason)
    failure = reason if state is not JobState.COMPLETED else None
    return _move(job, state, now, reason, attempt=attempt, failure=failure, ended_at=now, hold=None)


def _move(job: Job, state: JobState, now: datetime, reason: str, **changes: Any) -> Job:
    if state not in TRANSITIONS[job.state]:
        raise IllegalTransition(f"job {job.name} is {job.state}; it cannot become {state}", field="jobState")
    number = _number(job) if (attempt := changes.get("attempt")) is None else attempt.number
    line = Change(now, job.state, state, reason, number)
    return _touch(job, state=state, history=(*job.history, line), **changes)


def _touch(job: Job, **changes: Any) -> Job:
    return replace(job, version=job.version + 1, **changes)


def current(job: Job) -> Attempt:
    """The newest attempt. Raises `IllegalTransition` before the first start."""
    if job.attempt is None:
        raise IllegalTransition(f"job {job.name} has no attempt yet", field="jobState")
    return job.attempt


def _number(job: Job) -> int | None:
    return None if job.attempt is None else job.attempt.number


def _ran(job: Job) -> bool:
    """Whether any attempt was preempted: then the job waits as preempted, not as new."""
    return any(attempt.outcome is Outcome.PREEMPTED for attempt in job.attempts)


def _places(units: Units) -> str:
    return "takes " + ", ".join(f"{count} x {name}" for name, count in sorted(units.items()))
