"""Whose turn it is: owners first, then borrowers by what their shares have. It must not look at what is free.

Among borrowers the share goes first whose largest part of any pool is smallest: dominant resource fairness (Ghodsi
et al., NSDI 2011), weighted. In the order `fair` it is the share that has used least, fading with a half-life (Slurm,
fair tree and `PriorityDecayHalfLife`; Kueue, admission fair sharing), inside each priority.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.shares.usage import accelerators_of, faded_seconds
from trainmaster.images.domain.endpoint import is_endpoint_pool

if TYPE_CHECKING:
    from trainmaster.planner.sharing.shares import Shares

IN_ADVANCE = timedelta(hours=1)
"""In the order `fair` every start is charged this long in advance; after it, what it has really used.

Without it the share that has used least would get everything that is idle in one pass. In later passes the charge
stands, so what is given one by one is shared as what is given at once.
"""

Key = tuple[float, ...]
OWNER, BORROWER = 0, 1


def turns(ordered: Sequence[Job], shares: Shares) -> Iterator[Job]:
    """The jobs in the order in which they are considered; reads `shares` anew before each.

    A share's jobs stay in the order given. A share with a job that its own units have room for comes before all
    shares without, with whatever it has before that job: a blocked borrower must not cost the share its own, nor be
    passed by the share's later jobs. Whoever is considered has nothing kept for it any more (`Shares.release`).

    Args:
        ordered: by standing and the order in force, each share's jobs among themselves in their right order.
        shares: the state that moves as jobs are considered.
    """
    if not (shares.enabled or shares.fair):
        yield from ordered
        return
    table = ShareQueue(shares)
    table.seat(ordered)
    while (job := table.next()) is not None:
        shares.release(job)
        yield job
        table.settle(job)


@dataclass(slots=True)
class _Line:
    """One share's jobs, with their places in the order given.

    Attributes:
        head: the first that has not been considered.
        owner: no job between `head` and here keeps the share within its own.
        stamp: which entry of the heap is the valid one.
        used: GPU-seconds until now, fading.
        active: accelerators of its active attempts; those that it is given in this plan are charged in advance.
    """

    share: str
    weight: float
    used: float = 0.0
    active: int = 0
    jobs: list[tuple[int, Job]] = field(default_factory=list)
    head: int = 0
    owner: int = 0
    stamp: int = 0


@dataclass(slots=True)
class ShareQueue:
    """The lines, and a heap of their keys; keys that have changed are pushed anew, and old ones skipped."""

    shares: Shares
    lines: dict[str, _Line] = field(default_factory=dict)
    heap: list[tuple[Key, str, int]] = field(default_factory=list)
    advance: float = 0.0

    def seat(self, ordered: Sequence[Job]) -> None:
        """Put every job in its share's line."""
        for place, job in enumerate(ordered):
            if job.share not in self.lines:
                weight = self.shares.entitlements.of(job.share).share.weight
                self.lines[job.share] = _Line(job.share, weight)
            self.lines[job.share].jobs.append((place, job))
        if self.shares.fair:
            self._charge()
        self.shares.holdings.changed_shares.clear()
        for line in self.lines.values():
            self._push(line)

    def next(self) -> Job | None:
        """Whose turn it is; None when all have had theirs."""
        while self.heap:
            _, share, stamp = heapq.heappop(self.heap)
            line = self.lines[share]
            if stamp == line.stamp:
                return line.jobs[line.head][1]
        return None

    def settle(self, job: Job) -> None:
        """The job has been considered: its line moves on, and whoever's figures have changed is placed anew."""
        self.lines[job.share].head += 1
        changed_shares = {job.share: False, **self.shares.holdings.changed_shares}
        self.shares.holdings.changed_shares.clear()
        for share, shrank in changed_shares.items():
            if share in self.lines:
                if shrank:
                    self.lines[share].owner = 0
                self._push(self.lines[share])

    def _charge(self) -> None:
        """What the shares have used: ended attempts, and active ones for at least what was charged in advance."""
        snapshot, now, half_life = self.shares.snapshot, self.shares.now, self.shares.snapshot.policy.usage_half_life
        self.advance = faded_seconds(now - IN_ADVANCE, now, half_life)
        for line in self.lines.values():
            line.used = snapshot.records.usage.faded(line.share, now, half_life)
        for job in snapshot.active:
            if job.share in self.lines and job.attempt is not None:
                line = self.lines[job.share]
                accelerators = accelerators_of(job.units, snapshot.pools)
                # What it held before it had this size is booked already.
                since = min(job.attempt.held_since, now - IN_ADVANCE)
                line.used += accelerators * faded_seconds(since, now, half_life)
                line.active += accelerators

    def _push(self, line: _Line) -> None:
        line.stamp += 1
        if line.head < len(line.jobs):
            heapq.heappush(self.heap, (self._key(line), line.share, line.stamp))

    def _key(self, line: _Line) -> Key:
        """What is compared: smaller goes first."""
        lead = self._first_owner(line) if self.shares.enabled else line.head
        rank = OWNER if lead < len(line.jobs) else BORROWER
        place, job = line.jobs[lead if rank == OWNER else line.head]
        if self.shares.fair:
            return (rank, -job.priority, self._patient(job), *self._usage(line))
        if rank == OWNER:
            return (rank, place)
        return (rank, self._patient(job), *_weighed(self.shares.dominant_share(job), line.weight), place)

    def _first_owner(self, line: _Line) -> int:
        line.owner = max(line.owner, line.head)
        while line.owner < len(line.jobs) and not self.shares.any_within_nominal(line.jobs[line.owner][1]):
            line.owner += 1
        return line.owner

    def _patient(self, job: Job) -> bool:
        """Whether the job has not waited for longer than the policy's patience; those that have go first."""
        return self.shares.now - job.entry_time <= self.shares.snapshot.policy.patience

    def _usage(self, line: _Line) -> Key:
        """Weighted usage, then what the share holds; requests, which nobody is charged for, last."""
        units = self.shares.holdings.held_by(line.share)
        holds = accelerators_of(units, self.shares.snapshot.pools)
        requests = sum(count for pool, count in units.items() if is_endpoint_pool(pool))
        return (*_weighed(line.used + (holds - line.active) * self.advance, line.weight), holds, requests)


def _weighed(part: float, weight: float) -> tuple[float, float]:
    """Divided by the weight; shares of no weight come after all others, by what they have (Kueue #6774, #6925)."""
    return (0.0, part / weight) if weight > 0 else (1.0, part)
