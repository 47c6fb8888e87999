"""What SageMaker says of one training job, as a value: from an event, a Describe or a List answer.

An observation is a hint: it may be late, repeated or out of order. It must not touch a job; `lifecycle` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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
"""`SecondaryStatus` values under which the job's instances are not at work yet."""
WORKED_TOO_LONG = "MaxRuntimeExceeded"
"""`SecondaryStatus` that tells a time-out from a stop: both end as Stopped."""
WAITED_TOO_LONG = "MaxWaitTimeExceeded"
"""The same for a spot job that lost, or did not get, its instances: `MaxWaitTimeInSeconds` is at least as long as
`MaxRuntimeInSeconds`, so a job that works without a break never meets it."""


class Warm(StrEnum):
    """`WarmPoolStatus` of a training job (SageMaker API, DescribeTrainingJob); `NONE` where it has had no warm pool."""

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
"""How a `FailureReason` begins. Others, `ClientError` among them, are about the request or its data: another try would
meet them again (SageMaker API reference, DescribeTrainingJob; facts 2.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One report about one training job.

    Attributes:
        training_job_name: the SageMaker name, so one attempt.
        job_name: the job that the attempt's tags name, where the report carries tags.
        secondary: `SecondaryStatus`; "" where unknown.
        failure_reason: `FailureReason` of a failed job.
        started_at: `TrainingStartTime`.
        stopping_since: when `Stopping` began, where the report tells; shows who asked first.
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
    started_at: datetime | None = None
    stopping_since: datetime | None = None
    chosen_type: str | None = None
    warm: Warm | None = None
    warm_until: datetime | None = None
    interruptions: int = 0
    progress: Progress | None = None

    @property
    def terminal(self) -> bool:
        """Whether the training job has ended and its instances are free."""
        return self.status in TERMINAL

    @property
    def warm_pool(self) -> bool:
        """Whether it is known to have left a warm pool that still holds its instances."""
        return self.warm is Warm.AVAILABLE

    @property
    def at_work(self) -> bool:
        """Whether its instances are at work."""
        return self.status is Status.IN_PROGRESS and bool(self.secondary) and self.secondary not in NO_INSTANCES_YET

    @property
    def ends_badly(self) -> bool:
        """Whether rules for trying again have a say in what becomes of the job."""
        return self.terminal and self.status is not Status.COMPLETED

    @property
    def failure_class(self) -> FailureClass | None:
        """The class of a failed job's failure; None where it did not fail, or where no new try could help."""
        if self.status is not Status.FAILED:
            return None
        return FAILURE_CLASSES.get((self.failure_reason or "").partition(":")[0].strip())
