"""The jobs of a snapshot by those that they compete with, and what is expected of each by its class and age."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from trainmaster.domain.capacity.read_limits import first_of
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.gittins.competition import Competitions
from trainmaster.planner.orders.gittins.learned import LearnedLifetimes
from trainmaster.planner.orders.gittins.lifetimes import Lifetimes, unknown
from trainmaster.planner.survival import scale_of

Expected = tuple[float, float]
"""The Gittins index and the mean residual life of a job, in seconds."""


@dataclass(slots=True)
class JobClass:
    """The common properties of all jobs of one class.

    Attributes:
        group: the pools in which they compete.
        capacity: accelerators of these pools.
        width: accelerators of the job.
        expected: returns what is expected of a job that has worked so many seconds.
        rivals: the jobs that compete in these pools, by priority.
    """

    group: str
    capacity: int
    width: int
    expected: Callable[[float], Expected]
    rivals: dict[int, Rivals]
    _never_run: Expected | None = None

    def expected_of_new(self) -> Expected:
        """Return what is expected of a job that has never run, computed once."""
        if self._never_run is None:
            self._never_run = self.expected(0.0)
        return self._never_run

    def rivals_at(self, priority: int) -> Rivals:
        """Return the jobs that jobs of this class and priority compete with."""
        found = self.rivals.get(priority)
        if found is None:
            found = self.rivals[priority] = Rivals(self.group, self.capacity, priority)
        return found


def _expected_of(lifetimes: Lifetimes | None, scale: float) -> Callable[[float], Expected]:
    """Return what is expected of the jobs of a class that take `scale` times as long as its lifetimes tell."""
    if lifetimes is None:
        return lambda age: (unknown(age), unknown(age))
    if scale == 1:
        return lifetimes.expected

    def scaled(age: float) -> Expected:
        index, residual = lifetimes.expected(age / scale)
        return index * scale, residual * scale

    return scaled


Rival = tuple[Job, int, float]
"""A job, its accelerators, and its Gittins index in seconds. A plain tuple, since each pass needs one for every job.

