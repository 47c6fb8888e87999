"""The ledger of one plan: units that are free, units that are being released, and claims on both.

Units that stopping or shrinking jobs release are free only after SageMaker reports Stopped: no job starts on them
before, and no job is preempted for units that are already being released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import NamedTuple, TypeAlias

from trainmaster.domain.capacity.refusals import kind_of
from trainmaster.domain.capacity.units import Units, covers, total
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.ranking import PreemptionRank


class Claim(NamedTuple):
    """Free or releasing units that are kept for a job of this preemption rank until a time.

    A tuple, since a plan may make one for each waiting job.
    """

    job: str
    units: Units
    until: datetime
    rank: PreemptionRank
    share: str


@dataclass(slots=True)
class _Barrier:
    """Blocked jobs of one share that jobs of their rank or less may not pass on a pool.

    Attributes:
        rank: the lowest of their ranks.
        job: the job of that rank.
        beside: units of the pool that later jobs may still take, since no blocked job can ever use them.
        groups: the groups of the blocked jobs. Their other members take no such units, but wait for their limit.
    """

    rank: PreemptionRank
    job: Job
    beside: int
    groups: set[tuple[str, str | None]] = field(default_factory=set)


_Alike: TypeAlias = tuple[str, bool, int]


@dataclass(slots=True)
class Ledger:
    """Units of one plan by pool. Made by `open_ledger`.

    Attributes:
        caps: units that the pools hold at most; 0 for a pool that is being drained.
        free: units that no job, warm pool or external job holds.
        releasing: units that are being released.
        release_by: when releasing units stop to count.
        claims: claims by job.
        holds: those of the claims that an earlier pass made and whose job this plan has not decided about yet.
        barriers: by pool and share, the blocked jobs that others may not pass.
        awaiting: by pool and share, the first of the jobs in back-off that would fit there.
        lacking: by pool and what they have in common, the job in back-off for which AWS lacked the fewest units, and
            how many.
    """

    caps: Mapping[str, int]
    free: dict[str, int]
    releasing: dict[str, int]
    release_by: dict[str, datetime]
    claims: dict[str, Claim] = field(default_factory=dict)
    holds: dict[str, Claim] = field(default_factory=dict)
    barriers: dict[str, dict[str, _Barrier]] = field(default_factory=dict)
    awaiting: dict[str, dict[str, Job]] = field(default_factory=dict)
    lacking: dict[str, dict[_Alike, tuple[Job, float]]] = field(default_factory=dict)
    _claims_on: dict[str, dict[str, Claim]] = field(default_factory=dict)
    _claimed: dict[str, int] = field(default_factory=dict)

    def available_now(self, pool: str, exempt: int = 0) -> int:
        """Return the free units of a pool that no claim keeps.

        Args:
            pool: its name.
            exempt: claimed units that do not bind the job in question.
        """
        return min(self.free.get(pool, 0), self.available_soon(pool, exempt))

    def available_soon(self, pool: str, exempt: int = 0) -> int:
        """Return the free and releasing units that no claim keeps; below 0 if more is claimed."""
        kept = self._claimed.get(pool, 0) - exempt
        return self.free.get(pool, 0) + self.releasing.get(pool, 0) - kept

    def fits_when_empty(self, units: Units) -> bool:
        """Return True if the pools could hold these units if nothing else ran."""
        return covers(self.caps, units)

    def exempt(self, job: str, rank: PreemptionRank, share: str | None) -> dict[str, int]:
        """Return the claimed units that do not bind a job: its own, and holds of jobs that it outranks.

        It could preempt the holder as soon as that started, so keeping the units would only cost the holder its work
        (ADR 0005). With shares, this applies within the job's own share.

        Args:
            job: its name.
            rank: its preemption rank.
            share: the share whose holds give way; None for all.
        """
        own = self.claims.get(job)
        exempt = {} if own is None else dict(own.units)
        for claim in self.holds.values():
            if claim.rank < rank and (share is None or share == claim.share) and claim.job != job:
                for pool, count in claim.units.items():
                    exempt[pool] = exempt.get(pool, 0) + count
        return exempt

    def take(self, units: Units) -> None:
        """Count free units as held."""
        for pool, count in units.items():
            self.free[pool] = self.free.get(pool, 0) - count
        if self.barriers:
            self._pass(units)

    def release_later(self, units: Units, until: datetime) -> None:
        """Count units as releasing until a time."""
        for pool, count in units.items():
            self.releasing[pool] = self.releasing.get(pool, 0) + count
            self.release_by[pool] = max(self.release_by.get(pool, until), until)

    def claim(self, claim: Claim) -> None:
        """Keep units for a job against all jobs that the plan decides about later."""
        if claim.job in self.claims:
            self.release_claim(claim.job)
        self.claims[claim.job] = claim
        for pool, count in claim.units.items():
            self._claims_on.setdefault(pool, {})[claim.job] = claim
            self._claimed[pool] = self._claimed.get(pool, 0) + count
        if self.barriers:
            self._pass(claim.units)

    def restore_reservation(self, claim: Claim) -> None:
        """Keep units that an earlier pass freed for a job that this plan has not decided about yet."""
        self.claim(claim)
        self.holds[claim.job] = claim

    def release_claim(self, job: str) -> None:
        """Remove the claim of a job, if it has one."""
        self.holds.pop(job, None)
        claim = self.claims.pop(job, None)
        for pool, count in {} if claim is None else claim.units.items():
            del self._claims_on[pool][job]
            self._claimed[pool] -= count

    def add_barrier(self, job: Job, rank: PreemptionRank, beside: Units) -> None:
        """Keep jobs of this rank or less from passing a blocked job on its pools (first in, first out).

        Pools that could never hold the job get no barrier: a job by resources may be too large for some that cover it.

        Args:
            job: the blocked job.
            rank: its preemption rank.
            beside: units that later jobs may take nevertheless, by pool.
        """
        for units in job.demand.alternatives:
            for pool in units if self.fits_when_empty(units) else ():
                self._add_barrier_on(pool, job, rank, beside.get(pool, 0))

    def _add_barrier_on(self, pool: str, job: Job, rank: PreemptionRank, room: int) -> None:
        barriers = self.barriers.setdefault(pool, {})
        found = barriers.get(job.share)
        if found is None:
            found = barriers[job.share] = _Barrier(rank, job, room)
        elif rank < found.rank:
            found.rank, found.job = rank, job
        found.beside = min(found.beside, room)
        if job.group is not None:
            found.groups.add((job.share, job.group))

    def any_barrier(self, alternatives: Iterable[Units]) -> bool:
        """Return True if a blocked job keeps others from passing it on any of these pools."""
        return any(pool in self.barriers for units in alternatives for pool in units)

    def barrier(self, job: Job, rank: PreemptionRank, units: Units, *, owner: bool = False) -> tuple[str, Job] | None:
        """Return the pool and the blocked job that a job may not pass on these units; None if there is none.

        A preemptible job may pass a blocked job of strictly higher rank, which can take the units back at any time. It
        may not pass an equal, which could not. An owner, a job that stays within what its share owns, passes all jobs
        of other shares, since it could take the units from them.

        Args:
            job: the job that would pass.
            rank: the rank that it will have when it runs.
            units: what it would start on.
            owner: whether it is an owner.
        """
        for pool in units:
            for share, found in self.barriers.get(pool, {}).items():
                if not (owner and share != job.share) and not (rank < found.rank and job.preemptible):
                    return pool, found.job
        return None

    def fits_beside(self, job: Job, units: Units) -> bool:
        """Return True if the job can run on units that no blocked job of these pools can ever use."""
        return all(
            count <= found.beside and (job.share, job.group) not in found.groups
            for pool, count in units.items()
            for found in self.barriers.get(pool, {}).values()
        )

    def _pass(self, units: Units) -> None:
        """Count units of a job that passes the blocked ones."""
        for pool, count in units.items():
            for found in self.barriers.get(pool, {}).values():
                found.beside -= count

    def add_back_off(self, job: Job, lacking: Mapping[str, float]) -> None:
        """Keep other jobs out of pools in which a job in back-off would fit.

        Args:
            job: the job in back-off.
            lacking: by pool, the units from which on jobs like it stay out too; infinite if AWS may have any.
        """
        for pool, count in lacking.items():
            by_share = self.awaiting.setdefault(pool, {})
            if job.share not in by_share or job.priority > by_share[job.share].priority:
                by_share[job.share] = job
            alike = self.lacking.setdefault(pool, {})
            if count < alike.get(_alike(job), (job, inf))[1]:
                alike[_alike(job)] = (job, count)

    def back_off(self, job: Job, units: Units, *, owner: bool = False) -> tuple[str, Job] | None:
        """Return a pool of these units and a job that backs off there and goes first; None if there is none.

        It has a higher priority, or is like this job, and AWS lacked no more units for it than these. No rank or
        preemptibility excuses a job: a job that backs off preempts no one there, and the instances may be the ones that
        it waits for. An owner passes jobs of other shares, as it does with barriers.
        """
        for pool in units if self.awaiting else ():
            for share, first in self.awaiting.get(pool, {}).items():
                if first.priority > job.priority and not (owner and share != job.share):
                    return pool, first
            alike = self.lacking.get(pool)
            first, count = alike.get(_alike(job), (job, inf)) if alike else (job, inf)
            if first.name != job.name and units[pool] >= count:
                return pool, first
        return None

    def claimant(self, pool: str) -> tuple[str, datetime] | None:
        """Return the job with the newest claim on a pool, and the end of that claim; None without claims."""
        claim = next(reversed(self._claims_on.get(pool, {}).values()), None)
        return None if claim is None else (claim.job, claim.until)


def _alike(job: Job) -> _Alike:
    """Return what jobs have in common that AWS probably refuses alike: others may ask for another zone or quota."""
    return kind_of(job), job.keep_alive, job.priority


def open_ledger(snapshot: Snapshot, now: datetime) -> Ledger:
    """Return the ledger before any decision.

    Units of a job that has been stopping for longer than the `reservation_timeout` of the policy count as held, but
    not as releasing: a stop that never ends must not keep the rest of a pool idle.
    """
    warm = counting(snapshot.warm, snapshot.active)
    used = total([*(job.units for job in snapshot.active), *(pool.units for pool in warm), snapshot.external])
    # Nothing starts in a pool that is being drained, so it counts as empty of capacity, whatever runs there.
    caps = {name: 0 if pool.draining else pool.cap for name, pool in snapshot.pools.items()}
    free = {name: 0 if pool.draining else pool.cap - used.get(name, 0) for name, pool in snapshot.pools.items()}
    ledger = Ledger(caps=caps, free=free, releasing={}, release_by={})
    leaving = [
        (job.freeing, attempt.stop_asked_at or attempt.base_ended_at if under_way is None else under_way.asked_at)
        for job in snapshot.active
        if (attempt := job.attempt) is not None
        and ((under_way := attempt.resizing) or attempt.stop_asked_at or attempt.base_ended_at)
    ]
    for units, since in [*leaving, *((pool.units, pool.ending_since) for pool in warm)]:
        if since is not None and since + snapshot.policy.reservation_timeout > now:
            ledger.release_later(units, since + snapshot.policy.reservation_timeout)
    return ledger
