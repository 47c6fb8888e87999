"""Deadlines: the latest start of a job, its urgency among jobs of equal rank, and whether the deadline can be met.

A deadline moves a job ahead of jobs of equal rank only

- when it left, at the job's entry into the queue, at least as long for waiting as the job may run (`max_runtime`);
- in the last quarter of the time between the job's entry and its latest start;
- for as long as the job can still be done in time.

So only jobs that have waited for at least three quarters of their own time limit move ahead: the rule favors jobs that
have waited long for their length (the response ratio; Brinch Hansen, 1971). SageMaker stops a job at
its limit, so setting a limit that is too short brings no advantage.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.job import ACTIVE, ENDED, Job
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.times import clock

SAFE = 0.9
"""Quantile of run times on which the latest start is based."""
QUICK = 0.1
"""A deadline counts as lost if less than this fraction of similar jobs would meet it."""
LAST_PART = 4
"""A job is urgent in the last of this many equal parts of the time between its entry and its latest start."""


def latest_start(job: Job, history: History) -> datetime | None:
    """Return when the job must start to meet its deadline with 90 % probability; None without a deadline."""
    return None if job.deadline is None else job.deadline - _needs(job, history, SAFE)


def urgent_from(job: Job, history: History) -> datetime | None:
    """Return when the deadline begins to move the job ahead of jobs of equal rank; None if it never does."""
    if job.deadline is None or not _left_time_to_wait(job):
        return None
    latest = job.deadline - _needs(job, history, SAFE)
    return latest - max(latest - job.entry_time, timedelta(0)) / LAST_PART


def urgency(job: Job, history: History, now: datetime) -> datetime | None:
    """Return the latest start of a job that is urgent now, by which urgent jobs are sorted; None for other jobs."""
    start = urgent_from(job, history)
    if start is None or now < start or not can_be_met(job, history, now):
        return None
    return latest_start(job, history)


def can_be_met(job: Job, history: History, now: datetime) -> bool:
    """Return whether the job may still meet its deadline, as a quick similar job would; True without a deadline."""
    return job.deadline is None or now + _needs(job, history, QUICK, now) <= job.deadline


class Prospect(StrEnum):
    """Prospect of meeting a deadline."""

    IN_TIME = "in time"
    URGENT = "urgent"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Outlook:
    """A job's prospects of meeting its deadline.

    Attributes:
        deadline: the time by which it must be done.
        prospect: `late` if most similar jobs would miss it; `lost` if nearly all would.
        latest_start: when it must start, or must have started.
        urgent_from: when it begins to move ahead of jobs of equal rank; None if it never does.
        started: whether it holds instances already.
    """

    deadline: datetime
    prospect: Prospect
    latest_start: datetime
    urgent_from: datetime | None
    started: bool = False

    def message(self) -> str:
        """Return the outlook as a sentence."""
        end = clock(self.deadline)
        if self.prospect is Prospect.LOST:
            return f"can no longer be done by {end}"
        if self.prospect is Prospect.LATE:
            return f"is done by {end} only if it is faster than most similar jobs"
        if self.started:
            return f"will probably be done by {end}"
        must = f"has to start by {clock(self.latest_start)} to be done by {end}"
        if self.prospect is Prospect.URGENT:
            return f"{must}; it goes ahead of jobs of equal priority"
        if self.urgent_from is None:
            return (
                f"{must}; it left less time to wait than it may run, so it does not go ahead of jobs of equal priority"
            )
        return f"{must}; it goes ahead of jobs of equal priority from {clock(self.urgent_from)} on"


def outlook(job: Job, history: History, now: datetime) -> Outlook | None:
    """Return the job's prospects of meeting its deadline; None if it has none, or has ended."""
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
    return Outlook(job.deadline, prospect, latest, urgent_from(job, history), job.state in ACTIVE)


def _left_time_to_wait(job: Job) -> bool:
    """Return whether the deadline left time to wait; by the job's limit alone, so that other jobs do not matter."""
    return job.deadline is not None and job.deadline - job.entry_time >= 2 * job.max_runtime


def _needs(job: Job, history: History, quantile: float, now: datetime | None = None) -> timedelta:
    """Return the time until the job is done, from its start or, if it runs, from `now`, at this quantile."""
    at_work = _at_work(job, now)
    spent = job.worked + (at_work or 0.0)
    # A job without checkpoints starts over, but it takes longer than its longest attempt so far.
    done = spent if job.checkpointed else at_work or 0.0
    shown = spent if job.checkpointed else max(_longest_try(job), done)
    limit = job.max_runtime.total_seconds()
    total = history.run_time(job, shown, quantile)
    if total is None:
        total = _unknown(limit, done) if quantile >= SAFE else done
    left = min(max(total - done, 0.0), limit)
    return timedelta(seconds=left + (0.0 if at_work is not None else history.startup(job)))


def _unknown(limit: float, done: float) -> float:
    """Return the total seconds of a job without known similar jobs: its limit, which holds for each attempt."""
    return limit if done < limit else done + limit


def _at_work(job: Job, now: datetime | None) -> float | None:
    """Return the seconds of work of the running attempt, see `Job.worked`; None if none is running."""
    attempt = job.attempt
    if now is None or job.state not in ACTIVE or attempt is None or attempt.started_at is None:
        return None
    return max(job.worked_by(now) - job.worked, 0.0)


def _longest_try(job: Job) -> float:
    """Return the seconds of the longest ended attempt."""
    return max(job.attempt_totals.longest, *(attempt.ran for attempt in job.attempts), 0.0)
