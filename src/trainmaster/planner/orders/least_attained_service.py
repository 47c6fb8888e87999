"""The order `least-attained-service`: jobs that have received least run, by discrete levels (Tiresias, NSDI 2019).

    patient     waited longer than the policy's patience: runs to its end unless a higher priority needs the units
    guaranteed  large jobs that have waited longer than nearly all large jobs before them, on up to a third of a pool
    fresh       has received little: small jobs up to 100 GPU-hours, jobs of 8 accelerators up to an hour
    served      all others
    heaviest    the very few large jobs that have received most (7 in 1,000), until they have waited three times as
                long as any other large job

Levels dominate. Inside a level, the job with the longest total wait goes first, so that preempted jobs come back. The
wait of a running job counts one and a half times, and its equals do not preempt it for half an hour, so two jobs
exchange places ever more rarely and restarts cost little. docs/explanation/least-attained-service.md derives the
numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import ClassVar

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import LARGE
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.ranking import PreemptionRank, Ranking, SortKey, gpus_of, in_order
from trainmaster.planner.orders.strategy import OrderStrategy

FRESH_SMALL = 360_000.0
"""GPU-seconds up to which a small job is fresh: 100 GPU-hours."""
FRESH_LARGE = 3_600.0
"""Seconds for which a job of 8 accelerators is fresh; divided by the root of the width of larger jobs."""
PROTECTED_FROM_EQUALS = timedelta(minutes=30)
"""Running time before which equals do not preempt an attempt."""
HEAD_START = 50_000.0
"""Seconds added to the wait of every job, so that a few hours make no difference."""
RUNNING_COUNTS = 1.5
"""Factor on the wait of a running job: a job that preempts it must have waited that much longer."""
SMALL_COUNTS = 0.75
"""The same factor for a served small job: preempting it frees little."""
HOLDS_FROM = timedelta(days=1)
"""Wait after which free units are held for a job while only the half hour of running jobs delays it."""
_HOLDS_FROM = HOLDS_FROM.total_seconds()
RECHECK_INTERVAL = timedelta(hours=1)
"""The interval at which the order of waits, which always grow, is computed again without any event."""

HEAVIEST_PART = 0.007
"""Fraction of all large jobs that may ever wait longer than all others."""
HEAVIEST_WAITS = 3.0
"""Limit on the wait of the heaviest jobs, as a multiple of the longest wait of the other large jobs."""

GUARANTEED_PART = 0.35
"""Fraction of a pool on which large jobs with a long wait go before fresh ones."""
GUARANTEED_FROM = 0.95
"""A wait is long if it is longer than that of this fraction of the large jobs before."""
MIN_LONG_WAIT = 3_600.0
"""Seconds below which no wait is long."""
LONG_WAIT = 86_400.0
"""Seconds of a long wait while too few large jobs have ended to compute it."""

PATIENT, GUARANTEED, FRESH, SERVED, HEAVIEST = 3, 2, 1, 0, -1
PINNED = 4
"""The level, above all others, of a job that has run for less than half an hour."""


_Account = tuple[float, float, int, float]
"""GPU-seconds received, seconds waited, accelerators, and seconds of running up to which the job is fresh."""
RECEIVED, WAIT, GPUS, FRESH_FOR = range(4)


@dataclass(slots=True)
class AttainedServiceRanking(Ranking):
    """The ranking of `least-attained-service`."""

    _ranks: dict[str, PreemptionRank] = field(default_factory=dict)
    _accounts: dict[str, _Account] = field(default_factory=dict)
    _widths: dict[str, tuple[int, float]] = field(default_factory=dict)
    _medians: dict[Hashable, float] = field(default_factory=dict)
    _large_jobs: list[tuple[Job, _Account]] | None = None
    _guaranteed: frozenset[str] | None = None
    _heaviest: frozenset[str] | None = None
    _holders: dict[str, tuple[list[PreemptionRank], list[int]]] = field(default_factory=dict)
    _patience: float = 0.0

    def __post_init__(self) -> None:
        self._patience = self.snapshot.policy.patience.total_seconds()

    def rank(self, job: Job) -> PreemptionRank:
        """Return priority, level and wait; a job may preempt an equal priority of lower level or wait."""
        found = self._ranks.get(job.name)
        if found is None:
            found = self._ranks[job.name] = self._rank(job)
        return found

    def common_rank(self, job: Job) -> PreemptionRank:
        """Return priority and level."""
        return (self._ranks.get(job.name) or self.rank(job))[:2]

    def in_order(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs in the order in which they are considered; the name makes it total."""
        ordered = in_order(jobs)
        if any(job.deadline is not None for job in ordered):
            return sorted(ordered, key=self.sort_key)
        ranks = list(map(self.rank, ordered))
        places = sorted(range(len(ordered)), key=ranks.__getitem__, reverse=True)
        return [ordered[place] for place in places]

    def sort_key(self, job: Job) -> SortKey:
        """Return priority, level, near deadline, longest wait, then entry time and name."""
        priority, level, wait = self.rank(job)
        return (-priority, level != PATIENT, *self._urgency(job), -level, -wait, *job.order[1:])

    def holds_free_units(self, job: Job, units: Units, free: Units) -> bool:
        """Return True if free units are held for a blocked job that waits only for the half hour of running jobs.

        Otherwise new small jobs would keep starting on the free units, each protected for half an hour.
        """
        if self.rank(job)[1] not in (PATIENT, GUARANTEED) and self._account(job)[WAIT] < _HOLDS_FROM:
            return False
        return all(free.get(pool, 0) + self._preemptible_units(pool, job) >= count for pool, count in units.items())

    def strict(self, job: Job) -> bool:
        """Return True if no job of its rank may pass the job while it is blocked."""
        return self.rank(job)[1] == PATIENT

    def _change_times(self) -> Iterator[datetime]:
        if not self.snapshot.waiting:
            return
        yield self.now + RECHECK_INTERVAL
        for job in self.snapshot.active:
            # Equals may preempt it from the first time on, and it is no longer fresh from the second on.
            attempt = job.attempt
            if attempt is not None and attempt.started_at is not None and not job.stopping:
                yield attempt.started_at + PROTECTED_FROM_EQUALS
                if (left := self._account(job)[FRESH_FOR] - job.worked) > 0:
                    yield attempt.started_at + timedelta(seconds=left)

    def _rank(self, job: Job) -> PreemptionRank:
        account = self._accounts.get(job.name) or self._open_account(job)
        received, waited, gpus, fresh_for = account
        if gpus < LARGE and received < fresh_for and waited <= self._patience and not job.units:
            return (job.priority, FRESH, int(waited + HEAD_START))
        level, wait = self._level(job, account), waited + HEAD_START
        if job.units:
            wait *= RUNNING_COUNTS
            level = PINNED if self._pinned(job) and level != PATIENT else level
        if level == SERVED and gpus < LARGE:
            wait *= SMALL_COUNTS
        return (job.priority, level, int(wait))

    def _level(self, job: Job, account: _Account) -> int:
        received, wait, gpus, fresh_for = account
        if wait > self._patience:
            return PATIENT
        # The guaranteed and the heaviest are large, and nearly all jobs are not.
        if gpus >= LARGE and job.name in (self.guaranteed() if self._guaranteed is None else self._guaranteed):
            return GUARANTEED
        if received < fresh_for:
            return FRESH
        return HEAVIEST if gpus >= LARGE and job.name in self.heaviest() else SERVED

    def heaviest(self) -> frozenset[str]:
        """Return the names of the few large jobs that run last, computed once."""
        if self._heaviest is None:
            self._heaviest = self._find_heaviest()
        return self._heaviest

    def guaranteed(self) -> frozenset[str]:
        """Return the names of the large jobs that the guaranteed part of their pools has room for, computed once."""
        if self._guaranteed is None:
            self._guaranteed = frozenset(self._find_guaranteed())
        return self._guaranteed

    def _find_guaranteed(self) -> Iterator[str]:
        """Yield them by the longest wait; always the first of a pool, which may be wider than the guaranteed part."""
        left = {name: GUARANTEED_PART * pool.cap for name, pool in self.snapshot.pools.items()}
        begun: set[str] = set()
        for job in sorted(self._waited_long(), key=self._by_wait):
            units = job.units or next(iter(job.demand.alternatives), {})
            fits = all(count <= left.get(pool, 0) for pool, count in units.items())
            for pool, count in units.items():
                left[pool] = left.get(pool, 0) - count if fits else 0
            if fits or begun.isdisjoint(units):
                yield job.name
            begun.update(units)

    def _waited_long(self) -> list[Job]:
        known = self.snapshot.records.history.long_wait(GUARANTEED_FROM)
        shortest, longest = LONG_WAIT if known is None else max(MIN_LONG_WAIT, known), self._patience
        long = [job for job, account in self._large() if shortest < account[WAIT] <= longest]
        heaviest = self.heaviest() if long else frozenset()
        return [job for job in long if job.name not in heaviest]

    def _by_wait(self, job: Job) -> tuple[float, str]:
        return (-(self._account(job)[WAIT] + HEAD_START) * (RUNNING_COUNTS if job.units else 1.0), job.name)

    def _large(self) -> list[tuple[Job, _Account]]:
        if self._large_jobs is None:
            self._large_jobs = [pair for pair in self._all_accounts() if pair[1][GPUS] >= LARGE]
        return self._large_jobs

    def _all_accounts(self) -> Iterator[tuple[Job, _Account]]:
        """Yield all jobs with their accounts; inlined for jobs that have never run, nearly all of a deep queue."""
        known, now, width_of = self._accounts, self.now, self._widths.get
        for job in (*self.snapshot.active, *self.snapshot.waiting):
            account = known.get(job.name)
            if account is None and (job.attempt is not None or job.past):
                account = self._open_account(job)
            elif account is None:
                gpus, fresh_for = width_of(job.equivalence_key or "") or self._width(job)
                account = known[job.name] = (0.0, (now - job.entry_time).total_seconds(), gpus, fresh_for)
            yield job, account

    def _find_heaviest(self) -> frozenset[str]:
        """Return as many jobs as may be set back, counting those that were and have ended."""
        history = self.snapshot.records.history
        large = self._large()
        allowed = int(HEAVIEST_PART * (history.large + len(large)))
        run = [(job, account[RECEIVED]) for job, account in large if account[RECEIVED] > 0] if allowed else []
        ranked = sorted(
            (job for job, received in run if received > self._typical_run_times(job)),
            key=lambda job: (-self._weight(job), job.name),
        )
        waits = sorted(((account[WAIT], job.name) for job, account in large), reverse=True) if ranked else []
        for count in range(min(allowed, len(ranked)), 0, -1):
            names = {job.name for job in ranked[:count]}
            longest = next((wait for wait, name in waits if name not in names), 0.0)
            if count + history.waited_longer(longest) <= allowed:
                bound = HEAVIEST_WAITS * longest
                return frozenset(job.name for job in ranked[:count] if self._account(job)[WAIT] <= bound)
        return frozenset()

    def _typical_run_times(self, job: Job) -> float:
        """Return the median run time of jobs of its class in seconds; infinite without history."""
        found = self._medians.get(job.equivalence_key)
        if found is None:
            kind = (job.share, job.container_image, tuple(next(iter(job.demand.alternatives), {}).items()))
            if kind not in self._medians:
                median = self.snapshot.records.history.run_time(job, 0.0, 0.5)
                self._medians[kind] = math.inf if median is None else median
            found = self._medians[kind]
            if job.equivalence_key is not None:
                self._medians[job.equivalence_key] = found
        return found

    def _weight(self, job: Job) -> float:
        """Return GPU-seconds received; doubled for a preempted job, so that two jobs do not exchange places often."""
        account = self._account(job)
        return account[RECEIVED] * account[GPUS] * (1.0 if job.units else 2.0)

    def _pinned(self, job: Job) -> bool:
        attempt = job.attempt
        return attempt is not None and self.now < (attempt.started_at or self.now) + PROTECTED_FROM_EQUALS

    def _account(self, job: Job) -> _Account:
        """Return the job's account, computed once."""
        return self._accounts.get(job.name) or self._open_account(job)

    def _open_account(self, job: Job) -> _Account:
        attempt, received, at_work = job.attempt, job.worked, job.at_work
        if attempt is not None and attempt.started_at is not None and job.units:
            received = job.worked_by(self.now)
            at_work += (self.now - attempt.started_at).total_seconds()
        wait = (self.now - job.entry_time).total_seconds() - at_work
        gpus, fresh_for = self._widths.get(job.equivalence_key or "") or self._width(job)
        found = self._accounts[job.name] = (received, wait, gpus, fresh_for)
        return found

    def _width(self, job: Job) -> tuple[int, float]:
        """Return the job's accelerators and how long it is fresh, computed once for jobs with equal equivalence_key."""
        gpus = gpus_of(job, self.snapshot.pools)
        found = (gpus, FRESH_SMALL / gpus if gpus < LARGE else FRESH_LARGE * (LARGE / gpus) ** 0.5)
        if job.equivalence_key is not None:
            self._widths[job.equivalence_key] = found
        return found

    def _preemptible_units(self, pool: str, job: Job) -> int:
        """Return the units of a pool that the job may preempt now, or once the half hour of their jobs has passed."""
        if pool not in self._holders:
            held = sorted((self.rank_when_running(item), item.units[pool]) for item in self._preemptible(pool))
            self._holders[pool] = ([rank for rank, _ in held], [0, *accumulate(count for _, count in held)])
        ranks, sums = self._holders[pool]
        return sums[bisect_left(ranks, self.rank(job))]

    def _preemptible(self, pool: str) -> Iterator[Job]:
        return (job for job in self.snapshot.active if pool in job.units and job.preemptible and not job.stopping)

    def rank_when_running(self, job: Job) -> PreemptionRank:
        """Return the rank of the job when it has run for half an hour."""
        priority, level, wait = self.rank(job)
        if level == PINNED:
            account = self._account(job)
            level = self._level(job, account)
            wait = int(wait * SMALL_COUNTS) if level == SERVED and account[GPUS] < LARGE else wait
        return (priority, level, wait if job.units else int(wait * RUNNING_COUNTS))


class LeastAttainedService(OrderStrategy):
    """Least attained service; equals preempt each other by level, so blocked jobs need no reservation."""

    name: ClassVar[str] = "least-attained-service"
    reserves: ClassVar[bool] = False

    def ranking(self, snapshot: Snapshot, now: datetime) -> Ranking:
        """Return the ranking by attained service."""
        return AttainedServiceRanking(snapshot, now)
