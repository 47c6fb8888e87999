"""The users whose jobs cannot start now, since they hold as much of their share as each user may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import Share


@dataclass(frozen=True, slots=True)
class FullUsers:
    """The units that users hold in shares that limit them (`Share.max_per_user`).

    Attributes:
        shares: the shares of the queue, by name.
        held: units by share, user and pool.
    """

    shares: Mapping[str, Share]
    held: Mapping[tuple[str, str | None, str], int]

    @classmethod
    def of(cls, shares: Mapping[str, Share], active: Iterable[Job]) -> FullUsers:
        """Return what these active jobs hold."""
        limiting = {name: share for name, share in shares.items() if share.max_per_user}
        held: Counter[tuple[str, str | None, str]] = Counter()
        for job in active if limiting else ():
            held.update({(job.share, job.submitted_by, pool): count for pool, count in job.units.items()})
        return cls(limiting, held)

    def keep_waiting(self, job: Job, alternatives: Iterable[Units]) -> bool:
        """Return True if the job's user may have none of these units besides those held."""
        share, who = self.shares.get(job.share), (job.share, job.submitted_by)
        if share is None:
            return False
        pools = (pool_beyond_limit(share, units, lambda pool: self.held.get((*who, pool), 0)) for units in alternatives)
        return None not in pools


def pool_beyond_limit(share: Share, units: Units, held: Callable[[str], int]) -> str | None:
    """Return the first pool of which a user of the share may not have these units; None if there is none.

    Args:
        share: the user's share.
        units: what the user would have in addition.
        held: returns the units of a pool that the user holds.
    """
    limits = share.max_per_user
    beyond = (pool for pool, count in units.items() if pool in limits and held(pool) + count > limits[pool])
    return next(beyond, None)
