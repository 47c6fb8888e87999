"""What failed is tried again with back-off, within a bound for each class of failure, or ends the job.

How often and after how long is the queue's to say (`Policy.retries`), and the job's (`trainmaster:retry-...`). It must
not read what SageMaker said: `reports` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.domain.jobs.attempt import Outcome, asks_in_full
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.lifecycle.transition import closed, end, move, waiting_state
from trainmaster.domain.policy.settings import FailureClass, Retry, default_retries

Retries = Mapping[FailureClass, Retry]

_MAX_PART_LENGTH = 200
"""Characters of each earlier failure that the last one's reason repeats."""
_MAX_PARTS = 5


def back_off(failures: int, retry: Retry) -> timedelta:
    """How long a job waits after its n-th failure: `first`, doubled each time, at most `longest`.

    The default's 60 s is Kueue's for jobs whose pods did not become ready (`waitForPodsReady`); its cap is shorter.
    """
    doublings = min(max(failures - 1, 0), 20)
    return min(retry.first_delay * (1 << doublings), retry.max_delay)


def give_back(job: Job, now: datetime, reason: str, retries: Retries | None = None) -> Job:
    """A start met something that is not the job's fault: it waits again with back-off, and no attempt is burnt."""
    retry = _rule(FailureClass.CAPACITY, retries)
    returned = replace(
        job, capacity_failures=job.capacity_failures + 1, attempt=closed(job, Outcome.RETURNED, now, reason)
    )
    return _again(returned, now, reason, back_off(returned.capacity_failures, retry))


def failed_as(job: Job, failure: FailureClass, now: datetime, reason: str, retries: Retries | None = None) -> Job:
    """The attempt met a failure of this class: the job is tried again, or fails where that was once too often.

    Failures for want of capacity count in a row, since waiting for it costs nothing; others in all.
    """
    retry = _rule(failure, retries)
    times = job.failures.get(failure, 0) + 1
    counted = replace(job, failures={**job.failures, failure: times})
    most = job.retries.get(failure, retry.max_retries)
    if most is not None and times > most:
        attempt = closed(job, Outcome.FAILED, now, reason)
        return end(counted, JobState.FAILED, attempt, now, _story(counted, reason, times))
    if failure is FailureClass.CAPACITY:
        return give_back(counted, now, reason, retries)
    bound = "" if most is None else f" of at most {most}"
    tried = replace(counted, attempt=closed(job, Outcome.FAILED, now, reason))
    return _again(tried, now, f"{reason} (new try {times}{bound}, class {failure})", back_off(times, retry))


def fail(job: Job, now: datetime, reason: str) -> Job:
    """The attempt cannot go on, for a reason that another try would meet again."""
    return end(job, JobState.FAILED, closed(job, Outcome.FAILED, now, reason), now, reason)


def restarted_in_full(job: Job, now: datetime, reason: str) -> Job | None:
    """The job waits for a new attempt, at once, where its nodes have asked for one and its budget has any left.

    None where they have not, or where it has none left: then it has failed like any other.
    """
    if job.elastic is None or not asks_in_full(reason):
        return None
    budget = job.elastic.budget
    before = (*job.earlier.full, *(each.ended_at for each in job.past if each.asked_in_full))
    recent = sum(at is not None and at > now - budget.period for at in before)
    if recent >= budget.most_full:
        return None
    ended = closed(job, Outcome.FAILED, now, reason)
    # The restart that asks for it is one of those that were counted, as far as anybody could read them.
    tried = replace(job, attempt=replace(ended, restarts=max(ended.restarts, 1)))
    return _again(tried, now, f"{reason} (full restart {recent + 1} of at most {budget.most_full})", timedelta(0))


def _again(job: Job, now: datetime, reason: str, wait: timedelta) -> Job:
    return move(job, waiting_state(job), now, reason, retry_at=now + wait, reservation=None)


def _rule(failure: FailureClass, retries: Retries | None) -> Retry:
    """The queue's rule; the default one where it has none for this class."""
    default = default_retries()[failure]
    return default if retries is None else retries.get(failure, default)


def _story(job: Job, reason: str, times: int) -> str:
    """The last failure's reason, with the earlier ones where the job was tried before."""
    badly = (Outcome.FAILED, Outcome.RETURNED)
    before = [
        f"attempt {attempt.number}: {(attempt.reason or '')[:_MAX_PART_LENGTH]}"
        for attempt in job.past
        if attempt.outcome in badly
    ]
    more = job.earlier.ended(*badly) + max(len(before) - _MAX_PARTS, 0)
    if times == 1 and not before and not more:
        return reason
    cut = [f"{more} more"] if more else []
    tried = "tried once" if times == 1 else f"tried {times} times"
    return "; ".join([f"{reason} ({tried}, as often as it may be", *cut, *before[-_MAX_PARTS:]]) + ")"
