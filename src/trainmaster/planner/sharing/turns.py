"""The order in which shares take turns: owners first, then borrowers by what their shares hold or have used.

Among borrowers, the share with the smallest dominant share goes first: weighted dominant resource fairness (Ghodsi et
al., NSDI 2011). An order with usage (`fair`) compares usage instead, inside each priority.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from trainmaster.domain.capacity.units import is_service_pool
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.shares.usage import accelerators_of
from trainmaster.planner.orders.strategy import ShareUsage
from trainmaster.planner.sharing.shares import Shares

Key = tuple[float, ...]
OWNER, PREEMPTING_OWNER, LATER_OWNER, BORROWER = range(4)
"""Shares go by their next job: it fits the nominal units; it does once it has preempted jobs of its share; a job behind
it does; none does."""


def turns(ordered: Sequence[Job], shares: Shares, usage: ShareUsage | None = None) -> Iterator[Job]:
    """Yield the jobs in the order in which the plan decides about them; reads `shares` again before each job.

    The jobs of one share keep their order. A share with a job that fits its nominal units comes before all shares
    without one, with the jobs before that job: a blocked borrower must not cost the share its nominal units, nor may
    later jobs of the share pass it.

    Args:
        ordered: by rank and the queue's order; each share's jobs in their right order.
        shares: what the shares hold, updated by the caller as it decides.
        usage: usage by which shares take turns, for orders that have one.
    """
    if not (shares.enabled or usage is not None):
        yield from ordered
        return
    queue = ShareQueue(shares, usage)
    queue.add(ordered)
    while (job := queue.next()) is not None:
        yield job
        queue.advance(job)


@dataclass(slots=True)
class _ShareJobs:
    """The jobs of one share, with their places in the given order.

    Attributes:
        weight: the weight of the share.
        run_ends: for each job, the place behind the jobs from it on that nominal units cover alike.
        head: the first job that has not had its turn.
        owner: where to look for the first job, from `head` on, that keeps the share within its nominal units.
        stamp: the number of the valid heap entry.
        dominant: the dominant share with the first job, the same for the rest of its run while holdings do not change.
        dominant_at: the version of the holdings for which it holds, and the end of the run.
    """

    share: str
    weight: float
    jobs: list[tuple[int, Job]] = field(default_factory=list)
    run_ends: list[int] = field(default_factory=list)
    head: int = 0
    owner: int = 0
    stamp: int = 0
    dominant: float = 0.0
    dominant_at: tuple[int, int] = (-1, -1)


@dataclass(slots=True)
class ShareQueue:
    """The jobs by share, and a heap of the shares' keys; a changed key is pushed again, and outdated ones skipped."""

    shares: Shares
    usage: ShareUsage | None = None
    by_share: dict[str, _ShareJobs] = field(default_factory=dict)
    heap: list[tuple[Key, str, int]] = field(default_factory=list)

    def add(self, ordered: Sequence[Job]) -> None:
        """Queue all jobs under their shares."""
        for place, job in enumerate(ordered):
            if job.share not in self.by_share:
                weight = self.shares.entitlements.of(job.share).share.weight
                self.by_share[job.share] = _ShareJobs(job.share, weight)
            self.by_share[job.share].jobs.append((place, job))
        self.shares.holdings.changed_shares.clear()
        for share_jobs in self.by_share.values():
            share_jobs.run_ends = _run_ends([job for _, job in share_jobs.jobs], self.shares.rank)
            self._push(share_jobs)

    def next(self) -> Job | None:
        """Return the job whose turn it is; None when all have had theirs."""
        while self.heap:
            _, share, stamp = heapq.heappop(self.heap)
            share_jobs = self.by_share[share]
            if stamp == share_jobs.stamp:
                return share_jobs.jobs[share_jobs.head][1]
        return None

    def advance(self, job: Job) -> None:
        """Move on behind a job that has had its turn, and update the keys of all shares that have changed."""
        self.by_share[job.share].head += 1
        changed = {job.share: False, **self.shares.holdings.changed_shares}
        self.shares.holdings.changed_shares.clear()
        for share, shrank in changed.items():
            if share in self.by_share:
                if shrank:
                    self.by_share[share].owner = 0
                self._push(self.by_share[share])

    def _push(self, share_jobs: _ShareJobs) -> None:
        share_jobs.stamp += 1
        if share_jobs.head < len(share_jobs.jobs):
            heapq.heappush(self.heap, (self._key(share_jobs), share_jobs.share, share_jobs.stamp))

    def _key(self, share_jobs: _ShareJobs) -> Key:
        """Return the sort key of a share; the smallest goes first."""
        lead = self._first_owner(share_jobs) if self.shares.enabled else share_jobs.head
        claim = self._claim(share_jobs, lead)
        place, job = share_jobs.jobs[share_jobs.head if claim == BORROWER else lead]
        if self.usage is not None:
            return (claim, -job.priority, self._patient(job), *self._usage_key(share_jobs, self.usage))
        if claim != BORROWER:
            return (claim, place)
        return (claim, self._patient(job), *_weighted(self._dominant(share_jobs), share_jobs.weight), place)

    def _dominant(self, share_jobs: _ShareJobs) -> float:
        """Return the dominant share with the first job."""
        at = (self.shares.version, share_jobs.run_ends[share_jobs.head])
        if share_jobs.dominant_at != at:
            _, job = share_jobs.jobs[share_jobs.head]
            share_jobs.dominant, share_jobs.dominant_at = self.shares.dominant_share(job), at
        return share_jobs.dominant

    def _claim(self, share_jobs: _ShareJobs, lead: int) -> int:
        """Return the claim of a share on its nominal units, of which the smallest goes first."""
        if lead == len(share_jobs.jobs):
            return BORROWER
        if lead > share_jobs.head:
            return LATER_OWNER
        fits = self.shares.any_within_nominal(share_jobs.jobs[lead][1], preempting=False)
        return OWNER if fits or not self.shares.enabled else PREEMPTING_OWNER

    def _first_owner(self, share_jobs: _ShareJobs) -> int:
        share_jobs.owner = max(share_jobs.owner, share_jobs.head)
        within = self.shares.any_within_nominal
        while share_jobs.owner < len(share_jobs.jobs) and not within(share_jobs.jobs[share_jobs.owner][1]):
            share_jobs.owner = share_jobs.run_ends[share_jobs.owner]
        return share_jobs.owner

    def _patient(self, job: Job) -> bool:
        """Return False for a job that has waited longer than the policy's patience, which goes first."""
        return self.shares.now - job.entry_time <= self.shares.snapshot.policy.patience

    def _usage_key(self, share_jobs: _ShareJobs, usage: ShareUsage) -> Key:
        """Return weighted usage, then held accelerators, then held requests, which are not charged."""
        units = self.shares.holdings.held_by(share_jobs.share)
        held = accelerators_of(units, self.shares.snapshot.pools)
        requests = sum(count for pool, count in units.items() if is_service_pool(pool))
        return (*_weighted(usage.of(share_jobs.share, held), share_jobs.weight), held, requests)


def _run_ends(jobs: Sequence[Job], rank: Callable[[Job], object]) -> list[int]:
    """Return, for each job, the place behind the last of the jobs from it on that nominal units cover alike.

    They cover all of these or none: equivalent jobs of equal rank, for which nothing is kept.
    """
    ends = list(range(1, len(jobs) + 1))
    keys = [None if job.equivalence_key is None else (job.equivalence_key, rank(job)) for job in jobs]
    for place in range(len(jobs) - 2, -1, -1):
        if keys[place] is not None and keys[place] == keys[place + 1]:
            ends[place] = ends[place + 1]
    return ends


def _weighted(part: float, weight: float) -> tuple[float, float]:
    """Divide by the weight; shares without weight come last, by what they have (Kueue #6774, #6925)."""
    return (0.0, part / weight) if weight > 0 else (1.0, part)
