"""Jobs, and the one table of legal transitions of their states.

Nothing changes a job's state except the functions of `lifecycle`, which ask `TRANSITIONS`. It must not decide
anything: deciding is `planner/`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from trainmaster.domain.capacity.units import Demand, Units
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.attempt_totals import NONE_EARLIER, AttemptTotals
from trainmaster.domain.jobs.lane import LaneParts, lane_name
from trainmaster.domain.jobs.work import Work
from trainmaster.domain.policy.settings import FailureClass, PreemptionOverrides

PRIORITY_LIMIT = 1_000_000
"""Priorities are integers within plus and minus this."""


class JobState(StrEnum):
    """Where a job is. Waiting: pending, preempted. Holding capacity: starting to resizing."""

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
    # A start that met no capacity goes back to where it came from.
    _S.STARTING: _FINISHES | {_S.RUNNING, _S.PREEMPTING, _S.PENDING, _S.PREEMPTED},
    # SageMaker may lose the capacity of a job that had seemed to run (CapacityError while restarting).
    _S.RUNNING: _FINISHES | {_S.PREEMPTING, _S.RESIZING, _S.PENDING, _S.PREEMPTED},
    # A job may finish in the moment in which it was asked to step aside.
    _S.PREEMPTING: _FINISHES | {_S.PREEMPTED},
    # A job may finish, step aside or lose its capacity while its size changes.
    _S.RESIZING: _FINISHES | {_S.RUNNING, _S.PREEMPTING, _S.PENDING, _S.PREEMPTED},
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.STOPPED: frozenset(),
    _S.CANCELLED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Reservation:
    """Capacity freed for a named waiting job and reserved for it until it starts or the hold expires."""

    units: Units
    until: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a job's history: from one state to another, when and why.

    Attributes:
        size: instances that the job has once a resize is done; None for every other line.
    """

    at: datetime
    before: JobState | None
    after: JobState
    reason: str
    attempt: int | None = None
    size: int | None = None


