"""Jobs, and the one table of legal transitions of their states.

Only the functions of `lifecycle` change a job's state; they check each change against `TRANSITIONS`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from trainmaster.domain.capacity.units import Demand, Units
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.elastic.scaling import NO_SPEEDS, Speeds
from trainmaster.domain.elastic.sizes import Elastic, Hook
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.attempt_totals import NO_TOTALS, AttemptTotals
from trainmaster.domain.jobs.lane import LaneParts, lane_name
from trainmaster.domain.jobs.run_time_classes import classes_of
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.policy.settings import FailureClass, PreemptionOverrides


class JobState(StrEnum):
    """State of a job. Waiting: pending, preempted. Holding capacity: starting to resizing."""

    PENDING = "pending"
    PREEMPTED = "preempted"
    HELD = "held"
    STARTING = "starting"
    RUNNING = "running"
    PREEMPTING = "preempting"
    RESIZING = "resizing"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    CANCELLED = "cancelled"


TRAINING = "training"
"""The kind of jobs without another `work`."""
WAITING = frozenset({JobState.PENDING, JobState.PREEMPTED})
ACTIVE = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PREEMPTING, JobState.RESIZING})
ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.STOPPED, JobState.CANCELLED})

_S = JobState
_FINISHES = frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED})
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    _S.PENDING: frozenset({_S.STARTING, _S.HELD, _S.CANCELLED}),
    _S.PREEMPTED: frozenset({_S.STARTING, _S.HELD, _S.CANCELLED}),
    # A job that runs after others may fail with them.
    _S.HELD: frozenset({_S.PENDING, _S.PREEMPTED, _S.CANCELLED, _S.FAILED}),
    # A start for which SageMaker has no capacity returns to its waiting state.
    _S.STARTING: _FINISHES | {_S.RUNNING, _S.PREEMPTING, _S.PENDING, _S.PREEMPTED},
    # SageMaker may lose the capacity of a job that had seemed to run (CapacityError while restarting).
    _S.RUNNING: _FINISHES | {_S.PREEMPTING, _S.RESIZING, _S.PENDING, _S.PREEMPTED},
    # A job may finish just as it is preempted.
    _S.PREEMPTING: _FINISHES | {_S.PREEMPTED},
    # A job may finish, be preempted or lose its capacity during a resize.
    _S.RESIZING: _FINISHES | {_S.RUNNING, _S.PREEMPTING, _S.PENDING, _S.PREEMPTED},
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.STOPPED: frozenset(),
    _S.CANCELLED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Reservation:
    """Capacity that was freed for a waiting job and is reserved until it starts or the reservation expires."""

    units: Units
    until: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a job's history: from one state to another, when and why.

    Attributes:
        size: instances that an elastic job works with from a start or a resize on; None for every other line.
    """

    at: datetime
    before: JobState | None
    after: JobState
    reason: str
    attempt: int | None = None
    size: int | None = None


