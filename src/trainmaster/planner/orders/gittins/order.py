"""The ranking of the order `gittins`: which jobs of a pool should run now, as far as restarts may cost."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import ClassVar, NamedTuple

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import RestartCost
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Gittins
from trainmaster.planner.orders.gittins.boost import boost, horizon, work
from trainmaster.planner.orders.gittins.filling import server_filling
from trainmaster.planner.orders.gittins.guaranteed_lane import LaneCandidate, guaranteed
from trainmaster.planner.orders.gittins.patient_jobs import PART, PatientJob, fits_when_empty, go_first
from trainmaster.planner.orders.gittins.rivals import AllRivals, Rival, Rivals
from trainmaster.planner.orders.ranking import PreemptionRank, Ranking, SortKey
from trainmaster.planner.orders.strategy import OrderStrategy

RECHECK_INTERVAL = timedelta(hours=1)
"""The interval at which the order is computed again without any event, while jobs wait."""
PINNED, PATIENT, GUARANTEED, USUAL = 3, 2, 1, 0
"""Levels: an attempt younger than the shortest; beyond the patience, on its part of the pools; in the guaranteed lane;
any other job."""
_BY_ARRIVAL = frozenset({PATIENT, GUARANTEED})
"""Levels whose jobs are served in order of arrival."""
_Entry = tuple[float, str, int, Job]
"""The key of a job, its name, its accelerators, and the job; sorted in the order in which jobs are given units."""


class _Run(NamedTuple):
    """Jobs of one group of pools that are alike in what decides before their keys; runs are sorted by that.

    Attributes:
        priority_down: minus their priority.
        level_down: minus their level.
        displaced: whether they wait until restarts may cost something again.
        entries: the jobs, sorted; at least one.
        group: the group of pools.
    """

    priority_down: int
    level_down: int
    displaced: bool
    entries: list[_Entry]
    group: str


@dataclass(slots=True)
class GittinsRanking(Ranking):
    """The ranking of `gittins`: priority, level, then the place in the order of the boosted times of arrival."""

    _patient: frozenset[str] = frozenset()
    _lane: frozenset[str] = frozenset()
    _known: AllRivals | None = None
    _runs: list[_Run] | None = None
    _ordered: list[Job] = field(default_factory=list)
    _ranks: dict[str, PreemptionRank] = field(default_factory=dict)
    _holders: dict[str, tuple[list[PreemptionRank], list[int]]] = field(default_factory=dict)

    @property
    def parameters(self) -> Gittins:
        """The parameters."""
        return self.snapshot.policy.gittins

    def rank(self, job: Job) -> PreemptionRank:
        """Return priority, level and place; a job may preempt equals of lower level or later place."""
        if not self._ordered:
            self._place()
        return self._ranks.get(job.name) or (job.priority, self._level(job), 0)

    def rank_when_running(self, job: Job) -> PreemptionRank:
        """Return the rank of the job when it has run for the shortest attempt."""
        priority, level, place = self.rank(job)
        return (priority, self._level(job, pins=False) if level == PINNED else level, place)

    def common_rank(self, job: Job) -> PreemptionRank:
        """Return priority and level."""
        return self.rank(job)[:2]

    def waiting_in_order(self) -> list[Job]:
        """Return the waiting jobs in the order in which they are considered; the name makes it total."""
        if any(job.deadline is not None for job in self.snapshot.special):
            return sorted(self.snapshot.waiting, key=self.sort_key)
        if not self._ordered:
            self._place()
        active = {job.name for job in self.snapshot.active}
        return [job for job in self._ordered if job.name not in active]

    def sort_key(self, job: Job) -> SortKey:
        """Return priority, patience, near deadline, level, place, then entry time and name."""
        priority, level, place = self.rank(job)
        return (-priority, level != PATIENT, *self._urgency(job), -level, -place, *job.order[1:])

    def strict(self, job: Job) -> bool:
        """Return True if no job of its rank may pass the job while it is blocked."""
        return self.rank(job)[1] == PATIENT

    def holds_free_units(self, job: Job, units: Units, free: Callable[[str], int]) -> bool:
        """Return True if free units are held for a job that waits only for the first minutes of running jobs.

        For a patient job, or one in the guaranteed lane. Otherwise new jobs would keep starting on the free units, each
        protected for the shortest attempt.
        """
        if self.rank(job)[1] not in _BY_ARRIVAL:
            return False
        return all(free(pool) + self._preemptible_units(pool, job) >= count for pool, count in units.items())

    def drain(self, job: Job) -> timedelta:
        """Return how long the pools need for all jobs of its priority and higher ones, by their mean residual lives."""
        return timedelta(seconds=self._all_rivals().drain(job))

    def _preemptible_units(self, pool: str, job: Job) -> int:
        """Return the units of a pool that the job may preempt, now or once their attempts are long enough."""
        if pool not in self._holders:
            active = (item for item in self.snapshot.active if item.preemptible and not item.stopping)
            held = sorted((self.rank_when_running(item), item.units[pool]) for item in active if pool in item.units)
            self._holders[pool] = ([rank for rank, _ in held], [0, *accumulate(count for _, count in held)])
        ranks, sums = self._holders[pool]
        return sums[bisect_left(ranks, self.rank(job))]

    def _change_times(self) -> Iterator[datetime]:
        if not self.snapshot.waiting:
            return
        yield self.now + RECHECK_INTERVAL
        for job in self._outranked_if_unpinned():
            if job.attempt is not None and job.attempt.started_at is not None and not job.stopping:
                yield job.attempt.started_at + self.parameters.min_attempt

    def _outranked_if_unpinned(self) -> Iterator[Job]:
        """Yield the jobs with an attempt younger than the shortest that a waiting job would be ahead of without that.

        Only for them the order changes when the attempt is long enough.
        """
        active = {job.name for job in self.snapshot.active}
        first: dict[tuple[str, int], tuple[int, bool, float]] = {}
        for run in self._sorted():
            key = next((key for key, name, _, _ in run.entries if name not in active), None)
            if key is not None:
                first.setdefault((run.group, run.priority_down), (run.level_down, run.displaced, key))
        for run in self._sorted():
            ahead = first.get((run.group, run.priority_down)) if run.level_down == -PINNED else None
            if ahead is not None:
                yield from (job for key, _, _, job in run.entries if ahead < (-USUAL, False, key))

    # -- places ------------------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Put all jobs of the snapshot in order, and note their ranks."""
        left: dict[str, int] = {}
        for priority_down, level_down, _, entries, group in self._sorted():
            widths = [width for _, _, width, _ in entries]
            room = left.setdefault(group, self._all_rivals().capacity(group))
            left[group] -= sum(widths)
            # The widest go first among those that fill what better jobs leave of their pools.
            placed = [entries[at] for at in server_filling(widths, room)] if level_down == -USUAL else entries
            priority, level = -priority_down, -level_down
            for place, (_, name, _, _) in enumerate(placed, len(self._ordered) + 1):
                self._ranks[name] = (priority, level, -place)
            self._ordered += [job for _, _, _, job in placed]

    def _sorted(self) -> list[_Run]:
        """Return the runs of all jobs in the order in which they are given units; computed once."""
        if self._runs is None:
            rivals = self._all_rivals().by_priority()
            spent = self._budget_spent()
            self._patient = frozenset(name for each in rivals for name in self._patient_jobs(each))
            self._lane = self._guaranteed(rivals, waiting=not spent)
            self._runs = sorted(run for each in rivals for run in self._runs_of(each, spent=spent))
        return self._runs

    def _runs_of(self, rivals: Rivals, *, spent: bool) -> Iterator[_Run]:
        """Yield the runs of these jobs.

        Args:
            rivals: jobs of one priority and group of pools.
            spent: whether restarts have cost more than they may.
        """
        span = horizon(self.parameters.average_weight, rivals.whole_drain)
        entries: dict[tuple[int, bool], list[_Entry]] = {}
        for rival in rivals.active:
            level, entry = self._active_entry(rival, rivals.capacity, span)
            entries.setdefault((-level, False), []).append(entry)
        self._enter_waiting(rivals, span, entries, displaced=spent)
        for (level_down, displaced), run in entries.items():
            run.sort()
            if run:
                yield _Run(-rivals.priority, level_down, displaced, run, rivals.group)

    def _active_entry(self, rival: Rival, capacity: int, span: float) -> tuple[int, _Entry]:
        """Return the level and the entry of a job that holds units."""
        job, width, index = rival
        level, key = self._level(job), (job.entry_time - self.now).total_seconds()
        if level not in _BY_ARRIVAL:
            key -= boost(work(index, width, capacity) / self.parameters.switch_ratio, span)
        return level, (key, job.name, width, job)

    def _enter_waiting(
        self, rivals: Rivals, span: float, entries: dict[tuple[int, bool], list[_Entry]], *, displaced: bool
    ) -> None:
        """Add the entries of jobs that hold nothing to those of their levels."""
        now, patient, early, capacity = self.now, self._patient, self._patient | self._lane, rivals.capacity
        usual = entries.setdefault((-USUAL, displaced), [])
        for job, width, index in rivals.waiting:
            name, key = job.name, (job.entry_time - now).total_seconds()
            if name not in early:
                usual.append((key - boost(work(index, width, capacity), span), name, width, job))
            elif name in patient:
                entries.setdefault((-PATIENT, False), []).append((key, name, width, job))
            else:
                entries.setdefault((-GUARANTEED, displaced), []).append((key, name, width, job))

    def _patient_jobs(self, rivals: Rivals) -> Iterator[str]:
        """Return the names of the jobs beyond the patience that go first."""
        policy, pools = self.snapshot.policy, self.snapshot.pools
        since, patience = self.now - policy.patience, policy.patience.total_seconds()
        caps = {name: 0 if pool.draining else pool.cap for name, pool in pools.items()}
        late = [
            PatientJob.of(job, width, policy)
            for job, width, _ in (*rivals.active, *rivals.waiting)
            if job.entry_time < since and self._wait(job) > patience and (job.units or fits_when_empty(job, caps))
        ]
        return go_first(late, PART * rivals.capacity)

    def _guaranteed(self, rivals: Iterable[Rivals], *, waiting: bool) -> frozenset[str]:
        """Return the names of the jobs in the guaranteed lane of each group of pools.

        A running job counts as having waited as many times longer as a waiting one has to be better.

        Args:
            rivals: all jobs.
            waiting: whether waiting jobs may get into the lane.
        """
        part, ratio = self.parameters.guaranteed_lane, self.parameters.switch_ratio
        by_group: dict[str, list[LaneCandidate]] = {}
        for each in rivals if part else ():
            for job, width, _ in (*each.active, *each.waiting) if waiting else each.active:
                waited = self._wait(job) * (ratio if job.units else 1)
                candidate = LaneCandidate(-job.priority, -waited, job.name, width)
                by_group.setdefault(each.group, []).append(candidate)
        capacity = self._all_rivals().capacity
        return frozenset(name for group, jobs in by_group.items() for name in guaranteed(jobs, part * capacity(group)))

    def _budget_spent(self) -> bool:
        """Return True if restarts have cost more than they may, those of attempts that are stopping included."""
        history = self.snapshot.records.history
        worked, restarts = history.restarts.worked, history.restarts.restarts
        for job in self.snapshot.active:
            attempt = job.attempt
            if attempt is not None and attempt.started_at is not None:
                gpus = self._all_rivals().class_of(job).width
                worked += (self.now - attempt.started_at).total_seconds() * gpus
                if job.stopping and attempt.freed_for is not None:
                    restarts += history.restart_cost(job) * gpus
        return RestartCost(worked, restarts).exceeds(self.parameters.restart_budget)

    def _level(self, job: Job, *, pins: bool = True) -> int:
        attempt = job.attempt
        began = None if attempt is None or not job.units else attempt.started_at or self.now
        if pins and began is not None and self.now < began + self.parameters.min_attempt:
            return PINNED
        if job.name in self._patient:
            return PATIENT
        return GUARANTEED if job.name in self._lane else USUAL

    def _wait(self, job: Job) -> float:
        """Return the seconds since the job's entry in which it has not worked."""
        attempt = job.attempt
        at_work = 0.0 if attempt is None else job.at_work
        if attempt is not None and attempt.started_at is not None and job.units:
            at_work += (self.now - attempt.started_at).total_seconds()
        return (self.now - job.entry_time).total_seconds() - at_work

    def _all_rivals(self) -> AllRivals:
        """Return the jobs of the snapshot by what they compete for, computed once."""
        if self._known is None:
            self._known = AllRivals.of(self.snapshot, self.now)
        return self._known


class GittinsOrder(OrderStrategy):
    """Gittins index with boost; equals preempt each other by place, so blocked jobs need no reservation."""

    name: ClassVar[str] = "gittins"
    preempts_equals: ClassVar[bool] = True
    reserves: ClassVar[bool] = False

    def ranking(self, snapshot: Snapshot, now: datetime) -> Ranking:
        """Return the ranking by boosted time of arrival."""
        return GittinsRanking(snapshot, now)
