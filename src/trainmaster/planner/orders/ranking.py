"""Who is considered first, and who outranks whom.

Priority always dominates. Inside it: jobs that have waited longer than the policy's patience, then those whose
deadline is near, then the order that the queue has chosen. It must not know what is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import ClassVar

from trainmaster.domain.capacity.units import Pool, Units
from trainmaster.domain.jobs.deadline import urgency, urgent_from
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import LARGE
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order
from trainmaster.domain.times import NEVER

PreemptionRank = tuple[int, ...]
"""(priority,) or (priority, level, wait): compared item by item, from the left; more is better."""
Turn = tuple[object, ...]
NOT_URGENT = (True, NEVER)
"""The urgency of a job without a deadline, or with a distant one."""
_YEARS = 1e9
"""Seconds that nobody waits."""
AGED_FROM = 0.85
"""A large job is aged once it has waited longer than this part of the large jobs before it."""


@dataclass(slots=True)
class Ranking:
    """Order and standing under the orders that do not look at what jobs have received."""

    snapshot: Snapshot
    now: datetime

    _long: float | None = None
    _gpus_of: dict[str, int] = field(default_factory=dict)
    reserves: ClassVar[bool] = True
    """Whether blocked jobs are reserved for."""

    def rank(self, job: Job) -> PreemptionRank:
        """The job's standing now."""
        return (job.priority,)

    def at_work(self, job: Job) -> PreemptionRank:
        """The standing that the job will have once it runs: what others would have to outrank to displace it then."""
        return self.rank(job)

    def common_rank(self, job: Job) -> PreemptionRank:
        """The part of the job's standing that it has in common with others of its kind."""
        return (job.priority,)

    def in_order(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs in the order in which they are considered; the name makes it total."""
        ordered = in_order(jobs)
        came = self._came_long_ago()
        old = [job for job in ordered if job.entry_time < came or job.deadline is not None]
        hasty = [job for job in old if self._goes_before(job)]
        if not hasty:
            return ordered
        names = {job.name for job in hasty}
        others = [job for job in ordered if job.name not in names]
        return sorted([*sorted(hasty, key=self.turn), *others], key=lambda job: -job.priority)

    def _goes_before(self, job: Job) -> bool:
        """Whether anything brings the job before those that came earlier; most jobs of a deep queue just wait."""
        urgent = job.deadline is not None and self._urgency(job) != NOT_URGENT
        return urgent or self.out_of_patience(job) or self._aged(job)

    def turn(self, job: Job) -> Turn:
        """Sort key: priority down, patience, urgency, age, entry time up, name (article, "get pending jobs")."""
        return (-job.priority, not self.out_of_patience(job), *self._urgency(job), not self._aged(job), *job.order[1:])

    def tier(self, job: Job) -> Turn:
        """What of the job's turn goes before when it came: priority, patience, urgency, and age or level."""
        return self.turn(job)[:5]

    def _aged(self, job: Job) -> bool:
        """Whether a large job goes before the smaller ones that came earlier: it has waited longer than most ever did.

        Backfill is for small jobs, and the large ones pay for every estimate that proves wrong; this gives that back.
        """
        return (self.now - job.entry_time).total_seconds() > self._long_wait() and self._gpus(job) >= LARGE

    def _long_wait(self) -> float:
        """Seconds after which a large job is aged; without end where the order knows no age, or nothing is known."""
        if self._long is None:
            ages = self.snapshot.policy.order in (Order.BACKFILL, Order.FAIR)
            self._long = (self.snapshot.records.history.long_wait(AGED_FROM) if ages else None) or math.inf
        return self._long

    def _came_long_ago(self) -> datetime:
        """Who came later goes before nobody for having waited: most jobs of a deep queue."""
        patience = self.snapshot.policy.patience.total_seconds()
        return self.now - timedelta(seconds=int(min(patience, self._long_wait(), _YEARS)))

    def _gpus(self, job: Job) -> int:
        """The job's accelerators; worked out once of those that are alike."""
        if (traits := job.traits) is None:
            return gpus_of(job, self.snapshot.pools)
        if traits not in self._gpus_of:
            self._gpus_of[traits] = gpus_of(job, self.snapshot.pools)
        return self._gpus_of[traits]

    def _urgency(self, job: Job) -> tuple[bool, datetime]:
        """Before others those whose deadline is near, the most urgent first."""
        latest = None if job.deadline is None else urgency(job, self.snapshot.records.history, self.now)
        return NOT_URGENT if latest is None else (False, latest)

    def changes_at(self) -> datetime | None:
        """The earliest time at which standing or order change though nothing happens; None for never."""
        return min((moment for moment in self._changes() if moment > self.now), default=None)

    def _changes(self) -> Iterator[datetime]:
        patience, history = self.snapshot.policy.patience, self.snapshot.records.history
        came = [job.entry_time for job in self.snapshot.waiting if self.now - job.entry_time < patience]
        if came:
            yield min(came) + patience
        for job in self.snapshot.waiting:
            if job.deadline is not None and (urgent := urgent_from(job, history)) is not None:
                yield urgent

    def strict(self, job: Job) -> bool:
        """Whether nobody of its standing may pass the job while it is blocked."""
        return self.snapshot.policy.order is Order.FIFO or self.out_of_patience(job)

    def holds(self, job: Job, units: Units, free: Units) -> bool:  # noqa: ARG002 -- other orders look at them
        """Whether a blocked job has everything that is free held for it, against all others."""
        return False

    def out_of_patience(self, job: Job) -> bool:
        """Whether the job has waited for so long that equals must not pass it any more."""
        return self.now - job.entry_time > self.snapshot.policy.patience


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """The jobs in queue order: priority down, entry time up, name."""
    return sorted(jobs, key=attrgetter("order"))


def gpus_of(job: Job, pools: Mapping[str, Pool]) -> int:
    """Accelerators of the job's largest alternative, or that it asks for; a pool that is gone counts one a unit.

    An image job has none of its own, and counts as the smallest of jobs.
    """
    if job.image_work is not None:
        return 1
    asked = job.demand.resources
    widest = 0 if asked is None else job.demand.instances * max(asked.accelerators, 1)
    for units in job.demand.alternatives:
        width = 0
        for name, count in units.items():
            width += count * (pools[name].accelerators if name in pools else 1)
        widest = max(widest, width)
    return widest
