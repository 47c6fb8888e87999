"""The order in which jobs are considered, and the ranks that decide which job may preempt which.

Priority dominates. Inside a priority: jobs that have waited longer than the policy's patience, then jobs with a near
deadline, then the queue's order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter

from trainmaster.domain.capacity.units import Pool, Units
from trainmaster.domain.jobs.deadline import urgency, urgent_from
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import LARGE
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.times import NEVER

PreemptionRank = tuple[int, ...]
"""(priority,) or (priority, level, wait), compared item by item: a job may preempt jobs of strictly lower rank."""
SortKey = tuple[object, ...]
NOT_URGENT = (True, NEVER)
"""The urgency of a job without a deadline, or with a distant one."""
_MAX_WAIT_SECONDS = 1e9
"""More than any job waits; keeps `timedelta` from overflowing."""
AGED_FROM = 0.85
"""A large job is aged once it has waited longer than this fraction of the large jobs before it."""


@dataclass(slots=True)
class Ranking:
    """The ranking by entry time, and the base class of others.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
        strict_order: whether no job passes a blocked equal.
        ages_large_jobs: whether a large job goes first once it has waited longer than most large jobs before it.
    """

    snapshot: Snapshot
    now: datetime
    strict_order: bool = False
    ages_large_jobs: bool = False

    _aged_after: float | None = None
    _gpus_of: dict[str, int] = field(default_factory=dict)

    def rank(self, job: Job) -> PreemptionRank:
        """Return the job's preemption rank now."""
        return (job.priority,)

    def rank_when_running(self, job: Job) -> PreemptionRank:
        """Return the rank that the job has once it runs, which a job must exceed to preempt it then."""
        return self.rank(job)

    def common_rank(self, job: Job) -> PreemptionRank:
        """Return the part of the rank that is equal for jobs with an equal `equivalence_key`."""
        return (job.priority,)

    def in_order(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs in the order in which they are considered; the name makes it total."""
        ordered = in_order(jobs)
        entered_before = self._first_ahead_by_wait()
        # Nearly all jobs of a deep queue are in place already, so only the few exceptions are sorted by their full key.
        old = [job for job in ordered if job.entry_time < entered_before or job.deadline is not None]
        ahead = [job for job in old if self._goes_ahead(job)]
        if not ahead:
            return ordered
        names = {job.name for job in ahead}
        others = [job for job in ordered if job.name not in names]
        return sorted([*sorted(ahead, key=self.sort_key), *others], key=lambda job: -job.priority)

    def _goes_ahead(self, job: Job) -> bool:
        """Return True if the job goes before jobs that entered earlier."""
        urgent = job.deadline is not None and self._urgency(job) != NOT_URGENT
        return urgent or self.out_of_patience(job) or self._aged(job)

    def sort_key(self, job: Job) -> SortKey:
        """Return priority down, patience, urgency, age, entry time up, name (the article's "get pending jobs")."""
        return (-job.priority, not self.out_of_patience(job), *self._urgency(job), not self._aged(job), *job.order[1:])

    def tier(self, job: Job) -> SortKey:
        """Return the part of the sort key that precedes entry time: priority, patience, urgency, and age or level."""
        return self.sort_key(job)[:5]

    def _aged(self, job: Job) -> bool:
        """Return True for a large job that has waited so long that it goes before smaller ones that entered earlier.

        Backfill favors small jobs, and large ones pay for every wrong estimate; aging makes up for that.
        """
        return (self.now - job.entry_time).total_seconds() > self._max_wait() and self._gpus(job) >= LARGE

    def _max_wait(self) -> float:
        """Return the seconds after which a large job is aged; infinite without aging or history."""
        if self._aged_after is None:
            known = self.snapshot.records.history.long_wait(AGED_FROM) if self.ages_large_jobs else None
            self._aged_after = known or math.inf
        return self._aged_after

    def _first_ahead_by_wait(self) -> datetime:
        """Return the time such that jobs that entered later do not go ahead for having waited."""
        patience = self.snapshot.policy.patience.total_seconds()
        return self.now - timedelta(seconds=int(min(patience, self._max_wait(), _MAX_WAIT_SECONDS)))

    def _gpus(self, job: Job) -> int:
        """Return the job's accelerators, computed once for jobs with equal equivalence_key."""
        if (equivalence_key := job.equivalence_key) is None:
            return gpus_of(job, self.snapshot.pools)
        if equivalence_key not in self._gpus_of:
            self._gpus_of[equivalence_key] = gpus_of(job, self.snapshot.pools)
        return self._gpus_of[equivalence_key]

    def _urgency(self, job: Job) -> tuple[bool, datetime]:
        """Return a key that puts jobs with a near deadline first, the most urgent before all."""
        latest = None if job.deadline is None else urgency(job, self.snapshot.records.history, self.now)
        return NOT_URGENT if latest is None else (False, latest)

    def changes_at(self) -> datetime | None:
        """Return the earliest time at which ranks or order change without any event; None for never."""
        return min((moment for moment in self._change_times() if moment > self.now), default=None)

    def _change_times(self) -> Iterator[datetime]:
        patience, history = self.snapshot.policy.patience, self.snapshot.records.history
        entered = [job.entry_time for job in self.snapshot.waiting if self.now - job.entry_time < patience]
        if entered:
            yield min(entered) + patience
        for job in self.snapshot.waiting:
            if job.deadline is not None and (urgent := urgent_from(job, history)) is not None:
                yield urgent

    def strict(self, job: Job) -> bool:
        """Return True if no job of its rank may pass the job while it is blocked."""
        return self.strict_order or self.out_of_patience(job)

    def holds_free_units(self, job: Job, units: Units, free: Units) -> bool:  # noqa: ARG002 -- other orders use them
        """Return True if all free units are kept for the blocked job against all others."""
        return False

    def out_of_patience(self, job: Job) -> bool:
        """Return True if the job has waited so long that equals may no longer pass it."""
        return self.now - job.entry_time > self.snapshot.policy.patience


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs in queue order: priority down, entry time up, name."""
    return sorted(jobs, key=attrgetter("order"))


def gpus_of(job: Job, pools: Mapping[str, Pool]) -> int:
    """Return the accelerators of the job's largest alternative or request; an unknown pool counts one for each unit.

    A job of another kind has no accelerators of its own, and counts as the smallest of jobs.
    """
    if job.work is not None:
        return 1
    asked = job.demand.resources
    widest = 0 if asked is None else job.demand.instances * max(asked.accelerators, 1)
    for units in job.demand.alternatives:
        width = 0
        for name, count in units.items():
            width += count * (pools[name].accelerators if name in pools else 1)
        widest = max(widest, width)
    return widest