class ParentRule(StrEnum):
    """What becomes of a job that runs after others when one of those does not complete."""

    CANCEL = "cancel"
    FAIL = "fail"
    RUN = "run"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a user submitted, and where it stands. Times are UTC.

    Attributes:
        entry_time: when it entered the queue; a preempted job keeps it.
        digest: SHA-256 of the canonical request, which tells a repeated submission from a different one.
        max_runtime: `StoppingCondition.MaxRuntimeInSeconds`, SageMaker's default of a day where it is absent.
        max_pending: `StoppingCondition.MaxPendingTimeInSeconds`, where given.
        attempt: the newest attempt; None before the first start.
        past: the attempts before it, as far as they are kept one by one.
        earlier: sums over those before them.
        retry_at: the job is not tried again before this (back-off after missing capacity).
        capacity_failures: consecutive starts or growths for which SageMaker had no capacity; sets the back-off.
        stop_requested: its user wants it stopped, so that it must not be resumed.
        keep_alive: whether the request keeps a warm pool after the job.
        warm_pool_key: digest of what SageMaker compares before a job may use a warm pool; "" if it can use none.
        history: newest changes last; the store may keep older ones apart.
        container_image: training image or algorithm; jobs of one image are expected to run alike.
        checkpointed: whether it writes checkpoints (`CheckpointConfig`), so that preemption keeps its work.
        wishes: preemption rules of its own.
        not_before: it is not considered earlier.
        deadline: when its user needs it done.
        after: jobs that have to end first, those that have not yet.
        if_parent_fails: what becomes of it when one of those does not complete.
        group: the group that it belongs to.
        max_concurrent: most jobs of its group that run at once.
        retries: failures by class after which it fails, where they differ from the queue's.
        failures: failures by class so far.
        held_by: who holds it; None where only `not_before` or `after` do, or nothing does.
        elastic: within which bounds it may be resized; its demand is that of its least size. None for other jobs.
        work: what a job of another kind has to do, and its progress. None for training jobs.
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
    earlier: AttemptTotals = NONE_EARLIER
    reservation: Reservation | None = None
    retry_at: datetime | None = None
    capacity_failures: int = 0
    stop_requested: bool = False
    failure: str | None = None
    ended_at: datetime | None = None
    history: tuple[Change, ...] = ()
    container_image: str = ""
    checkpointed: bool = False
    wishes: PreemptionOverrides = field(default_factory=PreemptionOverrides)
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
    work: Work | None = None

    @cached_property
    def lane(self) -> str:
        """The lane that the job waits in: its share, the pools it can run in, and what kind of job it is there.

        Jobs of another size, of another group, that have run already, or that are due on another day, have lanes of
        their own: a pass reads the heads of lanes, and what blocks one kind of job must not hide the others behind it.
        The size of other kinds' jobs is what their work needs, since their demands are cut to what services take.
        """
        work = self.work
        asks, served = (self.demand.size, self.served) if work is None else (work.needed, 0.0)
        size, due = asks.bit_length() - 1, f"{self.deadline:%Y-%m-%d}" if self.deadline is not None else ""
        return lane_name(LaneParts(self.share, self.demand.lane, size, _octaves(served), due, self.group or ""))

    @cached_property
    def equivalence_key(self) -> str | None:
        """Equal for jobs that differ in nothing but their past that a pass looks at; None for a job like no other."""
        lacked = self.attempt is not None and self.attempt.lacked
        if lacked or self.reservation is not None or self.retry_at is not None or self.group is not None:
            return None
        who = (self.share, self.submitted_by, self.preemptible, self.wishes)
        # One string, once: planners compare it for every job of a deep queue.
        return sys.intern(
            repr((self.demand.equivalence_key, who, self.container_image, self.checkpointed, self.max_runtime))
        )

    @cached_property
    def served(self) -> float:
        """Unit-seconds that its ended attempts were at work."""
        ended = (attempt.served_in_all for attempt in self.attempts if attempt.ended_at is not None)
        return sum(ended, self.earlier.served)

    @cached_property
    def worked(self) -> float:
        """Seconds that its ended attempts were at work, in all; of an elastic job: as if at its least size.

        Twice the instances are taken to do twice the work, so that run times of a kind mean the same for all sizes.
        """
        if self.elastic is not None:
            return self.served / self.elastic.least
        return self.at_work

    def worked_by(self, now: datetime) -> float:
        """The same until now, with the attempt that is at work."""
        attempt = self.attempt
        if attempt is None or self.state not in ACTIVE or attempt.started_at is None:
            return self.worked
        if self.elastic is not None:
            return self.worked + attempt.served_by(now) / self.elastic.least
        return self.worked + max((now - attempt.started_at).total_seconds(), 0.0)

    @cached_property
    def at_work(self) -> float:
        """Seconds in which its ended attempts were at work, in all."""
        return sum((attempt.ran for attempt in self.attempts), self.earlier.at_work)

    @cached_property
    def preemptions(self) -> int:
        """How often it has stepped aside."""
        stepped_aside = Outcome.PREEMPTED
        return sum((each.outcome is stepped_aside for each in self.attempts), self.earlier.ended(stepped_aside))

    @cached_property
    def restarts(self) -> int:
        """How often the nodes of its earlier attempts were restarted for failures; counted where that has a bound."""
        return sum((attempt.restarts for attempt in self.past), self.earlier.restarts)

    @cached_property
    def order(self) -> tuple[int, datetime, str]:
        """Place in the queue: priority down, entry time up, name (article, "get pending jobs"; total order)."""
        return (-self.priority, self.entry_time, self.name)

    @cached_property
    def units(self) -> Units:
        """What the job holds of pools now; nothing unless it is active."""
        return self.attempt.units if self.attempt is not None and self.state in ACTIVE else {}

    @cached_property
    def stop_asked(self) -> bool:
        """Whether its training job is to stop, for good or to go on with another size."""
        return self.state in ACTIVE and self.attempt is not None and self.attempt.stop_asked_at is not None

    @cached_property
    def stopping(self) -> bool:
        """Whether all its capacity is on the way to be free; not where it is stopped to go on with another size."""
        attempt = self.attempt if self.state in ACTIVE else None
        if attempt is None or attempt.base_ended_at is not None:
            return attempt is not None
        return attempt.stop_asked_at is not None and attempt.resizing is None

    @cached_property
    def freeing(self) -> Units:
        """What of its units is on the way to be free."""
        attempt = self.attempt
        if self.stopping or attempt is None or attempt.resizing is None:
            return self.units if self.stopping else {}
        left = {pool: count - attempt.resizing.after for pool, count in self.units.items()}
        return {pool: count for pool, count in left.items() if count > 0}

    @property
    def staying(self) -> Units:
        """What of its units is not on the way to be free."""
        if self.attempt is None or self.attempt.resizing is None:
            return {} if self.stopping else self.units
        freeing = self.freeing
        return {pool: count - freeing.get(pool, 0) for pool, count in self.units.items()}

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts that are kept, oldest first."""
        return self.past if self.attempt is None else (*self.past, self.attempt)


def _octaves(served: float) -> int:
    """Which of the lanes for jobs that have run: each is for eight times the unit-seconds of the one before."""
    return (int(served).bit_length() + 2) // 3


def held_for(job: Job, now: datetime) -> Units | None:
    """What is still kept for a waiting job; None where nothing is, or while it backs off."""
    backing_off = job.retry_at is not None and job.retry_at > now
    return None if job.reservation is None or job.reservation.until <= now or backing_off else job.reservation.units
