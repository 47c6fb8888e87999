"""Limits of groups, users and shares in the approximate simulation, and the units that shares reserve."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.shares.entitlement import Entitlements


@dataclass(slots=True)
class Bounds:
    """Units that are held, by group, user and share.

    Attributes:
        entitlements: None if the policy has no shares.
        limits: jobs at once by share and group.
    """

    entitlements: Entitlements | None
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    _members: dict[tuple[str, str], int] = field(default_factory=dict)
    _held: dict[tuple[str, str], int] = field(default_factory=dict)
    _by_user: dict[tuple[str, str | None, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Bounds:
        """Return the bounds with the units of active jobs."""
        policy = snapshot.policy
        shares = Entitlements(policy, snapshot.pools, snapshot.external) if policy.shares else None
        bounds = cls(shares, _limits((*snapshot.active, *snapshot.waiting)))
        for job in snapshot.active:
            bounds.take(job, job.units)
        return bounds

    def bounds_key(self, job: Job) -> Hashable:
        """Return a key that is equal for jobs that the bounds refuse together."""
        shares = None if self.entitlements is None else (job.share, job.submitted_by)
        return (shares, (job.share, job.group) if job.group is not None else None)

    def refuses(self, job: Job) -> bool:
        """Return True if the job may not start at all now."""
        if job.group is None:
            return False
        limit = self.limits.get((job.share, job.group))
        return limit is not None and self._members.get((job.share, job.group), 0) >= limit

    def allows(self, job: Job, units: Units) -> bool:
        """Return True if its share and its user may hold these units as well."""
        if self.entitlements is None:
            return True
        entitlement = self.entitlements.of(job.share)
        for pool, count in units.items():
            bound = entitlement.bound(pool)
            if bound is not None and self._held.get((job.share, pool), 0) + count > bound.limit:
                return False
            limit = entitlement.share.max_per_user.get(pool)
            if limit is not None and self._by_user.get((job.share, job.submitted_by, pool), 0) + count > limit:
                return False
        return True

    def withheld(self, job: Job, pool: str) -> int:
        """Return the units of a pool that other shares reserve, however idle they are."""
        if self.entitlements is None:
            return 0
        others = (name for name in self.entitlements.keepers(pool) if name != job.share)
        return sum(max(self.entitlements.of(name).kept(pool) - self._held.get((name, pool), 0), 0) for name in others)

    def take(self, job: Job, units: Units) -> None:
        """Count the units of a job that starts."""
        self._count(job, units, 1)

    def release(self, job: Job, units: Units) -> None:
        """Remove the units of a job that ends."""
        self._count(job, units, -1)

    def _count(self, job: Job, units: Units, sign: int) -> None:
        if job.group is not None:
            group = (job.share, job.group)
            self._members[group] = self._members.get(group, 0) + sign
        for pool, count in units.items() if self.entitlements is not None else ():
            held, user = (job.share, pool), (job.share, job.submitted_by, pool)
            self._held[held] = self._held.get(held, 0) + sign * count
            self._by_user[user] = self._by_user.get(user, 0) + sign * count


def _limits(jobs: Iterable[Job]) -> dict[tuple[str, str], int]:
    """Return the smallest limit that any job of each group states."""
    limits: dict[tuple[str, str], int] = {}
    for job in jobs:
        if job.group is not None and job.max_concurrent is not None:
            group = (job.share, job.group)
            limits[group] = min(limits.get(group, job.max_concurrent), job.max_concurrent)
    return limits
