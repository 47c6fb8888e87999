"""Attempts: single runs of a job on SageMaker, the units that they hold, their state and their outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.elastic.sizes import Member, Resizing
from trainmaster.domain.jobs.observation import WAITED_TOO_LONG
from trainmaster.domain.times import VISIBLE_AFTER

FULL_RESTART = "trainmaster: full restart"
"""Prefix of the reason for a new attempt: `FULL_RESTART_PREFIX` in `worker/container/restart_budget.py`."""

NOT_PERMITTED = "not permitted: "
"""Prefix of the reason of an attempt that was requeued because a permission is missing."""

NAME_TAKEN = "its name is taken: "
"""Prefix of the reason of an attempt whose name a training job has that the queue did not create."""

OUR_FAULT = "an unexpected error prevents its start: "
"""Prefix of the reason of an attempt that was requeued because of an unexpected error of the queue."""

NO_CAPACITY_IN_TIME = "no EC2 capacity within MaxPendingTimeInSeconds"
"""Reason of an attempt that was requeued because it got no instances in the time that its request allows."""


MAX_RELEASES = 16
"""Sizes of an attempt of another kind's job that are stored after its first one."""


@dataclass(frozen=True, slots=True)
class Release:
    """Time from which an attempt of another kind's job held so many units: its work went on, or it got more."""

    at: datetime
    left: int


