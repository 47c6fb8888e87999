"""Explain that a job would borrow, and so may not preempt jobs of other shares, whatever its priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.capacity.units import Units, counted, total
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Share
from trainmaster.planner.preemption.preempt import may_be_preempted
from trainmaster.planner.state import PlanState


@dataclass(frozen=True, slots=True)
class Borrowing:
    """The units beyond its own that a share would hold with a waiting job.

    Attributes:
        share: the job's share.
        own: the share's own units where it would borrow, by pool.
        needed: units that the share would hold there with the job, by pool.
    """

    share: str
    own: Units
    needed: Units

    def message(self) -> str:
        """Return the rule that follows from it, as a sentence."""
        pool = min(self.needed)
        return (
            f"Share {self.share} owns {counted(self.own[pool], pool)} and would hold {self.needed[pool]} with this "
            "job, which would therefore borrow: it preempts no jobs of other shares, whatever its priority."
        )

    def with_quota(self, snapshot: Snapshot) -> Mapping[str, Share] | None:
        """Return the shares if this one owned what it needs; None if other configured shares own too much for that."""
        shares = snapshot.policy.shares
        share = shares.get(self.share, Share(name=self.share))
        raised = {**shares, self.share: replace(share, nominal={**share.nominal, **self.needed})}
        owned = total(each.nominal for each in raised.values())
        fits = all(owned[pool] <= snapshot.pools[pool].cap for pool in self.needed if pool in snapshot.pools)
        return raised if fits else None


def borrowing(snapshot: Snapshot, now: datetime, job: Job) -> Borrowing | None:
    """Return what a waiting job would borrow, if it could preempt jobs of other shares but for that; else None.

    Args:
        snapshot: the snapshot that a pass would read, with the job.
        now: UTC.
        job: a job that waits for capacity.
    """
    state = PlanState.of(snapshot, now)
    state.release(job)
    if not state.shares.enabled or state.shares.any_within_nominal(job):
        return None
    pools = _pools_of_lower_rank(state, job)
    wanted = next((units for units in job.demand.alternatives if pools & units.keys()), None)
    if wanted is None:
        return None
    held, own = state.shares.holdings.staying, state.shares.entitlements.of(job.share).own
    needed = {pool: held(job.share, pool) + count for pool, count in wanted.items()}
    beyond = {pool: count for pool, count in needed.items() if count > own(pool)}
    return Borrowing(job.share, {pool: own(pool) for pool in beyond}, beyond)


def _pools_of_lower_rank(state: PlanState, job: Job) -> frozenset[str]:
    """Return the pools in which running jobs of other shares have a lower rank than the job, and may be preempted."""
    rank = state.ranking.rank
    others = (each for each in state.snapshot.active if each.share != job.share and may_be_preempted(each))
    return frozenset(pool for other in others if rank(other) < rank(job) for pool in other.units)
