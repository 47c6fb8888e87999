"""The order in which jobs are considered, and the ranks that decide which job may preempt which.

Priority dominates. Inside a priority: jobs that have waited longer than the policy's patience, then jobs with a near
deadline, then the queue's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.deadline import urgency, urgent_from
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.times import NEVER

PreemptionRank = tuple[int, ...]
"""(priority,) or (priority, level, wait), compared item by item: a job may preempt jobs of strictly lower rank."""
SortKey = tuple[object, ...]
NOT_URGENT = (True, NEVER)
"""The urgency of a job without a deadline, or with a distant one."""


@dataclass(slots=True)
class Ranking:
    """The ranking by entry time, and the base class of others.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        strict_order: whether no job passes a blocked equal.
    """

    snapshot: Snapshot
    now: datetime
    strict_order: bool = False

    def rank(self, job: Job) -> PreemptionRank:
        """Return the job's preemption rank now."""
        return (job.priority,)

    def rank_when_running(self, job: Job) -> PreemptionRank:
        """Return the rank that the job has once it runs, which a job must exceed to preempt it then."""
        return self.rank(job)

    def common_rank(self, job: Job) -> PreemptionRank:
        """Return the part of the rank that is equal for jobs with an equal `equivalence_key`."""
        return (job.priority,)

    def waiting_in_order(self) -> list[Job]:
        """Return the waiting jobs in the order in which they are considered; the name makes it total."""
        ordered = in_order(self.snapshot.waiting)
        # Jobs out of patience entered first, so only near deadlines change the order of entry.
        if all(job.deadline is None or self._urgency(job) == NOT_URGENT for job in self.snapshot.special):
            return ordered
        return sorted(ordered, key=self.sort_key)

    def sort_key(self, job: Job) -> SortKey:
        """Return priority down, patience, urgency, entry time up, name (the article's "get pending jobs")."""
        return (-job.priority, not self.out_of_patience(job), *self._urgency(job), *job.order[1:])

    def tier(self, job: Job) -> SortKey:
        """Return the first part of the sort key: priority, patience and urgency."""
        return self.sort_key(job)[:4]

    def _urgency(self, job: Job) -> tuple[bool, datetime]:
        """Return a key that puts jobs with a near deadline first, the most urgent before all."""
        latest = None if job.deadline is None else urgency(job, self.snapshot.records.history, self.now)
        return NOT_URGENT if latest is None else (False, latest)

    def changes_at(self) -> datetime | None:
        """Return the earliest time at which ranks or order change without any event; None for never."""
        return min((moment for moment in self._change_times() if moment > self.now), default=None)

    def _change_times(self) -> Iterator[datetime]:
        patience, history = self.snapshot.policy.patience, self.snapshot.records.history
        since = self.now - patience
        entered = [at for job in self.snapshot.waiting if (at := job.entry_time) > since]
        if entered:
            yield min(entered) + patience
        for job in self.snapshot.special:
            if job.deadline is not None and (urgent := urgent_from(job, history)) is not None:
                yield urgent

    def strict(self, job: Job) -> bool:
        """Return True if no job of its rank may pass the job while it is blocked."""
        return self.strict_order or self.out_of_patience(job)

    def holds_free_units(self, job: Job, units: Units, free: Callable[[str], int]) -> bool:  # noqa: ARG002 -- see gittins
        """Return True if all free units are kept for the blocked job against all others.

        Args:
            job: the blocked job.
            units: what it waits for.
            free: returns the units of a pool that it could have without preemption.
        """
        return False

    def drain(self, job: Job) -> timedelta:  # noqa: ARG002 -- the same
        """Return how long the pools need for all jobs of its priority and higher ones; 0 where it is not known."""
        return timedelta(0)

    def out_of_patience(self, job: Job) -> bool:
        """Return True if the job has waited so long that equals may no longer pass it."""
        return self.now - job.entry_time > self.snapshot.policy.patience


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs in queue order: priority down, entry time up, name."""
    return sorted(jobs, key=attrgetter("order"))