It has no reference to the class, which has its rivals: a cycle would keep the plan until the garbage collector runs.
"""


@dataclass(slots=True)
class Rivals:
    """The jobs of one priority that compete in one group of pools.

    Attributes:
        group: the group of pools.
        capacity: accelerators of these pools.
        priority: of all of them.
        active: those that hold units.
        waiting: the others.
        whole_drain: seconds that the pools need for them and the jobs of higher priority, unread ones included. It
            follows from what every pass reads of each lane, so that it is the same for passes and for estimates, which
            read deeper.
        drain: the same of all jobs that were read.
    """

    group: str
    capacity: int
    priority: int
    active: list[Rival] = field(default_factory=list)
    waiting: list[Rival] = field(default_factory=list)
    whole_drain: float = 0.0
    drain: float = 0.0


MAX_LONGER = 10.0
"""Maximum ratio of the jobs that are expected in a lane to those that were read: these may have come at once, as those
of a sweep do."""


@dataclass(slots=True)
class LaneHead:
    """The first jobs of a lane, which every pass reads, and from which follows what the others need.

    Jobs of a lane are in order of arrival inside each priority. So those that were not read have the last priority or a
    lower one, and are expected to have arrived at the rate of those that were read.

    Attributes:
        left: how many more of its jobs every pass reads; negative if the lane has more.
        since: when the first job of the last priority arrived.
        rivals: the jobs that those of the last priority compete with.
        until: when the last job arrived.
        drain: seconds that the pools need for those of the last priority.
    """

    left: int
    since: datetime
    rivals: Rivals
    until: datetime = field(init=False)
    drain: float = 0.0

    def __post_init__(self) -> None:
        self.until = self.since

    def add(self, arrived: datetime, drain: float, rivals: Rivals) -> None:
        """Add the next job of the lane, for which the pools need so many seconds."""
        self.left -= 1
        if self.left < 0:
            return
        if rivals is not self.rivals:
            self.rivals.whole_drain += self.drain
            self.rivals, self.since, self.drain = rivals, arrived, 0.0
        self.until, self.drain = arrived, self.drain + drain

    def add_whole_drain(self, now: datetime, *, cut: bool) -> None:
        """Add what the pools need for the jobs of the last priority, those that were not read included."""
        self.rivals.whole_drain += self.drain * (self._times_as_long(now) if cut or self.left < 0 else 1.0)

    def _times_as_long(self, now: datetime) -> float:
        """Return how many times as many jobs of the last priority as were read are expected in the lane."""
        took, until_now = (self.until - self.since).total_seconds(), (now - self.since).total_seconds()
        return max(1.0, until_now / took if until_now < MAX_LONGER * took else MAX_LONGER)


@dataclass(slots=True)
class AllRivals:
    """The jobs of a snapshot by priority and group of pools; classes are computed when they are first asked for.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _learned: LearnedLifetimes
    _competitions: Competitions
    _classes: dict[str, JobClass] = field(default_factory=dict)
    _by_group: dict[str, dict[int, Rivals]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> AllRivals:
        """Return the jobs of a snapshot, sorted by what they compete for."""
        competitions = Competitions.of(snapshot.pools, snapshot.external, snapshot.active, snapshot.waiting)
        found = cls(snapshot, now, LearnedLifetimes.of(snapshot, now), competitions)
        found._add_active()
        found._add_waiting()
        found._add_drains()
        return found

    def by_priority(self) -> list[Rivals]:
        """Return all of them, those of the highest priority first."""
        found = [rivals for group in self._by_group.values() for rivals in group.values()]
        return sorted(found, key=attrgetter("priority"), reverse=True)

    def drain(self, job: Job) -> float:
        """Return the seconds that the pools need for all jobs of its priority and of higher ones."""
        return self.class_of(job).rivals_at(job.priority).drain

    def capacity(self, group: str) -> int:
        """Return the accelerators of a group of pools, at least 1."""
        return self._competitions.capacity(group)

    def class_of(self, job: Job) -> JobClass:
        """Return the job's class, computed once for jobs with equal `equivalence_key`."""
        key = job.equivalence_key or job.name
        found = self._classes.get(key)
        if found is None:
            group, width = self._competitions.group(job), self._competitions.width(job)
            expected = _expected_of(self._learned.lifetimes(job), scale_of(job))
            rivals = self._by_group.setdefault(group, {})
            found = self._classes[key] = JobClass(group, self.capacity(group), width, expected, rivals)
        return found

    def _add_active(self) -> None:
        for job in self.snapshot.active:
            kind = self.class_of(job)
            index, residual = kind.expected(job.worked_by(self.now))
            rivals, drain = kind.rivals_at(job.priority), residual * kind.width / kind.capacity
            rivals.active.append((job, kind.width, index))
            rivals.drain += drain
            rivals.whole_drain += drain

    def _add_waiting(self) -> None:
        heads: dict[str, LaneHead] = {}
        for job in self.snapshot.waiting:
            kind = self.class_of(job)
            index, residual = kind.expected_of_new() if job.attempt is None else kind.expected(job.worked)
            rivals, drain = kind.rivals_at(job.priority), residual * kind.width / kind.capacity
            rivals.waiting.append((job, kind.width, index))
            rivals.drain += drain
            head = heads.get(job.lane)
            if head is None:
                head = heads[job.lane] = LaneHead(first_of(job.lane), job.entry_time, rivals)
            head.add(job.entry_time, drain, rivals)
        for lane, head in heads.items():
            head.add_whole_drain(self.now, cut=lane in self.snapshot.cut_lanes)

    def _add_drains(self) -> None:
        """Add to the drain of each the drains of those of higher priority."""
        before: dict[str, Rivals] = {}
        for rivals in self.by_priority():
            if (higher := before.get(rivals.group)) is not None:
                rivals.drain += higher.drain
                rivals.whole_drain += higher.whole_drain
            before[rivals.group] = rivals
