"""Retry failed jobs with back-off, up to a limit for each class of failure, or fail them.

The limits are the queue's (`Policy.retries`) or the job's own (`trainmaster:retry-...`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.domain.jobs.attempt import Outcome, requests_full_restart
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle.transition import close_attempt, end, move, waiting_state
from trainmaster.domain.policy.settings import FailureClass, Retry, default_retries

Retries = Mapping[FailureClass, Retry]

_MAX_PART_LENGTH = 200
"""Characters of each earlier failure that the final reason repeats."""
_MAX_PARTS = 5


def back_off(failures: int, retry: Retry) -> timedelta:
    """Return the wait after the n-th failure: `first_delay`, doubled each time, at most `max_delay`.

    The default's 60 s is Kueue's for jobs whose pods did not become ready (`waitForPodsReady`); its maximum is shorter.
    """
    doublings = min(max(failures - 1, 0), 20)
    return min(retry.first_delay * (1 << doublings), retry.max_delay)


def requeue_unlaunched(job: Job, now: datetime, reason: str, retries: Retries | None = None) -> Job:
    """Requeue a job with back-off after a start that failed through no fault of its own; no attempt is counted."""
    retry = _rule(FailureClass.CAPACITY, retries)
    returned = replace(
        job, capacity_failures=job.capacity_failures + 1, attempt=close_attempt(job, Outcome.RETURNED, now, reason)
    )
    return _wait_again(returned, now, reason, back_off(returned.capacity_failures, retry))


def retry_or_fail(job: Job, failure: FailureClass, now: datetime, reason: str, retries: Retries | None = None) -> Job:
    """Requeue a job after a failure of this class, or fail it beyond the limit.

    Capacity failures count consecutively, since waiting for capacity costs nothing; others count in total.
    """
    retry = _rule(failure, retries)
    times = job.failures.get(failure, 0) + 1
    counted = replace(job, failures={**job.failures, failure: times})
    limit = job.retries.get(failure, retry.max_retries)
    if not may_retry(job, failure, retries):
        attempt = close_attempt(job, Outcome.FAILED, now, reason)
        return end(counted, JobState.FAILED, attempt, now, _failure_text(counted, reason, times))
    if failure is FailureClass.CAPACITY:
        return requeue_unlaunched(counted, now, reason, retries)
    bound = "" if limit is None else f" of at most {limit}"
    tried = replace(counted, attempt=close_attempt(job, Outcome.FAILED, now, reason))
    return _wait_again(tried, now, f"{reason} (retry {times}{bound}, class {failure})", back_off(times, retry))


def may_retry(job: Job, failure: FailureClass, retries: Retries | None = None) -> bool:
    """Return whether one more failure of this class is within the limit."""
    limit = job.retries.get(failure, _rule(failure, retries).max_retries)
    return limit is None or job.failures.get(failure, 0) < limit


def fail(job: Job, now: datetime, reason: str) -> Job:
    """Fail the job for a reason that a retry would meet again."""
    return end(job, JobState.FAILED, close_attempt(job, Outcome.FAILED, now, reason), now, reason)


def restart_in_full(job: Job, now: datetime, reason: str) -> Job | None:
    """Requeue a job at once if its nodes requested a new attempt and its restart budget allows it.

    Returns None if they have not, or if the budget is spent: then it fails like any other job.
    """
    if job.elastic is None or not requests_full_restart(reason):
        return None
    budget = job.elastic.budget
    before = (*job.attempt_totals.full, *(attempt.ended_at for attempt in job.past if attempt.requested_full_restart))
    recent = sum(at is not None and at > now - budget.period for at in before)
    if recent >= budget.max_full_restarts:
        return None
    ended = close_attempt(job, Outcome.FAILED, now, reason)
    # The restart that requests it is among the counted ones, if they could be read.
    tried = replace(job, attempt=replace(ended, restarts=max(ended.restarts, 1)))
    counted = f"{reason} (full restart {recent + 1} of at most {budget.max_full_restarts})"
    return _wait_again(tried, now, counted, timedelta(0))


def _wait_again(job: Job, now: datetime, reason: str, wait: timedelta) -> Job:
    return move(job, waiting_state(job), now, reason, retry_at=now + wait, reservation=None)


def _rule(failure: FailureClass, retries: Retries | None) -> Retry:
    """Return the queue's rule, or the default one for this class."""
    default = default_retries()[failure]
    return default if retries is None else retries.get(failure, default)


def _failure_text(job: Job, reason: str, times: int) -> str:
    """Return the last failure's reason, followed by earlier ones."""
    badly = (Outcome.FAILED, Outcome.RETURNED)
    before = [
        f"attempt {attempt.number}: {(attempt.reason or '')[:_MAX_PART_LENGTH]}"
        for attempt in job.past
        if attempt.outcome in badly
    ]
    more = job.attempt_totals.ended(*badly) + max(len(before) - _MAX_PARTS, 0)
    if times == 1 and not before and not more:
        return reason
    cut = [f"{more} more"] if more else []
    tried = "tried once" if times == 1 else f"tried {times} times"
    return "; ".join([f"{reason} ({tried}, the maximum", *cut, *before[-_MAX_PARTS:]]) + ")"