class Outcome(StrEnum):
    """Outcome of an attempt.

    returned: SageMaker had no capacity, and the job waits again. reclaimed: its training plan ended, and the job waits
    again. resized: the next attempt continues with another number of instances.
    """

    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    PREEMPTED = "preempted"
    RETURNED = "returned"
    RECLAIMED = "reclaimed"
    RESIZED = "resized"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A run of a job on SageMaker.

    Attributes:
        number: 1 for the first.
        training_job_name: its SageMaker name, a function of job and number (see `names.attempt_name`); also the name of
            its rendezvous.
        units: held units by pool; with `InstancePreferences` the worst case until SageMaker has chosen.
        choices: the instance types left to SageMaker to choose from, in order; empty for other jobs.
        created_at: when the start was decided.
        launched: whether its training job is known to be created.
        launched_at: when SageMaker had answered that; None if only a report showed it.
        started_at: when SageMaker reported its instances as working.
        stop_asked_at: when the stop was decided, or first reported; its capacity is free only once it has stopped.
        called_at: when CreateTrainingJob was last called for it, if that was over a minute after `created_at`.
        stop_sent: whether SageMaker accepted a StopTrainingJob call of the queue, or was stopping it already.
        refused: why a repeated CreateTrainingJob call was refused, while an earlier one may have been accepted.
        stop_called_at: when the queue last called StopTrainingJob for it.
        stopped_outside: whether SageMaker was stopping it before it accepted a stop of the queue.
        end_reported_at: when an event reported its end, or its stop, that Describe did not confirm yet.
        freed_for: the job for which it is preempted.
        saved_at: when its newest checkpoint was written, as last observed; of another kind's job when parts
            were last told to be done.
        saves_every: the shortest known time between two of its checkpoints; None before two are known.
        interruptions: how often SageMaker reclaimed its spot instances and continued later.
        reclaimed_at: when SageMaker takes its instances back, as its training plan ends; None for other pools.
        warm_until: when the warm pool that it left, or its lost base, ends; None if there is none.
        instance_type: chosen by the queue, or by SageMaker among `choices`; "" if the request names it.
        members: training jobs besides its own that hold some of its units, oldest first (`elastic.Hook.MEMBERS`).
        joined: the number of members so far, which numbers their names.
        resizing: the resize that is under way.
        sized_at: when it began to hold its present units; None if it began with them.
        served: unit-seconds of work before `sized_at`.
        resizes: the number of its completed resizes.
        faulty_since: when it lost a member that has not been replaced; None if none is missing.
        wanted: its size before that loss, or before its base ended.
        base_ended_at: when its base ended while members still held units.
        successor: the member that is its base since SageMaker lost the one before; "" while its own training job is.
        base_lost: why SageMaker lost its last base; None if it never did.
        given_up: whether it is stopped because its lost base was not replaced, or because it got no spot instances in
            time; the job waits again then.
        given: the most units that another kind's job had; as parts of its work finish it holds fewer. 0 of others.
        releases: times from which it held another number, and that number; at most `MAX_RELEASES`, evenly spread over
            `given`, and one for each time that it got more.
        restarts: failure restarts that its nodes had counted when it ended; 0 if no budget needs them.
        turned_down: pools that had no capacity for earlier starts with the same number, and when.
        unknown: what a newer release stored with it, in the store's own form; kept as it is.
    """

    number: int
    training_job_name: str
    units: Units
    created_at: datetime
    choices: tuple[str, ...] = ()
    outcome: Outcome = Outcome.ACTIVE
    launched: bool = False
    launched_at: datetime | None = None
    started_at: datetime | None = None
    stop_asked_at: datetime | None = None
    called_at: datetime | None = None
    stop_sent: bool = False
    refused: str = ""
    stop_called_at: datetime | None = None
    stopped_outside: bool = False
    end_reported_at: datetime | None = None
    freed_for: str | None = None
    saved_at: datetime | None = None
    saves_every: timedelta | None = None
    interruptions: int = 0
    reclaimed_at: datetime | None = None
    warm_until: datetime | None = None
    ended_at: datetime | None = None
    reason: str | None = None
    instance_type: str = ""
    members: tuple[Member, ...] = ()
    joined: int = 0
    resizing: Resizing | None = None
    sized_at: datetime | None = None
    served: float = 0.0
    resizes: int = 0
    faulty_since: datetime | None = None
    wanted: int = 0
    base_ended_at: datetime | None = None
    successor: str = ""
    base_lost: str | None = None
    given_up: bool = False
    restarts: int = 0
    given: int = 0
    releases: tuple[Release, ...] = ()
    turned_down: Mapping[str, datetime] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The instances that it holds."""
        return sum(self.units.values())

    @property
    def own_size(self) -> int:
        """The instances that it works with; while it stops in order to grow, it holds those of the next attempt too."""
        under_way = self.resizing
        if under_way is None or self.stop_asked_at is None or self.sized_at != under_way.asked_at:
            return self.size
        return under_way.after if under_way.given_up else under_way.before

    @property
    def expected_size(self) -> int:
        """The instances that it has once its resize is done; while one is given up, those that it holds."""
        under_way = self.resizing
        return self.size if under_way is None or under_way.given_up else under_way.after

    @property
    def start_id(self) -> str:
        """Value of its tag `trainmaster:start`: distinguishes starts that use the same number."""
        return self.created_at.isoformat(timespec="milliseconds")

    def may_appear(self, now: datetime) -> bool:
        """Return whether its training job may exist although SageMaker does not describe it."""
        return now < (self.called_at or self.created_at) + VISIBLE_AFTER

    @property
    def held_since(self) -> datetime:
        """Time since which it has held its present units."""
        return self.sized_at or self.created_at

    @property
    def ran(self) -> float:
        """Seconds of work until its end; 0 if it has not ended."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def found_no_capacity(self) -> bool:
        """True if it ended because SageMaker, or the account's limits, had no capacity for it."""
        reason = self.reason or ""
        if self.outcome is Outcome.RETURNED:
            return not reason.startswith((NAME_TAKEN, NOT_PERMITTED, OUR_FAULT))
        return self.outcome is Outcome.FAILED and self.started_at is None and reason.endswith(WAITED_TOO_LONG)

    @property
    def unstartable(self) -> bool:
        """True if AWS, or an error of the queue's own, refused its start for what the job is, whatever is free."""
        return self.outcome is Outcome.RETURNED and (self.reason or "").startswith((NOT_PERMITTED, OUR_FAULT))

    @property
    def shortages(self) -> Mapping[str, datetime]:
        """Pools that had no capacity for it, or for earlier starts with its number, and when.

        If it needed several pools together, SageMaker does not report which of them it was.
        """
        if not self.found_no_capacity or self.ended_at is None or (len(self.units) > 1 and not self.choices):
            return self.turned_down
        return {**self.turned_down, **dict.fromkeys(self.units, self.ended_at)}

    @property
    def requested_full_restart(self) -> bool:
        """True if it failed because its nodes requested a new attempt."""
        return self.outcome is Outcome.FAILED and requests_full_restart(self.reason)

    @property
    def served_in_all(self) -> float:
        """Unit-seconds of work until its end; only the completed part of it if it has not ended."""
        return self.served if self.ended_at is None else self.served_by(self.ended_at)

    def served_by(self, at: datetime) -> float:
        """Return the unit-seconds of work until a time."""
        if self.started_at is None:
            return self.served
        since = max(self.started_at, self.held_since)
        return self.served + self.size * max((at - since).total_seconds(), 0.0)

    def holding(self, size: int, now: datetime) -> Attempt:
        """Return the attempt holding this many instances of its one pool from now on."""
        return replace(self, units={next(iter(self.units)): size}, served=self.served_by(now), sized_at=now)

    def releasing(self, units: Units, now: datetime) -> Attempt:
        """Return the attempt of another kind's job with these units, as parts of its work are done."""
        left = sum(units.values())
        before = self.releases[-1].left if self.releases else self.given
        noted = self.given > 0 and _step(left, self.given) < _step(before, self.given)
        releases = (*self.releases, Release(now, left)) if noted else self.releases
        return replace(self, units=units, releases=releases)

    def widened(self, units: Units, now: datetime) -> Attempt:
        """Return the attempt of another kind's job with more units than it held."""
        size, releases = sum(units.values()), self.releases
        if size > self.given:
            releases = (Release(self.created_at, self.given), *releases)
        return replace(self, units=units, given=max(size, self.given), releases=(*releases, Release(now, size)))

    def at_rest(self, now: datetime) -> Attempt:
        """Return the attempt without held units, with the size that it worked with."""
        ran, last = self.own_size, self
        if self.base_ended_at is not None:
            last = self.holding(self.wanted, now)
        elif ran != self.size:
            last = replace(self, units={next(iter(self.units)): ran})
        return replace(last, resizing=None, members=(), faulty_since=None, wanted=0, warm_until=None)

    @property
    def base_name(self) -> str:
        """The training job whose end decides its own: its own one, or the member that took its place."""
        return self.successor or self.training_job_name

    @property
    def base_size(self) -> int:
        """The instances of its base; without members, all that it holds."""
        return self.size - len(self.members)

    @property
    def training_job_names(self) -> tuple[str, ...]:
        """The names of its base and of its members."""
        return (self.base_name, *(member.training_job_name for member in self.members))

    def is_known(self, training_job_name: str) -> bool:
        """Return whether one of its training jobs is known to be created."""
        if training_job_name == self.base_name:
            return self.launched
        return any(each.launched for each in self.members if each.training_job_name == training_job_name)


def _step(left: int, given: int) -> int:
    """Return in which of `MAX_RELEASES` equal steps a size lies; 0 for none."""
    return -(-left * MAX_RELEASES // given)


def requests_full_restart(reason: str | None) -> bool:
    """Return whether a failure's reason requests a full restart; SageMaker prefixes it with the failure's class."""
    return (reason or "").partition(":")[2].strip().startswith(FULL_RESTART)
