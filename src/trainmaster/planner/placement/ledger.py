"""The ledger of one plan in the making: what is free, what is on the way, and what is spoken for.

Units on the way belong to jobs that are stopping or shrinking: they are free only once SageMaker says Stopped, so
nothing may start on them, but nobody needs to be preempted for what they will bring. It must not choose between jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity.units import Units, covers, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.ranking import PreemptionRank


@dataclass(frozen=True, slots=True)
class Claim:
    """Units of the free and coming that are kept for a job, and until when; `rank` is that job's."""

    job: str
    units: Units
    until: datetime
    rank: PreemptionRank
    share: str


@dataclass(slots=True)
class Ledger:
    """Working figures of one plan, by pool name. Made by `open_ledger`, thrown away with the plan."""

    caps: Mapping[str, int]
    free: dict[str, int]
    coming: dict[str, int]
    lapse: dict[str, datetime]
    claims: dict[str, Claim] = field(default_factory=dict)
    claims_on: dict[str, dict[str, Claim]] = field(default_factory=dict)
    claimed: dict[str, int] = field(default_factory=dict)
    barriers: dict[str, dict[str, tuple[PreemptionRank, Job]]] = field(default_factory=dict)
    holds: dict[str, Claim] = field(default_factory=dict)
    waived: dict[str, int] = field(default_factory=dict)

    def now(self, pool: str) -> int:
        """Units of a pool on which a job may start at once without taking what is kept for another."""
        return min(self.free.get(pool, 0), self.soon(pool))

    def soon(self, pool: str) -> int:
        """Units that are free or on the way, and not kept for another (less than 0 where more is promised)."""
        kept = self.claimed.get(pool, 0) - self.waived.get(pool, 0)
        return self.free.get(pool, 0) + self.coming.get(pool, 0) - kept

    def fits_when_empty(self, units: Units) -> bool:
        """Whether the pools could hold these units if nothing else ran."""
        return covers(self.caps, units)

    def waive(self, rank: PreemptionRank, share: str | None) -> None:
        """Look at the pools as a job of this standing may: holds of those whom it outranks do not bind it.

        It could preempt such a holder the moment that started, so keeping the units from it would only cost the
        holder its work (ADR 0005). Where shares are in play, that holds within its own share alone.
        """
        self.waived = {}
        for claim in self.holds.values():
            if claim.rank < rank and share in (None, claim.share):
                for pool, count in claim.units.items():
                    self.waived[pool] = self.waived.get(pool, 0) + count

    def take(self, units: Units) -> None:
        """A job starts on these units."""
        for pool, count in units.items():
            self.free[pool] = self.free.get(pool, 0) - count

    def release_later(self, units: Units, until: datetime) -> None:
        """These units are on the way to be free, and count as coming until then."""
        for pool, count in units.items():
            self.coming[pool] = self.coming.get(pool, 0) + count
            self.lapse[pool] = max(self.lapse.get(pool, until), until)

    def claim(self, claim: Claim) -> None:
        """Keep units for a job against all that are considered after it."""
        self.release_claim(claim.job)
        self.claims[claim.job] = claim
        for pool, count in claim.units.items():
            self.claims_on.setdefault(pool, {})[claim.job] = claim
            self.claimed[pool] = self.claimed.get(pool, 0) + count

    def hold(self, claim: Claim) -> None:
        """Keep what an earlier pass has freed for a job that has not been considered in this one yet."""
        self.claim(claim)
        self.holds[claim.job] = claim

    def release_claim(self, job: str) -> None:
        """The job no longer needs units kept for it (it is being considered itself)."""
        self.holds.pop(job, None)
        claim = self.claims.pop(job, None)
        for pool, count in {} if claim is None else claim.units.items():
            del self.claims_on[pool][job]
            self.claimed[pool] -= count

    def bar(self, job: Job, rank: PreemptionRank) -> None:
        """The job waits on its pools: equals behind it must not pass it there (first in, first out).

        A pool that could never hold it is none of those: a job by resources may well be larger than some that cover it.
        """
        possible = (units for units in job.demand.alternatives if self.fits_when_empty(units))
        for pool in (name for units in possible for name in units):
            barriers = self.barriers.setdefault(pool, {})
            if job.share not in barriers or rank < barriers[job.share][0]:
                barriers[job.share] = (rank, job)

    def barrier(self, job: Job, rank: PreemptionRank, units: Units, *, owner: bool = False) -> tuple[str, Job] | None:
        """The pool and the earlier job that this job may not pass on these units; None where it may.

        `rank` is what the job will have at work. It may pass a blocked job of strictly higher standing as long as
        it is preemptible itself: that job can take the units back, so using them meanwhile delays nobody. An equal
        could not be put aside again. An owner, which stays within what its share owns, passes all jobs of other shares:
        it could take the units from them.
        """
        for pool in units:
            for share, (highest, first) in self.barriers.get(pool, {}).items():
                if not (owner and share != job.share) and not (rank < highest and job.preemptible):
                    return pool, first
        return None

    def claimant(self, pool: str) -> tuple[str, datetime] | None:
        """Whose claim weighs on a pool, and until when; the newest, where there are several."""
        claim = next(reversed(self.claims_on.get(pool, {}).values()), None)
        return None if claim is None else (claim.job, claim.until)


def open_ledger(snapshot: Snapshot, now: datetime) -> Ledger:
    """The figures before anything is decided.

    Units of a job that has been stopping for longer than the policy's `hold_for` are still taken, but nobody
    waits for them any more: a stop that never ends must not keep the rest of a pool idle.
    """
    warm = counting(snapshot.warm, snapshot.active)
    used = total([*(job.units for job in snapshot.active), *(pool.units for pool in warm), snapshot.foreign])
    # Nothing more is started in a pool that is being drained: it is as if it had nothing, whatever runs there.
    caps = {name: 0 if pool.draining else pool.cap for name, pool in snapshot.pools.items()}
    free = {name: 0 if pool.draining else pool.cap - used.get(name, 0) for name, pool in snapshot.pools.items()}
    ledger = Ledger(caps=caps, free=free, coming={}, lapse={})
    held = [(job, job.attempt) for job in snapshot.active if job.attempt is not None]
    leaving = [
        (job.freeing, attempt.stop_asked_at or attempt.base_ended_at if under_way is None else under_way.asked_at)
        for job, attempt in held
        if (under_way := attempt.resizing) or attempt.stop_asked_at or attempt.base_ended_at
    ]
    for units, since in [*leaving, *((pool.units, pool.ending_since) for pool in warm)]:
        if since is not None and since + snapshot.policy.hold_for > now:
            ledger.release_later(units, since + snapshot.policy.hold_for)
    return ledger