class ParentRule(StrEnum):
    """Effect on a job that runs after others if one of those does not complete."""

    CANCEL = "cancel"
    FAIL = "fail"
    RUN = "run"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A submitted job and its state. Times are UTC.

    Attributes:
        entry_time: when it entered the queue; a preempted job keeps it.
        digest: SHA-256 of the canonical request, to recognize a repeated submission.
        max_runtime: `StoppingCondition.MaxRuntimeInSeconds`, SageMaker's default of a day if it is absent.
        max_pending: `StoppingCondition.MaxPendingTimeInSeconds`, if given.
        attempt: the newest attempt; None before the first start.
        past: the attempts before it that are stored one by one.
        attempt_totals: totals of the attempts before those.
        retry_at: the job is not started before this time (back-off).
        capacity_failures: consecutive starts or growths for which SageMaker had no capacity; sets the back-off.
        stop_requested: whether its user stopped it, so that it is not resumed.
        keep_alive: whether the request keeps a warm pool after the job.
        warm_pool_key: digest of what SageMaker compares before a job may use a warm pool; "" if it can use none.
        history: newest changes last; the store may keep older ones apart.
        container_image: training image or algorithm; jobs of one image are expected to run alike.
        checkpointed: whether it writes checkpoints (`CheckpointConfig`), so that preemption keeps its work.
        preemption_overrides: its own preemption rules, where they differ from the queue's.
        not_before: the earliest time at which it enters the queue.
        deadline: the time by which its user needs it done.
        after: jobs that must end first and have not ended yet.
        if_parent_fails: the effect if one of those does not complete.
        group: its group, for `max_concurrent`.
        max_concurrent: maximum number of running jobs of its group.
        retries: maximum failures by class that differ from the queue's.
        failures: failures by class so far.
        held_by: the person who holds it; None if only `not_before` or `after` do, or nothing does.
        elastic: within which bounds it may be resized; its demand is that of its least size. None for other jobs.
            The bounds may change, and a running job's size is then outside them until it is resized.
        speeds: how fast an elastic job has reported to be, by its size.
        infeasible: whether events have told that no pool can hold it.
        callback: the recipient of its end if an execution of an orchestrator waits for it; "" for none.
        notify: words of the changes that the deployment's topic is notified of (`domain.events`).
        work: what a job of another kind has to do, and its progress. None for training jobs.
        unknown: what a newer release stored with it, in the store's own form; kept as it is.
    """

    name: str
    entry_time: datetime
    priority: int
    demand: Demand
    digest: str
    state: JobState = JobState.PENDING
    version: int = 1
    share: str = "default"
    preemptible: bool = True
    max_runtime: timedelta = timedelta(days=1)
    max_pending: timedelta | None = None
    keep_alive: bool = False
    warm_pool_key: str = ""
    submitted_by: str | None = None
    attempt: Attempt | None = None
    past: tuple[Attempt, ...] = ()
    attempt_totals: AttemptTotals = NO_TOTALS
    reservation: Reservation | None = None
    retry_at: datetime | None = None
    capacity_failures: int = 0
    stop_requested: bool = False
    failure: str | None = None
    ended_at: datetime | None = None
    history: tuple[Change, ...] = ()
    container_image: str = ""
    checkpointed: bool = False
    preemption_overrides: PreemptionOverrides = field(default_factory=PreemptionOverrides)
    not_before: datetime | None = None
    deadline: datetime | None = None
    after: tuple[str, ...] = ()
    if_parent_fails: ParentRule = ParentRule.CANCEL
    group: str | None = None
    max_concurrent: int | None = None
    retries: Mapping[FailureClass, int] = field(default_factory=dict)
    failures: Mapping[FailureClass, int] = field(default_factory=dict)
    held_by: str | None = None
    elastic: Elastic | None = None
    speeds: Speeds = NO_SPEEDS
    infeasible: bool = False
    callback: str = ""
    notify: tuple[str, ...] = ()
    work: Work | None = None
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Legal sizes of an elastic job, ascending; empty for other jobs.

        The base of an attempt with members keeps its instances, so the attempt cannot have fewer.
        """
        if self.elastic is None:
            return ()
        by_members = self.elastic.hook is Hook.MEMBERS and self.units and self.attempt is not None
        least = self.attempt.base_size if by_members and self.attempt is not None else 0
        return tuple(size for size in self.elastic.sizes if size >= least)

    @property
    def kind(self) -> str:
        """The name of its kind."""
        return TRAINING if self.work is None else self.work.kind

    @cached_property
    def lane(self) -> str:
        """The lane that the job waits in: its share, the pools that it can run in, and its class there.

        Jobs of another size, of another group, that have run already, or that are due on another day, have lanes of
        their own: a pass reads the heads of lanes, and what blocks one kind of job must not hide the others behind it.
        The size of other kinds' jobs is what their work needs, since their demands are cut to what services take.
        """
        work = self.work
        asks, served = (self.demand.size, self.served) if work is None else (work.needed, 0.0)
        size, due = asks.bit_length() - 1, f"{self.deadline:%Y-%m-%d}" if self.deadline is not None else ""
        return lane_name(LaneParts(self.share, self.demand.lane, size, _octaves(served), due, self.group or ""))

    def changed(self, **changes: Any) -> Job:
        """Return the job with other values of these fields, like `dataclasses.replace` in a fraction of its time.

        Raises `TypeError` for a name that is no field.
        """
        if not _FIELDS.issuperset(changes):
            raise TypeError(f"a job has no {', '.join(sorted(changes.keys() - _FIELDS))}")
        twin, known = object.__new__(Job), self.__dict__
        # Cached properties stay behind.
        twin.__dict__.update({name: known[name] for name in _FIELDS})
        twin.__dict__.update(changes)
        return twin

    @cached_property
    def plain(self) -> bool:
        """True of nearly all jobs of a deep queue: nothing about it may change while it waits, apart from its age.

        It names its instance types, has no deadline, group, reservation or back-off, and is a training job.
        """
        alone = self.group is None and self.reservation is None and self.retry_at is None
        return alone and self.demand.resources is None and self.work is None and self.deadline is None

    @cached_property
    def equivalence_key(self) -> str | None:
        """Equal for jobs that a pass treats alike apart from their past; None for a job that is unlike all others."""
        lacked = self.attempt is not None and self.attempt.found_no_capacity
        if lacked or self.reservation is not None or self.retry_at is not None or self.group is not None:
            return None
        who = (self.share, self.submitted_by, self.preemptible, self.preemption_overrides)
        # AWS may refuse one role, network or warm pool and not another (`refusals.kind_of`).
        kind = (self.container_image, self.warm_pool_key, self.keep_alive, self.most_instances)
        # One string, once: planners compare it for every job of a deep queue.
        return sys.intern(repr((self.demand.equivalence_key, who, kind, self.checkpointed, self.max_runtime)))

    @cached_property
    def most_instances(self) -> int | None:
        """The most instances of an elastic job; None for a job of one size."""
        most = None if self.elastic is None else self.elastic.max_instances
        return most if most is None or most > self.demand.size else None

    @cached_property
    def run_time_classes(self) -> tuple[str, ...]:
        """The classes of jobs with similar run times, narrowest first; other kinds of jobs have none in common."""
        if self.work is not None:
            return self.work.run_time_classes
        return classes_of(self.share, self.container_image, self.demand.types, self.demand.size, self.most_instances)

    @property
    def speeds_here(self) -> Speeds:
        """Its reported speeds, unless it holds instances of another pool than those that they were measured on."""
        return self.speeds if not self.units or self.speeds.pool in self.units else NO_SPEEDS

    @cached_property
    def served(self) -> float:
        """Unit-seconds of work of its ended attempts."""
        ended = (attempt.served_in_all for attempt in self.attempts if attempt.ended_at is not None)
        return sum(ended, self.attempt_totals.served)

    @cached_property
    def worked(self) -> float:
        """Seconds of work of its ended attempts; for an elastic job converted to its smallest size.

        Work is assumed to scale with the instances, so that run times of a class are comparable across sizes.
        """
        if self.elastic is not None:
            return self.served / self.elastic.min_instances
        return self.at_work

    def worked_by(self, now: datetime) -> float:
        """Return the same including the running attempt until now."""
        attempt = self.attempt
        if attempt is None or self.state not in ACTIVE or attempt.started_at is None:
            return self.worked
        if self.elastic is not None:
            return self.worked + attempt.served_by(now) / self.elastic.min_instances
        return self.worked + max((now - attempt.started_at).total_seconds(), 0.0)

    @cached_property
    def at_work(self) -> float:
        """Seconds of work of its ended attempts, at any size."""
        return sum((attempt.ran for attempt in self.attempts), self.attempt_totals.at_work)

    @cached_property
    def preemptions(self) -> int:
        """The number of its preemptions."""
        stepped_aside = Outcome.PREEMPTED
        before = self.attempt_totals.ended(stepped_aside)
        return sum((attempt.outcome is stepped_aside for attempt in self.attempts), before)

    @cached_property
    def restarts(self) -> int:
        """Failure restarts of its earlier attempts' nodes, counted only if a budget limits them."""
        return sum((attempt.restarts for attempt in self.past), self.attempt_totals.restarts)

    @cached_property
    def order(self) -> tuple[int, datetime, str]:
        """Sort key in the queue: priority descending, entry time ascending, name."""
        return (-self.priority, self.entry_time, self.name)

    @cached_property
    def units(self) -> Units:
        """The units that the job holds by pool; empty unless it is active."""
        return self.attempt.units if self.attempt is not None and self.state in ACTIVE else {}

    @cached_property
    def stop_asked(self) -> bool:
        """True if its training job is to stop, for good or to continue with another size."""
        return self.state in ACTIVE and self.attempt is not None and self.attempt.stop_asked_at is not None

    @cached_property
    def stopping(self) -> bool:
        """True if all its units are about to become free, which is not so if it stops to continue with another size."""
        attempt = self.attempt if self.state in ACTIVE else None
        if attempt is None or attempt.base_ended_at is not None:
            return attempt is not None
        return attempt.stop_asked_at is not None and attempt.resizing is None

    @cached_property
    def freeing(self) -> Units:
        """The units that are about to become free."""
        attempt = self.attempt
        if self.stopping or attempt is None or attempt.resizing is None:
            return self.units if self.stopping else {}
        left = {pool: count - attempt.resizing.after for pool, count in self.units.items()}
        return {pool: count for pool, count in left.items() if count > 0}

    @property
    def staying(self) -> Units:
        """The units that are not about to become free."""
        if self.attempt is None or self.attempt.resizing is None:
            return {} if self.stopping else self.units
        freeing = self.freeing
        return {pool: count - freeing.get(pool, 0) for pool, count in self.units.items()}

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts that are stored one by one, oldest first."""
        return self.past if self.attempt is None else (*self.past, self.attempt)


_FIELDS = frozenset(each.name for each in fields(Job))


def _octaves(served: float) -> int:
    """Return the class of received service: each class covers eight times the unit-seconds of the one before."""
    return (int(served).bit_length() + 2) // 3


def backing_off(job: Job, now: datetime) -> bool:
    """Return True if the job waits for its next attempt after a start that failed or found no capacity."""
    return job.retry_at is not None and job.retry_at > now


def awaits_capacity(job: Job, now: datetime) -> bool:
    """Return True if it does so because SageMaker, or the account's quota, had no capacity for it."""
    return backing_off(job, now) and job.attempt is not None and job.attempt.found_no_capacity


def held_for(job: Job, now: datetime) -> Units | None:
    """Return the units reserved for a waiting job; None if there are none, or while it backs off."""
    if job.reservation is None or job.reservation.until <= now or backing_off(job, now):
        return None
    return job.reservation.units
