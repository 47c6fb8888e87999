"""Expected ends of jobs, from the run times of their class and never beyond their time limit.

An expectation is conditional on how long a job has run, so it moves when a job runs longer. An elastic job is expected
to run as long as its class does at its minimum size, and faster the larger it is now. Jobs of other kinds have no time
limit; their progress says more than the history.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.plan import Snapshot

MEDIAN = 0.5
"""The quantile of run times of its class that a job is expected to have."""
STOP_DURATION = timedelta(minutes=3)
"""The usual duration of a stop: SIGTERM, 120 s of grace, upload (SageMaker API, StopTrainingJob)."""
OVERDUE_GRACE = timedelta(minutes=1)
"""The expected time to the end of a job that should have ended already."""


@dataclass(slots=True)
class ExpectedEnds:
    """Expected ends, each computed when first asked for.

    Attributes:
        snapshot: the queue as read.
        now: UTC.
        quantile: the probability that a job has ended by its expected end.
    """

    snapshot: Snapshot
    now: datetime
    quantile: float = MEDIAN
    _ends: dict[str, datetime] = field(default_factory=dict)
    _new_run_times: dict[tuple[object, ...], timedelta] = field(default_factory=dict)
    _typical_run_times: dict[tuple[str, ...], float | None] = field(default_factory=dict)
    _overdue_holders: dict[str, str | None] = field(default_factory=dict)

    def end(self, job: Job) -> datetime:
        """Return when an active job releases its units."""
        found = self._ends.get(job.name)
        if found is None:
            found = self._ends[job.name] = self._end(job)
        return found

    def run_time(self, job: Job) -> timedelta:
        """Return how long a waiting job would hold units if it started now."""
        if job.attempt is not None:
            return self._run_time(job)
        similar = None if job.work is None else job.work.similarity
        sizes = (job.demand.size, job.most_instances)
        kind = (job.share, job.container_image, job.demand.lane, sizes, job.max_runtime, similar)
        found = self._new_run_times.get(kind)
        if found is None:
            found = self._new_run_times[kind] = self._run_time(job)
        return found

    def overdue_holder(self, pool: str) -> str | None:
        """Return the first job by name on the pool that has run longer than expected; None if none has."""
        if pool not in self._overdue_holders:
            holders = self.snapshot.holders.get(pool, ())
            late = (job.name for job in holders if not job.stopping and self.overdue(job))
            self._overdue_holders[pool] = min(late, default=None)
        return self._overdue_holders[pool]

    def overdue(self, job: Job) -> bool:
        """Return True if an active job has run longer than was expected at its start."""
        attempt = job.attempt
        if attempt is None or attempt.started_at is None:
            return False
        expected = self._typical_run_time(job)
        return expected is not None and job.worked_by(self.now) > expected

    def _typical_run_time(self, job: Job) -> float | None:
        """Return the seconds that a job of its class runs."""
        history = self.snapshot.records.history
        if job.work is not None:
            return history.run_time(job, 0.0, self.quantile)
        kinds = job.run_time_classes
        if kinds not in self._typical_run_times:
            self._typical_run_times[kinds] = history.run_time(job, 0.0, self.quantile)
        return self._typical_run_times[kinds]

    def _run_time(self, job: Job) -> timedelta:
        history, before = self.snapshot.records.history, job.worked
        total = history.run_time(job, before, self.quantile)
        if job.work is not None and total is not None:
            return timedelta(seconds=max(total - before, 0.0))
        startup = timedelta(seconds=history.startup(job))
        return job.max_runtime if total is None else startup + min(timedelta(seconds=total - before), job.max_runtime)

    def _end(self, job: Job) -> datetime:
        attempt = job.attempt
        if attempt is None:
            return self.now
        if job.stopping:
            return self._in_future((attempt.stop_asked_at or attempt.base_ended_at or self.now) + STOP_DURATION)
        if job.elastic is not None:
            return self._end_of_elastic(job, job.elastic.min_instances, attempt)
        if job.work is not None:
            return self._end_of_work(job, job.work, attempt)
        history = self.snapshot.records.history
        at_work = attempt.started_at or max(attempt.created_at + timedelta(seconds=history.startup(job)), self.now)
        so_far = max((self.now - at_work).total_seconds(), 0.0)
        limit = at_work + job.max_runtime
        before = job.worked
        total = history.run_time(job, before + so_far, self.quantile)
        return self._in_future(limit if total is None else min(at_work + timedelta(seconds=total - before), limit))

    def _end_of_elastic(self, job: Job, smallest_size: int, attempt: Attempt) -> datetime:
        """Return the end of an elastic job at its current size; its run time counts at the minimum size."""
        history = self.snapshot.records.history
        startup = timedelta(seconds=history.startup(job))
        at_work = attempt.started_at or max(attempt.created_at + startup, self.now)
        limit, done = at_work + job.max_runtime, job.worked_by(self.now)
        total = history.run_time(job, done, self.quantile)
        if total is None:
            return self._in_future(limit)
        left = timedelta(seconds=(total - done) * smallest_size / max(attempt.size, 1))
        return self._in_future(min(max(at_work, self.now) + left, limit))

    def _end_of_work(self, job: Job, work: Work, attempt: Attempt) -> datetime:
        """Return the end by the progress, else by the kind; such a job has no time limit."""
        done = job.worked_by(self.now)
        left = work.seconds_left(attempt.given, done, self.quantile)
        if left is None:
            total = self.snapshot.records.history.run_time(job, done, self.quantile)
            left = 0.0 if total is None else total - done
        return self._in_future(self.now + timedelta(seconds=left))

    def _in_future(self, end: datetime) -> datetime:
        return end if end > self.now else self.now + OVERDUE_GRACE
