"""Deadlines: when a job has to start, whether it goes before its equals, and whether its deadline can still be met.

A deadline must not be a way past one's equals for nothing. So it moves a job only

- when it left, at the job's entry into the queue, at least as long for waiting as the job may run (`max_runtime`);
- in the last quarter of the time between the job's entry and its latest start;
- for as long as the job can still be done in time.

Whoever is passed, is passed by a job that has waited for three quarters of its own time limit or more: the rule can do
no more than favour jobs that have waited long for their length (the response ratio; Brinch Hansen, 1971). SageMaker
stops a job at its limit, so a limit that is too short to be true does not pay. It must not read a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from trainmaster.domain.jobs.job import ACTIVE, ENDED, Job
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.times import clock

SAFE = 0.9
"""Fraction of jobs that run no longer than what a latest start reckons with."""
QUICK = 0.1
"""A deadline counts as lost where fewer than this fraction of jobs are quick enough."""
LAST_PART = 4
"""A job is urgent in the last of so many parts of the time between its entry and its latest start."""


def latest_start(job: Job, history: History) -> datetime | None:
    """When the job has to start to be done by its deadline, nine times in ten; None where it has none."""
    return None if job.deadline is None else job.deadline - _needs(job, history, SAFE)


def urgent_from(job: Job, history: History) -> datetime | None:
    """When the deadline begins to move the job before its equals; None where it never does."""
    if job.deadline is None or not _left_time_to_wait(job):
        return None
    latest = job.deadline - _needs(job, history, SAFE)
    return latest - max(latest - job.entry_time, timedelta(0)) / LAST_PART


def urgency(job: Job, history: History, now: datetime) -> datetime | None:
    """The latest start of a job that goes before its equals now, earliest first; None for any other job."""
    start = urgent_from(job, history)
    if start is None or now < start or not can_be_met(job, history, now):
        return None
    return latest_start(job, history)


def can_be_met(job: Job, history: History, now: datetime) -> bool:
    """Whether the job may still be done by its deadline: a quick one of its like would be. True without a deadline."""
    return job.deadline is None or now + _needs(job, history, QUICK, now) <= job.deadline


class Prospect(StrEnum):
    """How a deadline stands."""

    IN_TIME = "in time"
    URGENT = "urgent"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Outlook:
    """How a job stands to its deadline.

    Attributes:
        deadline: when it has to be done.
        prospect: `late`: most of its like would not be done in time; `lost`: hardly any would.
        latest_start: when it has to start; of a job that holds capacity: had to.
        urgent_from: when it begins to go before its equals; None where it never does.
    """

    deadline: datetime
    prospect: Prospect
    latest_start: datetime
    urgent_from: datetime | None

    def message(self) -> str:
        """The outlook as a sentence."""
        end = clock(self.deadline)
        if self.prospect is Prospect.LOST:
            return f"can no longer be done by {end}"
        if self.prospect is Prospect.LATE:
            return f"is done by {end} only if it is quicker than most of its like"
        must = f"has to start by {clock(self.latest_start)} to be done by {end}"
        if self.prospect is Prospect.URGENT:
            return f"{must}; it goes before its equals"
        if self.urgent_from is None:
            return f"{must}; it left less time to wait than it may run, so it does not go before its equals"
        return f"{must}; it goes before its equals from {clock(self.urgent_from)} on"


def outlook(job: Job, history: History, now: datetime) -> Outlook | None:
    """How the job stands to its deadline; None where it has none, or has ended."""
    latest = latest_start(job, history)
    if job.deadline is None or latest is None or job.state in ENDED:
        return None
    if not can_be_met(job, history, now):
        prospect = Prospect.LOST
    elif now + _needs(job, history, SAFE, now) > job.deadline:
        prospect = Prospect.LATE
    elif job.state not in ACTIVE and urgency(job, history, now) is not None:
        prospect = Prospect.URGENT
    else:
        prospect = Prospect.IN_TIME
    return Outlook(job.deadline, prospect, latest, urgent_from(job, history))


def _left_time_to_wait(job: Job) -> bool:
    """By the limit alone, so that what others run changes nothing about it."""
    return job.deadline is not None and job.deadline - job.entry_time >= 2 * job.max_runtime


def _needs(job: Job, history: History, quantile: float, now: datetime | None = None) -> timedelta:
    """Time from a start, or for a job at work from `now`, until it is done, in this fraction of cases."""
    at_work = _at_work(job, now)
    spent = job.worked + (at_work or 0.0)
    # A job without checkpoints begins anew, but it has shown that it takes longer than its longest try.
    done = spent if job.checkpointed else at_work or 0.0
    shown = spent if job.checkpointed else max(_longest_try(job), done)
    limit = job.max_runtime.total_seconds()
    total = history.run_time(job, shown, quantile)
    if total is None:
        total = _unknown(limit, done) if quantile >= SAFE else done
    left = min(max(total - done, 0.0), limit)
    return timedelta(seconds=left + (0.0 if at_work is not None else history.startup(job)))


def _unknown(limit: float, done: float) -> float:
    """Seconds in all of a job of whose like nothing is known: its limit, which each of its attempts has anew."""
    return limit if done < limit else done + limit


def _at_work(job: Job, now: datetime | None) -> float | None:
    """Seconds that the running attempt has been at work, see `Job.worked`; None where none is."""
    attempt = job.attempt
    if now is None or job.state not in ACTIVE or attempt is None or attempt.started_at is None:
        return None
    return max(job.worked_by(now) - job.worked, 0.0)


def _longest_try(job: Job) -> float:
    """Seconds of the longest attempt that has ended."""
    return max(job.earlier.longest, *(attempt.ran for attempt in job.attempts), 0.0)
