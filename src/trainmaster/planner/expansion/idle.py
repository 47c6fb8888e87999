"""Idle instances of managed pools, which no job uses or waits for and no rule keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from trainmaster.domain.capacity.units import Pool, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.jobs.job import held_for
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Share


@dataclass(frozen=True)
class IdleCapacity:
    """The use of the made pools.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime

    @cached_property
    def made(self) -> Sequence[Pool]:
        """Made pools by name, without those that the settings of a share name."""
        shares = self.snapshot.policy.shares.values()
        claimed = {name for share in shares for name in _names_in(share)}
        found = (pool for _, pool in sorted(self.snapshot.pools.items()) if pool.made_for)
        return [pool for pool in found if pool.name not in claimed]

    @cached_property
    def used(self) -> Mapping[str, int]:
        """Instances that jobs and warm pools hold, by pool."""
        warm = counting(self.snapshot.warm, self.snapshot.active)
        return total([*(job.units for job in self.snapshot.active), *(pool.units for pool in warm)])

    @cached_property
    def held(self) -> Mapping[str, int]:
        """Instances that were freed for waiting jobs, by pool."""
        holds = (held_for(job, self.now) for job in self.snapshot.waiting if job.reservation is not None)
        return total(units for units in holds if units is not None)

    @cached_property
    def awaited_later(self) -> frozenset[str]:
        """Pools of jobs that are backing off."""
        jobs = (job for job in self.snapshot.waiting if job.retry_at is not None and job.retry_at > self.now)
        return frozenset(name for job in jobs for name in job.demand.pools)

    @cached_property
    def _sized(self) -> Mapping[str, datetime]:
        """The last resize of a running attempt, by pool; what it released was in use until then."""
        found: dict[str, datetime] = {}
        for job in self.snapshot.active:
            if job.attempt is not None and (at := job.attempt.sized_at) is not None:
                found |= {name: max(found.get(name, at), at) for name in job.units}
        return found

    def floors(self, awaited: Mapping[str, int]) -> dict[str, int]:
        """Return the smallest caps that leave no job without units, by pool.

        Args:
            awaited: instances that jobs wait for and could start on, by pool.
        """
        return {
            pool.name: min(pool.cap, sum(count.get(pool.name, 0) for count in (self.used, self.held, awaited)))
            for pool in self.made
        }

    def idle_for_long(self, pool: Pool) -> datetime | None:
        """Return since when the idle part of a pool has been idle, if that is long enough to remove it; else None.

        The time counts from the last end or resize of an attempt there, or the last growth of the pool; since then jobs
        have only taken more. Ends of warm pools are not recorded: their units count as idle since the attempt that left
        them.
        """
        ended, sized = self.snapshot.records.released.get(pool.name), self._sized.get(pool.name)
        times: Sequence[datetime | None] = (pool.made_at, ended, sized)
        since = max((time for time in times if time is not None), default=None)
        over = since is not None and since + self.snapshot.policy.expansion.retire_after <= self.now
        return since if over else None


def _names_in(share: Share) -> tuple[str, ...]:
    """Return the pools that the settings of a share name."""
    return (*share.nominal, *share.lends, *share.borrows, *share.max, *share.max_per_user, *share.prefers)
