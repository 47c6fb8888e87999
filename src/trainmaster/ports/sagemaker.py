"""SageMaker training jobs and their checkpoints, as far as the queue uses them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import ServiceError, Unavailable
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.ports.store import Request


class CreateResult(StrEnum):
    """The result of creating an attempt's training job.

    ALREADY_THERE: an earlier call for this attempt created it. EARLIER_START: an earlier start with the same number
    created the training job of this name. NAME_TAKEN: the queue did not create it.
    """

    NEW = "new"
    ALREADY_THERE = "already there"
    EARLIER_START = "earlier start"
    NAME_TAKEN = "name taken"


class Creator(StrEnum):
    """The creator of a training job with an attempt's name, by its tags.

    ATTEMPT: this start of the attempt. EARLIER_START: an earlier start with the same number. OTHER: not the queue, or
    for another attempt. UNKNOWN: its tags are not visible. NONE: SageMaker does not describe it.
    """

    ATTEMPT = "attempt"
    EARLIER_START = "earlier start"
    OTHER = "other"
    UNKNOWN = "unknown"
    NONE = "none"


class StopResult(StrEnum):
    """The result of a request to stop a training job.

    ACCEPTED: SageMaker stops it on this request. ALREADY_STOPPING: it was stopping before. ENDED: it has ended.
    NOT_FOUND: SageMaker does not describe it.
    """

    ACCEPTED = "accepted"
    ALREADY_STOPPING = "already stopping"
    ENDED = "ended"
    NOT_FOUND = "not found"


class Unconfirmed(Unavailable):
    """A create call was refused, or its name is in use, and it is unknown whether an earlier call was accepted.

    Attributes:
        refusal: the refusal, which is final once no earlier call can have been accepted; None if the name is in use by
            a training job whose creator cannot be read.
    """

    def __init__(self, message: str, refusal: ServiceError | None = None) -> None:
        super().__init__(message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class OpenJobsPage:
    """One page of the names of training jobs; `token` names the next page, None on the last one."""

    names: tuple[str, ...]
    token: str | None = None


class Owner(StrEnum):
    """The queue that started a training job, by its tags.

    QUEUE: this queue. OTHER: another queue, or none. UNKNOWN: no tags are visible.
    """

    QUEUE = "queue"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OpenJob:
    """An unfinished training job.

    Attributes:
        name: its name.
        created_at: `CreationTime`.
        units: the instances that it holds, by capacity source.
        owner: the queue that started it.
        job_name: the job that its tags name; "" if this queue did not start it.
        keep_alive: whether its request keeps a warm pool after it.
        stopping: whether it is Stopping.
    """

    name: str
    created_at: datetime
    units: Units
    owner: Owner
    job_name: str = ""
    keep_alive: bool = False
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A training job that this queue created, open or ended.

    Attributes:
        seen: its present state.
        units: the instances of its request, by capacity source.
        job_name: the job that its tags name.
        attempt: the number of its attempt.
        decided_at: when its start was decided, by its tags.
    """

    seen: Observation
    units: Units
    job_name: str
    attempt: int
    decided_at: datetime


class Inventory(Protocol):
    """Lists training jobs that the queue has created, also those that the store lacks. Raises as `Launcher` does."""

    def list_created(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return one page of the names of the account's training jobs created after `since`, open or ended."""
        ...

    def find_created(self, training_job_name: str) -> StartedJob | None:
        """Return a training job with its tags; None if this queue did not create it."""
        ...


class Launcher(Protocol):
    """Creates, stops and describes training jobs. Verbs raise `Throttled`, `Unavailable`, `NotPermitted`."""

    def create(self, job: Job, attempt: Attempt, request: Request, *, retry: bool = False) -> CreateResult:
        """Create the attempt's training job, tagged with queue, job, attempt and start.

        To create a member of an attempt, pass the attempt under the member's name. Raises `CapacityExhausted` and
        `RequestRefused` too, and `Unconfirmed` if an earlier call may have been accepted.

        Args:
            job: the attempt's job.
            attempt: the attempt.
            request: as submitted.
            retry: whether there may have been an earlier call for it.
        """
        ...

    def creator(self, job: Job, attempt: Attempt) -> Creator:
        """Return the creator of the training job that has the attempt's name; ended ones too.

        To look up a member of an attempt, pass the attempt under the member's name.
        """
        ...

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> StopResult:
        """Request a training job's stop, and its warm pool's end if `end_warm_pool`."""
        ...

    def end_warm_pool(self, training_job_name: str) -> None:
        """Set its keep-alive period to 0, so that an idle warm pool returns its instances; no-op without one."""
        ...

    def describe(self, training_job_name: str) -> Observation | None:
        """Return its current state; None if SageMaker does not know it."""
        ...

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """Return one page of the account's unfinished training jobs created after `since`, in one list call."""
        ...

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """Return a training plan's status and the window of its capacity; None if SageMaker does not know it."""
        ...

    def units_of(self, training_job_name: str) -> Units:
        """Return the instances that a training job holds, by capacity source; empty once it has ended."""
        ...

    def identify(self, training_job_name: str) -> OpenJob | None:
        """Return a training job and its owner; None once it has ended. Tags of a young one may not be visible yet."""
        ...


class Checkpoints(Protocol):
    """The S3 prefixes to which jobs write checkpoints."""

    def newest(self, uri: str) -> datetime | None:
        """Return when the newest object under a `CheckpointConfig.S3Uri` was written; None if none is visible.

        Raises `Throttled`, `Unavailable`.
        """
        ...
