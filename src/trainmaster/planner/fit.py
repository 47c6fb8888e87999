"""The ledger of one plan in the making: what is free, what is on the way, and what is spoken for.

Units on the way belong to jobs that are stopping: they are free only once SageMaker says Stopped, so nothing may
start on them, but nobody needs to be preempted for what they will bring. It must not choose between jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity import Units, covers, total
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Snapshot


@dataclass(frozen=True, slots=True)
class Claim:
    """Units of the free and coming that are kept for a job, and until when."""

    job: str
    units: Units
    until: datetime


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
    barriers: dict[str, Job] = field(default_factory=dict)

    def now(self, pool: str) -> int:
        """Units of a pool on which a job may start at once without taking what is kept for another."""
        return min(self.free.get(pool, 0), self.soon(pool))

    def soon(self, pool: str) -> int:
        """Units that are free or on the way, and not kept for another."""
        return self.free.get(pool, 0) + self.coming.get(pool, 0) - self.claimed.get(pool, 0)

    def fits_now(self, units: Units) -> bool:
        """Whether these units can be taken at once."""
        return all(self.now(pool) >= count for pool, count in units.items())

    def fits_soon(self, units: Units) -> bool:
        """Whether these units will be there without preempting anybody else."""
        return all(self.soon(pool) >= count for pool, count in units.items())

    def missing(self, units: Units) -> dict[str, int]:
        """What would have to be freed beyond what is free or on the way."""
        return {pool: count - self.soon(pool) for pool, count in units.items() if count > self.soon(pool)}

    def could_ever(self, units: Units) -> bool:
        """Whether the pools could hold these units if nothing else ran."""
        return covers(self.caps, units)

    def take(self, units: Units) -> None:
        """A job starts on these units."""
        for pool, count in units.items():
            self.free[pool] = self.free.get(pool, 0) - count

    def free_soon(self, victims: Iterable[Job], until: datetime) -> None:
        """These jobs will step aside; what they bring counts as coming until then."""
        for pool, count in total(job.units for job in victims).items():
            self.coming[pool] = self.coming.get(pool, 0) + count
            self.lapse[pool] = max(self.lapse.get(pool, until), until)

    def claim(self, claim: Claim) -> None:
        """Keep units for a job against all that are considered after it."""
        self.drop_claim(claim.job)
        self.claims[claim.job] = claim
        for pool, count in claim.units.items():
            self.claims_on.setdefault(pool, {})[claim.job] = claim
            self.claimed[pool] = self.claimed.get(pool, 0) + count

    def drop_claim(self, job: str) -> None:
        """The job no longer needs units kept for it (it is being considered itself)."""
        claim = self.claims.pop(job, None)
        for pool, count in {} if claim is None else claim.units.items():
            del self.claims_on[pool][job]
            self.claimed[pool] -= count

    def bar(self, job: Job) -> None:
        """The job waits on its pools: equals behind it must not pass it there (first in, first out)."""
        for pool in job.demand.pools:
            barrier = self.barriers.get(pool)
            if barrier is None or job.priority < barrier.priority:
                self.barriers[pool] = job

    def barrier(self, job: Job, units: Units) -> tuple[str, Job] | None:
        """The pool and the earlier job that this job may not pass on these units; None where it may.

        It may pass a blocked job of strictly higher priority as long as it is preemptible itself: that job can
        take the units back, so using them meanwhile delays nobody. An equal could not be put aside again.
        """
        for pool in units:
            first = self.barriers.get(pool)
            if first is not None and not (job.priority < first.priority and job.preemptible):
                return pool, first
        return None

    def claimant(self, pool: str) -> Claim | None:
        """Whose claim weighs on a pool; the newest, where there are several."""
        return next(reversed(self.claims_on.get(pool, {}).values()), None)


def open_ledger(snapshot: Snapshot, now: datetime) -> Ledger:
    """The figures before anything is decided.

    Units of a job that has been stopping for longer than the policy's `hold_for` are still taken, but nobody
    waits for them any more: a stop that never ends must not keep the rest of a pool idle.
    """
    used = total(job.units for job in snapshot.active)
    caps = {name: pool.cap for name, pool in snapshot.pools.items()}
    free = {name: cap - used.get(name, 0) - snapshot.foreign.get(name, 0) for name, cap in caps.items()}
    ledger = Ledger(caps=caps, free=free, coming={}, lapse={})
    for job in snapshot.active:
        attempt = job.attempt
        if attempt is not None and attempt.stop_asked_at is not None:
            until = attempt.stop_asked_at + snapshot.policy.hold_for
            if until > now:
                ledger.free_soon([job], until)
    return ledger
