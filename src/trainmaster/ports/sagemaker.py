"""SageMaker training jobs and their checkpoints, as far as the queue uses them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from trainmaster.domain.capacity.units import PlanWindow, Units
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.ports.store import Request


class CreateResult(StrEnum):
    """The result of creating an attempt's training job.

    ALREADY_THERE: an earlier call of the queue created it. NAME_TAKEN: a training job of this name exists that this
    attempt did not create.
    """

    NEW = "new"
    ALREADY_THERE = "already there"
    NAME_TAKEN = "name taken"


@dataclass(frozen=True, slots=True)
class OpenJobsPage:
    """One page of the names of unfinished training jobs; `token` names the next page, None on the last one."""

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


class Launcher(Protocol):
    """Creates, stops and describes training jobs. Verbs raise `Throttled`, `Unavailable`, `NotPermitted`."""

    def create(self, job: Job, attempt: Attempt, request: Request) -> CreateResult:
        """Create the attempt's training job, tagged with queue, job and attempt.

        To create a member of an attempt, pass the attempt under the member's name. Raises `CapacityExhausted` and
        `RequestRefused` too.
        """
        ...

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> bool:
        """Request a training job's stop, and its warm pool's end if `end_warm_pool`; return False if it has ended."""
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
