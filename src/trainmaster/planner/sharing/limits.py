"""Limits of users, groups and budgets, which apply even if pools are idle."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job, held_for
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Budget
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import BudgetSpent, GroupFull, UserFull
from trainmaster.domain.shares.full_users import pool_beyond_limit
from trainmaster.domain.shares.usage import Spent, period_end, period_start, spent

Group = tuple[str, str]
"""Share and name: a group limits only jobs of its share."""
UNKNOWN_USER = "an unknown user"
"""The user of all jobs without a submitter."""


@dataclass(slots=True)
class Limits:
    """Jobs and units in one plan by user, share and group, as of the decisions so far.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _by_user: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _members: dict[Group, int] = field(default_factory=dict)
    _bounds: dict[Group, int] = field(default_factory=dict)
    _taken: dict[str, Units] = field(default_factory=dict)
    _spent: dict[str, BudgetSpent | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        active, special = self.snapshot.active, self.snapshot.special
        # Only shares limit users; without any, only the groups are counted.
        for job in active if self.snapshot.policy.shares else [job for job in active if job.group is not None]:
            self._count(job, job.units)
        for job in special:
            if job.reservation is not None and (units := held_for(job, self.now)) is not None:
                self.take(job, units)
        for job in (*active, *special):
            if job.group is not None and job.max_concurrent is not None:
                group = (job.share, job.group)
                self._bounds[group] = min(self._bounds.get(group, job.max_concurrent), job.max_concurrent)

    def refusal(self, job: Job, units: Units) -> Reason | None:
        """Return the limit that keeps the job from these units even if they are free; None if there is none.

        Units that are kept for the job itself do not count.
        """
        if job.group is None and not self.snapshot.policy.shares:
            return None
        own = self._taken.get(job.name)
        return self._budget_spent(job.share) or self._group_full(job, own) or self._user_full(job, units, own or {})

    def take(self, job: Job, units: Units) -> None:
        """Count the units on which a job starts, or that are kept for it, instead of those counted before."""
        if job.group is not None or self.snapshot.policy.shares:
            self.release(job)
            self._taken[job.name] = units
            self._count(job, units)

    def add(self, job: Job, units: Units) -> None:
        """Count further units of a job that runs or starts."""
        self._count_units(job, units)

    def refuses_more(self, job: Job, units: Units) -> bool:
        """Return True if a limit keeps a job that runs or starts from these further units."""
        return (self._budget_spent(job.share) or self._user_full(job, units, {})) is not None

    def release(self, job: Job) -> None:
        """Remove what is kept for a job."""
        if job.name in self._taken:
            self._count(job, self._taken.pop(job.name), sign=-1)

    def _count(self, job: Job, units: Units, *, sign: int = 1) -> None:
        if job.group is not None:
            group = (job.share, job.group)
            self._members[group] = self._members.get(group, 0) + sign
        self._count_units(job, units, sign=sign)

    def _count_units(self, job: Job, units: Units, *, sign: int = 1) -> None:
        for pool, count in units.items():
            key = (job.share, user_of(job), pool)
            self._by_user[key] = self._by_user.get(key, 0) + sign * count

    def _user_full(self, job: Job, units: Units, own: Units) -> Reason | None:
        """Return the limit of the user that `units` exceed (Slurm, `MaxTRESPerUser`; AWS Batch has none)."""
        share, who = self.snapshot.policy.shares.get(job.share), (job.share, user_of(job))
        if share is None or not share.max_per_user:
            return None
        full = pool_beyond_limit(share, units, lambda pool: self._by_user.get((*who, pool), 0) - own.get(pool, 0))
        return None if full is None else UserFull(user_of(job), full, share.max_per_user[full])

    def _group_full(self, job: Job, own: Units | None) -> Reason | None:
        if job.group is None:
            return None
        limit = self._bounds.get((job.share, job.group))
        members = self._members.get((job.share, job.group), 0) - (own is not None)
        return GroupFull(job.group, limit) if limit is not None and members >= limit else None

    def _budget_spent(self, name: str) -> Reason | None:
        if name not in self._spent:
            share = self.snapshot.policy.shares.get(name)
            budget = share.budget if share is not None else None
            self._spent[name] = None if budget is None else self._overspent(name, budget)
        return self._spent[name]

    def _overspent(self, name: str, budget: Budget) -> BudgetSpent | None:
        used = used_in_period(self.snapshot, name, budget, self.now)
        ends = period_end(budget, self.now)
        if budget.gpu_hours is not None and used.gpu_seconds >= budget.gpu_hours * 3600:
            return BudgetSpent(name, used.gpu_seconds / 3600, budget.gpu_hours, "GPU-hours", ends)
        if budget.dollars is not None and used.dollars >= budget.dollars:
            return BudgetSpent(name, used.dollars, budget.dollars, "dollars", ends)
        return None


def used_in_period(snapshot: Snapshot, share: str, budget: Budget, now: datetime) -> Spent:
    """Return what ended and active attempts of a share have used since the budget period began."""
    start = period_start(budget, now)
    ended = snapshot.records.usage.in_period(share, budget, now)
    # Units that an active job held before its last resize are charged already.
    active = (
        spent(job.units, max(job.attempt.held_since, start), now, snapshot.pools)
        for job in snapshot.active
        if job.share == share and job.attempt is not None
    )
    return sum(active, start=ended)


def user_of(job: Job) -> str:
    """Return the user whose limit counts for a job."""
    return job.submitted_by or UNKNOWN_USER
