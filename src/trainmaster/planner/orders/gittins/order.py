"""The ranking of the order `gittins`: which jobs of a pool should run now, as far as restarts may cost."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from operator import itemgetter
from typing import ClassVar, NamedTuple

from trainmaster.domain.capacity.read_limits import first_of
from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.run_times import RestartCost
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Gittins
from trainmaster.planner.orders.gittins.boost import boost, horizon, work
from trainmaster.planner.orders.gittins.competition import Competitions
from trainmaster.planner.orders.gittins.filling import server_filling
from trainmaster.planner.orders.gittins.guaranteed_lane import LaneCandidate, guaranteed
from trainmaster.planner.orders.gittins.learned import LearnedLifetimes, scale_of
from trainmaster.planner.orders.gittins.lifetimes import Lifetimes, unknown
from trainmaster.planner.orders.gittins.patient_jobs import PART, PatientJob, fits_when_empty, go_first
from trainmaster.planner.orders.ranking import PreemptionRank, Ranking, SortKey, in_order
from trainmaster.planner.orders.strategy import OrderStrategy

RECHECK_INTERVAL = timedelta(hours=1)
"""The interval at which the order is computed again without any event, while jobs wait."""
PINNED, PATIENT, GUARANTEED, USUAL = 3, 2, 1, 0
"""Levels: an attempt younger than the shortest; beyond the patience, on its part of the pools; in the guaranteed lane;
any other job."""


class _Class(NamedTuple):
    """The common properties of all jobs of one class.

    Attributes:
        group: the pools in which they compete.
        capacity: accelerators of these pools.
        width: accelerators of the job.
        lifetimes: of the class; None if nothing is known.
        scale: seconds of the job for each second of its class.
    """

    group: str
    capacity: int
    width: int
    lifetimes: Lifetimes | None
    scale: float

    def expected(self, age: float) -> tuple[float, float]:
        """Return the Gittins index and the mean residual life of a job that has worked this long, in seconds."""
        lifetimes, scale = self.lifetimes, self.scale
        if lifetimes is None:
            return unknown(age), unknown(age)
        index, residual = lifetimes.expected(age / scale)
        return index * scale, residual * scale


class _Expected(NamedTuple):
    """A job, and what is expected of it.

    Attributes:
        of: its class.
        gittins: its Gittins index in seconds.
        drains: seconds that the pools need for the rest of it.
    """

    job: Job
    of: _Class
    gittins: float
    drains: float


class _Standing(NamedTuple):
    """A job with what decides about its place; sorted in the order in which jobs are given units."""

    priority_down: int
    level_down: int
    displaced: bool
    key: float
    name: str
    group: str
    width: int


_new = tuple.__new__
"""Makes a named tuple without its constructor, which takes most of the time of a job that has never run."""
_by_key = itemgetter(slice(3, 5))
"""The rest of what sorts standings that are alike in the first three."""


@dataclass(slots=True)
class GittinsRanking(Ranking):
    """The ranking of `gittins`: priority, level, then the place in the order of the boosted times of arrival."""

    _patient: frozenset[str] = frozenset()
    _lane: frozenset[str] = frozenset()
    _places: dict[str, PreemptionRank] = field(default_factory=dict)
    _order: list[_Standing] | None = None
    _classes: dict[str, _Class] = field(default_factory=dict)
    _known: tuple[LearnedLifetimes, Competitions] | None = None
    _drains: dict[tuple[str, int], float] | None = None
    _holders: dict[str, tuple[list[PreemptionRank], list[int]]] = field(default_factory=dict)

    @property
    def parameters(self) -> Gittins:
        """The parameters."""
        return self.snapshot.policy.gittins

    def rank(self, job: Job) -> PreemptionRank:
        """Return priority, level and place; a job may preempt equals of lower level or later place."""
        if not self._places:
            self._places = self._placed()
        return self._places.get(job.name) or (job.priority, self._level(job), 0)

    def rank_when_running(self, job: Job) -> PreemptionRank:
        """Return the rank of the job when it has run for the shortest attempt."""
        priority, level, place = self.rank(job)
        return (priority, self._level(job, pins=False) if level == PINNED else level, place)

    def common_rank(self, job: Job) -> PreemptionRank:
        """Return priority and level."""
        return self.rank(job)[:2]

    def in_order(self, jobs: Iterable[Job]) -> list[Job]:
        """Return the jobs in the order in which they are considered; the name makes it total."""
        ordered = in_order(jobs)
        if any(job.deadline is not None for job in self.snapshot.special):
            return sorted(ordered, key=self.sort_key)
        return sorted(ordered, key=self.rank, reverse=True)

    def sort_key(self, job: Job) -> SortKey:
        """Return priority, patience, near deadline, level, place, then entry time and name."""
        priority, level, place = self.rank(job)
        return (-priority, level != PATIENT, *self._urgency(job), -level, -place, *job.order[1:])

    def strict(self, job: Job) -> bool:
        """Return True if no job of its rank may pass the job while it is blocked."""
        return self.rank(job)[1] == PATIENT

    def holds_free_units(self, job: Job, units: Units, free: Units) -> bool:
        """Return True if free units are held for a job that waits only for the first minutes of running jobs.

        For a patient job, or one in the guaranteed lane. Otherwise new jobs would keep starting on the free units, each
        protected for the shortest attempt.
        """
        if self.rank(job)[1] not in {PATIENT, GUARANTEED}:
            return False
        return all(free.get(pool, 0) + self._preemptible_units(pool, job) >= count for pool, count in units.items())

    def drain(self, job: Job) -> timedelta:
        """Return how long the pools need for all jobs of its priority and higher ones, by their mean residual lives."""
        if self._drains is None:
            self._drains = self._drained(self._expected((*self.snapshot.active, *self.snapshot.waiting)), deep=True)
        return timedelta(seconds=self._drains.get((self._class(job).group, job.priority), 0.0))

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
        active = {job.name: job for job in self.snapshot.active}
        first: dict[tuple[str, int], tuple[int, bool, float]] = {}
        pinned: list[tuple[Job, _Standing]] = []
        for each in self._sorted():
            if (job := active.get(each.name)) is None:
                first.setdefault((each.group, each.priority_down), (each.level_down, each.displaced, each.key))
            elif each.level_down == -PINNED:
                pinned.append((job, each))
        for job, each in pinned:
            ahead = first.get((each.group, each.priority_down))
            if ahead is not None and ahead < (-USUAL, False, each.key):
                yield job

    # -- places ------------------------------------------------------------------------------------------------------

    def _placed(self) -> dict[str, PreemptionRank]:
        """Return the ranks of all jobs of the snapshot, by name."""
        ordered = self._filled(self._sorted())
        return {
            each.name: (-each.priority_down, -each.level_down, -place) for place, each in enumerate(ordered, start=1)
        }

    def _sorted(self) -> list[_Standing]:
        """Return what decides about the places of all jobs, sorted; computed once."""
        if self._order is None:
            runs: dict[tuple[int, int, bool], list[_Standing]] = {}
            for each in self._standings((*self.snapshot.active, *self.snapshot.waiting)):
                runs.setdefault(each[:3], []).append(each)
            # Sorted in runs, which compares fewer items of each pair.
            self._order = [each for _, run in sorted(runs.items()) for each in sorted(run, key=_by_key)]
        return self._order

    def _filled(self, ordered: list[_Standing]) -> list[_Standing]:
        """Return the jobs with the widest first among those that fill what better jobs leave of their pools."""
        left = {group: self._capacity(group) for group in {each.group for each in ordered}}
        filled: list[_Standing] = []
        runs: dict[tuple[int, int, bool, str], list[_Standing]] = {}
        for each in ordered:
            runs.setdefault((each.priority_down, each.level_down, each.displaced, each.group), []).append(each)
        for (_, level, _, group), run in runs.items():
            widths = [each.width for each in run]
            places = server_filling(widths, left[group]) if level == -USUAL else range(len(run))
            filled += [run[place] for place in places]
            left[group] -= sum(widths)
        return filled

    def _standings(self, jobs: Iterable[Job]) -> Iterator[_Standing]:
        """Yield what decides about each job's place."""
        expected = list(self._expected(jobs))
        horizons = self._horizons(expected)
        spent, ratio = self._budget_spent(), self.parameters.switch_ratio
        now, self._patient = self.now, (patient := self._patient_jobs(expected))
        self._lane = lane = self._guaranteed(each for each in expected if each.job.units or not spent)
        for job, kind, index, _ in expected:
            holds, key = job.units, (job.entry_time - now).total_seconds()
            name = job.name
            # Nearly all jobs hold nothing; the rest of the line is `_level` for them.
            level = self._level(job) if holds else PATIENT if name in patient else GUARANTEED if name in lane else USUAL
            if level not in {PATIENT, GUARANTEED}:  # those are served in order of arrival
                needed = work(index, kind.width, kind.capacity)
                key -= boost(needed / ratio if holds else needed, horizons[kind.group, job.priority])
            displaced = spent and not holds and level != PATIENT
            yield _new(_Standing, (-job.priority, -level, displaced, key, name, kind.group, kind.width))

    def _patient_jobs(self, expected: Iterable[_Expected]) -> frozenset[str]:
        """Return the names of the jobs beyond the patience that go first, in each group of pools and priority."""
        policy, pools = self.snapshot.policy, self.snapshot.pools
        since, patience = self.now - policy.patience, policy.patience.total_seconds()
        caps = {name: 0 if pool.draining else pool.cap for name, pool in pools.items()}
        by_place: dict[tuple[str, int], list[PatientJob]] = {}
        for job, kind, _, _ in expected:
            if job.entry_time < since and self._wait(job) > patience and (job.units or fits_when_empty(job, caps)):
                by_place.setdefault((kind.group, job.priority), []).append(PatientJob.of(job, kind.width, policy))
        return frozenset(
            name for (group, _), jobs in by_place.items() for name in go_first(jobs, PART * self._capacity(group))
        )

    def _guaranteed(self, expected: Iterable[_Expected]) -> frozenset[str]:
        """Return the names of the jobs in the guaranteed lane of each group of pools.

        A running job counts as having waited as many times longer as a waiting one has to be better.
        """
        part, ratio = self.parameters.guaranteed_lane, self.parameters.switch_ratio
        by_group: dict[str, list[LaneCandidate]] = {}
        for job, kind, _, _ in expected if part else ():
            waited = self._wait(job) * (ratio if job.units else 1)
            candidate = LaneCandidate(-job.priority, -waited, job.name, kind.width)
            by_group.setdefault(kind.group, []).append(candidate)
        return frozenset(
            name for group, jobs in by_group.items() for name in guaranteed(jobs, part * self._capacity(group))
        )

    def _expected(self, jobs: Iterable[Job]) -> Iterator[_Expected]:
        """Yield what is expected of each job; of those that have never run, nearly all, once for each class."""
        fresh: dict[str, _Expected] = {}
        now, classes = self.now, self._classes
        for job in jobs:
            key = job.equivalence_key
            found = None if key is None or job.attempt is not None else fresh.get(key)
            if found is not None:
                yield _new(_Expected, (job, found.of, found.gittins, found.drains))
                continue
            kind = (classes.get(key) if key is not None else None) or self._class(job)
            index, residual = kind.expected(job.worked_by(now))
            found = _Expected(job, kind, index, residual * kind.width / kind.capacity)
            if key is not None and job.attempt is None:
                fresh[key] = found
            yield found

    def _horizons(self, expected: Iterable[_Expected]) -> dict[tuple[str, int], float]:
        """Return the horizon of each group of pools and priority.

        Of each lane only those jobs count that every pass reads. So the horizon, and with it the order, is the same for
        passes and for estimates, which read deeper.
        """
        drains = self._drained(expected)
        return {place: horizon(self.parameters.average_weight, drain) for place, drain in drains.items()}

    @staticmethod
    def _drained(expected: Iterable[_Expected], *, deep: bool = False) -> dict[tuple[str, int], float]:
        """Return the seconds that each group of pools needs for the jobs of each priority and of higher ones.

        Args:
            expected: the jobs, those of each lane in its order.
            deep: whether more jobs of a lane count than every pass reads.
        """
        drains: dict[tuple[str, int], float] = {}
        unread: dict[str, int] = {}
        for job, kind, _, drain in expected:
            place, counts = (kind.group, job.priority), drain
            if not job.units:
                left = unread.get(job.lane)
                unread[job.lane] = left = (first_of(job.lane) if left is None else left) - 1
                counts = drain if deep or left >= 0 else 0.0
            drains[place] = drains.get(place, 0.0) + counts
        total: dict[str, float] = {}
        for group, priority in sorted(drains, key=lambda place: -place[1]):
            total[group] = drains[group, priority] = total.get(group, 0.0) + drains[group, priority]
        return drains

    def _budget_spent(self) -> bool:
        """Return True if restarts have cost more than they may, those of attempts that are stopping included."""
        history = self.snapshot.records.history
        worked, restarts = history.restarts.worked, history.restarts.restarts
        for job in self.snapshot.active:
            attempt = job.attempt
            if attempt is not None and attempt.started_at is not None:
                gpus = self._class(job).width
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

    def _class(self, job: Job) -> _Class:
        """Return the job's class, computed once for jobs with equal equivalence_key."""
        key = job.equivalence_key or job.name
        found = self._classes.get(key)
        if found is None:
            learned, competitions = self._of_all()
            group, width = competitions.group(job), competitions.width(job)
            capacity = competitions.capacity(group)
            found = self._classes[key] = _Class(group, capacity, width, learned.lifetimes(job), scale_of(job))
        return found

    def _capacity(self, group: str) -> int:
        return self._of_all()[1].capacity(group)

    def _of_all(self) -> tuple[LearnedLifetimes, Competitions]:
        """Return what all jobs of the snapshot tell together, computed once."""
        if self._known is None:
            snapshot = self.snapshot
            jobs = (*snapshot.active, *snapshot.waiting)
            competitions = Competitions.of(snapshot.pools, snapshot.external, jobs)
            self._known = (LearnedLifetimes.of(snapshot, self.now), competitions)
        return self._known


class GittinsOrder(OrderStrategy):
    """Gittins index with boost; equals preempt each other by place, so blocked jobs need no reservation."""

    name: ClassVar[str] = "gittins"
    preempts_equals: ClassVar[bool] = True
    reserves: ClassVar[bool] = False

    def ranking(self, snapshot: Snapshot, now: datetime) -> Ranking:
        """Return the ranking by boosted time of arrival."""
        return GittinsRanking(snapshot, now)
