"""Elastic jobs: legal sizes, members, restart budgets, and the resize that is under way.

A size is a number of instances. Terms and defaults are those of HyperPod elastic training ("Elastic training in
Amazon SageMaker HyperPod", developer guide; `HyperPodPyTorchJob`, `elasticPolicy` and `runPolicy`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.times import VISIBLE_AFTER


class Hook(StrEnum):
    """Means by which a job is resized.

    restart: it is stopped with time to checkpoint, and resumed as a new attempt with another `InstanceCount`.
    members: it consists of several training jobs in one rendezvous; they join, or are drained and leave.
    custom: a Lambda function, or an event's consumer, resizes it and answers.
    """

    RESTART = "restart"
    MEMBERS = "members"
    CUSTOM = "custom"


class Cause(StrEnum):
    """Cause of a resize.

    grow: capacity is idle. shrink: another job needs it. replace: a lost member is replaced. repair: the size after a
    loss is not legal. bounds: the size is outside the job's bounds, which were changed. slower: it runs faster with
    fewer instances.
    """

    GROW = "grow"
    SHRINK = "shrink"
    REPLACE = "replace"
    REPAIR = "repair"
    BOUNDS = "bounds"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartBudget:
    """Limits on restarts of a job's processes after failures; resizes do not count.

    Attributes:
        max_restarts: restarts within `period` after which the job fails, or restarts in full; None for no limit.
        period: the window in which restarts are counted (`evalPeriodSeconds`).
        max_total_restarts: maximum restarts over the job's lifetime (`jobMaxRetryCount`); None for no limit.
        restarts_before_full: after so many within the period the next is a full restart, a new attempt
            (`numRestartBeforeFullJobRestart`); None for never.
        max_full_restarts: maximum full restarts within the period; one more fails the job (`maxFullJobRestarts`).
    """

    max_restarts: int | None = None
    period: timedelta = timedelta(hours=1)
    max_total_restarts: int | None = None
    restarts_before_full: int | None = None
    max_full_restarts: int = 0


@dataclass(frozen=True, kw_only=True)
class Elastic:
    """Legal sizes of an elastic job, and how it is resized.

    Attributes:
        min_instances, max_instances: bounds of its size, instances, both legal.
        step: between legal sizes (`replicaIncrementStep`).
        values: sizes that its request lists, ascending, instead of a step (`replicaDiscreteValues`); those between the
            bounds are legal. Empty where a step tells.
        hook: how it is resized.
        target: of a custom hook: ARN of a Lambda function, or "event" for an EventBridge event.
        scaling_timeout: time without a resize before it grows (`scalingTimeoutInSeconds`).
        graceful_shutdown_timeout: time to checkpoint and leave before force (`gracefulShutdownTimeoutInSeconds`).
        faulty_scale_down_timeout: wait for a replacement of a lost member (`faultyScaleDownTimeoutInSeconds`).
        scale_up_snooze: time after a restart in which it does not grow (`scaleUpSnoozeTimeInSeconds`).
        budget: limits on restarts after failures.
    """

    min_instances: int
    max_instances: int
    step: int = 1
    values: tuple[int, ...] = ()
    hook: Hook = Hook.RESTART
    target: str = ""
    scaling_timeout: timedelta = timedelta(seconds=60)
    graceful_shutdown_timeout: timedelta = timedelta(seconds=600)
    faulty_scale_down_timeout: timedelta = timedelta(seconds=30)
    scale_up_snooze: timedelta = timedelta(0)
    budget: RestartBudget = field(default_factory=RestartBudget)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """All legal sizes, ascending."""
        if self.values:
            return tuple(size for size in self.values if self.min_instances <= size <= self.max_instances)
        return tuple(range(self.min_instances, self.max_instances + 1, self.step))

    def at_most(self, size: int) -> int | None:
        """Return the largest legal size of at most this; None if even the smallest is larger."""
        return max((legal for legal in self.sizes if legal <= size), default=None)

    def could_have(self, size: int) -> bool:
        """Return whether bounds exist by which this size is legal; bounds move by steps, or within the values."""
        return size in self.values if self.values else size >= 1 and (size - self.min_instances) % self.step == 0

    def including(self, size: int) -> Elastic:
        """Return these bounds widened to a size that was legal before they changed; unchanged for any other."""
        low, high = min(size, self.min_instances), max(size, self.max_instances)
        if (low, high) == (self.min_instances, self.max_instances) or not self.could_have(size):
            return self
        return replace(self, min_instances=low, max_instances=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A training job of one instance by which a job has grown beyond its own training job.

    Attributes:
        training_job_name: its name (`names.member_name`).
        created_at: when it was decided.
        launched: whether its training job is known to be created.
        started_at: when SageMaker reported its instance as working.
        drain_asked_at: when its drain was decided; its unit is free only once it has ended.
        left_at: when it had left the rendezvous, or was out of time; from then on it is stopped.
        stop_sent: whether StopTrainingJob is known to have been called.
        called_at: when CreateTrainingJob was last called for it, if that was over a minute after `created_at`.
    """

    training_job_name: str
    created_at: datetime
    launched: bool = False
    started_at: datetime | None = None
    drain_asked_at: datetime | None = None
    left_at: datetime | None = None
    stop_sent: bool = False
    called_at: datetime | None = None

    def may_appear(self, now: datetime) -> bool:
        """Return whether its training job may exist although SageMaker does not describe it."""
        return now < (self.called_at or self.created_at) + VISIBLE_AFTER

    @property
    def leaving(self) -> bool:
        """True if its unit is about to become free."""
        return self.drain_asked_at is not None or self.left_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resizing:
    """A resize that is under way.

    Attributes:
        before, after: sizes, instances.
        cause: why.
        asked_at: when it was decided.
        until: when a growth is given up, or a shrink forced.
        freed_for: the job for which units are freed; None if there is none.
        hook_called: whether the custom hook has received the request.
        given_up: whether it returns to the size before.
    """

    before: int
    after: int
    cause: Cause
    asked_at: datetime
    until: datetime
    freed_for: str | None = None
    hook_called: bool = False
    given_up: bool = False

    @property
    def grows(self) -> bool:
        """True if it adds instances."""
        return self.after > self.before
