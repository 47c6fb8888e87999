"""Observations: SageMaker's reports about training jobs, from events, Describe and List calls.

An observation is a hint: it may be late, repeated or out of order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.work import Progress
from trainmaster.domain.policy.settings import FailureClass


class Status(StrEnum):
    """`TrainingJobStatus` (SageMaker API, DescribeTrainingJob)."""

    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    DELETING = "Deleting"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.STOPPED, Status.DELETING})
NO_INSTANCES_YET = frozenset({"Starting", "Pending", "LaunchingMLInstances", "PreparingTrainingStack"})
"""`SecondaryStatus` values before the job's instances work."""
WORKED_TOO_LONG = "MaxRuntimeExceeded"
"""`SecondaryStatus` that distinguishes a time-out from a stop; both end as Stopped."""
WAITED_TOO_LONG = "MaxWaitTimeExceeded"
"""The same for a spot job that lost, or did not get, its instances: `MaxWaitTimeInSeconds` is at least as long as
`MaxRuntimeInSeconds`, so a job that works without a break never meets it."""


class Warm(StrEnum):
    """`WarmPoolStatus` of a training job (SageMaker API, DescribeTrainingJob); `NONE` if it has no warm pool."""

    IN_USE = "InUse"
    AVAILABLE = "Available"
    REUSED = "Reused"
    TERMINATED = "Terminated"
    NONE = "None"


FAILURE_CLASSES: Mapping[str, FailureClass] = {
    "CapacityError": FailureClass.CAPACITY,
    "InsufficientCapacityError": FailureClass.CAPACITY,
    "ResourceLimitExceeded": FailureClass.CAPACITY,
    "InternalServerError": FailureClass.SERVICE,
    "AlgorithmError": FailureClass.ALGORITHM,
}
"""Prefixes of `FailureReason` by class. Others, such as `ClientError`, concern the request or its data, and a retry
would fail again (SageMaker API reference, DescribeTrainingJob)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A report about a training job.

    Attributes:
        training_job_name: its name, which identifies the attempt.
        job_name: the job that its tags name, if the report includes tags.
        secondary: `SecondaryStatus`; "" if unknown.
        failure_reason: `FailureReason` of a failed job.
        created_at: `CreationTime`.
        started_at: `TrainingStartTime`.
        stopping_since: when `Stopping` began, if the report includes it; shows whether the queue or a user stopped it.
        chosen_type: `SelectedInstanceType` once SageMaker has chosen among preferences.
        warm: how its warm pool stands; None where the report does not tell.
        warm_until: when the warm pool that it has left ends by itself.
        interruptions: how often its spot instances have been taken away so far.
        progress: of a run; None if the report does not tell.
    """

    training_job_name: str
    status: Status
    secondary: str = ""
    job_name: str | None = None
    failure_reason: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    stopping_since: datetime | None = None
    chosen_type: str | None = None
    warm: Warm | None = None
    warm_until: datetime | None = None
    interruptions: int = 0
    progress: Progress | None = None

    @property
    def terminal(self) -> bool:
        """True if the training job has ended and its instances are free."""
        return self.status in TERMINAL

    @property
    def warm_pool(self) -> bool:
        """True if it left a warm pool that still holds its instances."""
        return self.warm is Warm.AVAILABLE

    @property
    def at_work(self) -> bool:
        """True if its instances work."""
        return self.status is Status.IN_PROGRESS and bool(self.secondary) and self.secondary not in NO_INSTANCES_YET

    @property
    def ends_badly(self) -> bool:
        """True if the retry rules apply to its end."""
        return self.terminal and self.status is not Status.COMPLETED

    @property
    def failure_class(self) -> FailureClass | None:
        """The class of its failure; None if it did not fail, or if a retry cannot help."""
        return failure_class_of(self.failure_reason or "") if self.status is Status.FAILED else None


def failure_class_of(reason: str) -> FailureClass | None:
    """Return the class of a `FailureReason`; None if a retry cannot help."""
    return FAILURE_CLASSES.get(reason.partition(":")[0].strip())
