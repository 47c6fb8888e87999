"""What the manager's own pools could do without: nobody uses it, waits for it, or has it kept.

It must not decide what is taken from them.
"""

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
    """What becomes of the pools that the manager made.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime

    @cached_property
    def made(self) -> Sequence[Pool]:
        """The manager's pools by name, but for those that a share names: people have plans with them."""
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
        """Instances that were freed for jobs that wait, by pool."""
        holds = (held_for(job, self.now) for job in self.snapshot.waiting if job.hold is not None)
        return total(units for units in holds if units is not None)

    @cached_property
    def awaited_later(self) -> frozenset[str]:
        """Pools that jobs come back to which are backing off."""
        jobs = (job for job in self.snapshot.waiting if job.retry_at is not None and job.retry_at > self.now)
        return frozenset(name for job in jobs for name in job.demand.pools)

    @cached_property
    def _sized(self) -> Mapping[str, datetime]:
        """When an attempt at work last came to hold more or less than before, by pool; what it gave was in use."""
        found: dict[str, datetime] = {}
        for job in self.snapshot.active:
            if job.attempt is not None and (at := job.attempt.sized_at) is not None:
                found |= {name: max(found.get(name, at), at) for name in job.units}
        return found

    def floors(self, awaited: Mapping[str, int]) -> dict[str, int]:
        """The least caps that the pools could have without anybody missing anything, by name.

        Args:
            awaited: instances that those want who wait for a pool, and could start there.
        """
        return {
            pool.name: min(pool.cap, sum(count.get(pool.name, 0) for count in (self.used, self.held, awaited)))
            for pool in self.made
        }

    def idle_for_long(self, pool: Pool) -> datetime | None:
        """Since when what is idle of a pool has been, where that is long enough for it to go; else None.

        Since an attempt last ended there or changed its size, or the pool grew, jobs have only come to hold more. When
        a warm pool has ended nobody remembers: what it held counts as idle since the attempt that left it.
        """
        ended, sized = self.snapshot.records.released.get(pool.name), self._sized.get(pool.name)
        times: Sequence[datetime | None] = (pool.made_at, ended, sized)
        since = max((time for time in times if time is not None), default=None)
        over = since is not None and since + self.snapshot.policy.expansion.retire_after <= self.now
        return since if over else None


def _names_in(share: Share) -> tuple[str, ...]:
    """The pools that the settings of a share name."""
    return (*share.nominal, *share.lends, *share.borrows, *share.max, *share.max_per_user, *share.prefers)
