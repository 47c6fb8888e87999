"""What the use cases need from outside, as Protocols in the words of the domain.

Every implementation of Store and Launcher passes the same contract suite (`tests/contract/`). A method answers
won or lost where others may be faster; losing is a value, not an error. Errors are those of `domain.errors`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.pool_history import PoolEvent
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import PlanWindow, Pool, Units
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.rendezvous import Control, RendezvousState
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.listing import Filter
from trainmaster.domain.jobs.observation import Observation
from trainmaster.domain.plan import Cursors, Snapshot
from trainmaster.domain.policy.settings import Policy

Request = Mapping[str, Any]
"""A CreateTrainingJob request as JSON values."""


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a listing, and where the next part begins; `cursor` is None at the end."""

    jobs: tuple[Job, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The pools and the policy in force, and the version to name when changing them.

    Attributes:
        deployed: the policy that the deployment sets, which is in force where nobody has set another.
        catalogue: what is known of instance types.
        history: what the manager has done to its own pools, the oldest first; empty unless it was asked for.
    """

    pools: Mapping[str, Pool]
    policy: Policy
    version: int
    deployed: Policy = field(default_factory=Policy)
    catalogue: Catalogue = field(default_factory=Catalogue)
    history: tuple[PoolEvent, ...] = ()


class Store(Protocol):
    """The queue's memory."""

    def submit(self, job: Job, request: Request) -> Job:
        """Store a new job and its lane entry at once, or nothing.

        Returns the stored job: the given one, or the one that already had this name (then nothing was written;
        compare `digest`). Raises `TooLarge`.
        """
        ...

    def begin_pass(self) -> Snapshot:
        """Begin a pass: fence all earlier ones, then read with strong consistency."""
        ...

    def read_snapshot(self) -> Snapshot:
        """The same reading without a fence, for answers and dry runs; `pass_number` is strongly consistent."""
        ...

    def current_pass(self) -> int:
        """Return the number of the pass that began last, 0 before the first; strongly consistent, one small read."""
        ...

    def transition(
        self,
        changes: Sequence[tuple[Job, Job]],
        *,
        fence: int | None = None,
        warm: Sequence[WarmPool] = (),
        ended_warm: Sequence[str] = (),
        cursors: Cursors | None = None,
    ) -> bool:
        """Commit jobs' changes (before, after), all or none; whether it won.

        Each is guarded by its job's version and, where given, all by the pass still being `fence`. False when
        any guard failed; raises `Fenced` when it was the fence. At most 90 changes. What `warm.left_by` says of a
        change is kept with it; `warm` are warm pools as they are from now on, `cold` the names of those that are gone;
        `cursors` are where the placement policies have got to, kept where given.
        """
        ...

    def find(self, name: str) -> Job | None:
        """The job of that name with its whole history, strongly consistent; None where there is none."""
        ...

    def request_of(self, name: str) -> Request:
        """The request as submitted. Raises `JobNotFound`."""
        ...

    def list_jobs(self, which: Filter, *, limit: int, cursor: str | None = None) -> Page:
        """Jobs that match: active ones, waiting ones in queue order, held ones, then the newest ended.

        Raises `InvalidRequest` for a cursor that is not one of ours.
        """
        ...

    def settings(self, *, catalogue: bool = True, history: bool = False) -> QueueSettings:
        """The settings in force; catalogue and history are rows of their own, and cost as much again."""
        ...

    def set_settings(
        self,
        *,
        pools: Sequence[Pool] | None = None,
        policy: Policy | None = None,
        version: int | None = None,
        events: Sequence[PoolEvent] = (),
    ) -> QueueSettings:
        """Replace the pools, the policy, or both; what is None stays. Returns what is in force then.

        `noted` joins the history in that write. Raises `VersionConflict` where a `version` is no longer in force.
        """
        ...

    def update_external_jobs(self, present: Mapping[str, Units], gone: Sequence[str] = ()) -> Mapping[str, Units]:
        """Add and remove training jobs that did not come from the queue; returns all known ones by name."""
        ...


class CatalogueStore(Protocol):
    """What is known of instance types, kept with the queue; snapshots and settings bring it along."""

    def save_catalogue(self, catalogue: Catalogue) -> None:
        """Replace what was learned before."""
        ...


class InstanceTypes(Protocol):
    """What AWS says of instance types."""

    def describe(self, names: Collection[str]) -> Mapping[str, InstanceType]:
        """Those of the named ML types that there are in this Region, by name; prices are 0, since EC2 tells none.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Quotas(Protocol):
    """How much of each instance type the account may use."""

    def quotas(self) -> Mapping[str, int]:
        """Instances that the account may have of a type at once in training jobs, by type.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Prices(Protocol):
    """What instance types cost."""

    def prices(self) -> Mapping[str, float]:
        """US dollars an hour in a training job on demand, by type, all above 0; raises as `Quotas.quotas` does."""
        ...


class CreateResult(StrEnum):
    """What came of creating an attempt."""

    NEW = "new"
    ALREADY_THERE = "already there"
    NAME_TAKEN = "name taken"


@dataclass(frozen=True, slots=True)
class OpenJobsPage:
    """One page of the account's unfinished training jobs; `token` is None after the last page."""

    names: tuple[str, ...]
    token: str | None = None


class Launcher(Protocol):
    """SageMaker training jobs, as far as the queue needs them."""

    def create(self, job: Job, attempt: Attempt, request: Request) -> CreateResult:
        """Create the attempt's training job, tagged with queue, job and attempt.

        A member of an attempt is created like it, under the name of the member: the attempt with that name is given.
        `ALREADY_THERE`: an earlier call of ours had created it. `NAME_TAKEN`: the name belongs to a training job
        that this attempt did not create. Raises `CapacityExhausted`, `RequestRefused`, `Throttled`,
        `Unavailable`, `NotPermitted`.
        """
        ...

    def stop(self, training_job_name: str, *, end_warm_pool: bool) -> bool:
        """Ask it to stop, ending its warm pool where told; False where it had ended already.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...

    def end_warm_pool(self, training_job_name: str) -> None:
        """Set its keep-alive to 0 so that an idle warm pool gives its instances back; nothing where it has none."""
        ...

    def describe(self, training_job_name: str) -> Observation | None:
        """What SageMaker says of it now; None where it does not know it."""
        ...

    def list_open_jobs(self, since: datetime, token: str | None = None) -> OpenJobsPage:
        """One page of the account's unfinished training jobs created after `since` (one list call)."""
        ...

    def describe_training_plan(self, arn: str) -> PlanWindow | None:
        """How a training plan stands, and when its capacity is there; None where SageMaker does not know it."""
        ...

    def units_of(self, training_job_name: str) -> Units:
        """Which instances a training job holds, by `capacity.source`; empty once it has ended."""
        ...


class Checkpoints(Protocol):
    """Where jobs save their work."""

    def newest(self, uri: str) -> datetime | None:
        """When the newest checkpoint under a `CheckpointConfig.S3Uri` was written; None where there is none to see.

        Raises `Throttled`, `Unavailable`.
        """
        ...


class RendezvousControl(Protocol):
    """The rendezvous of elastic jobs, as far as the queue has a say in them."""

    def get(self, run: str) -> RendezvousState | None:
        """How the rendezvous of this run stands; None before any node has come. Raises `Throttled`, `Unavailable`."""
        ...

    def set(self, run: str, control: Control) -> None:
        """Ask this of its nodes from now on; again changes nothing. Raises `Throttled`, `Unavailable`."""
        ...


class ResizeHook(Protocol):
    """Carries out an elastic job's resizes, step by step."""

    def advance(self, job: Job) -> Job:
        """Do what comes next for a job that holds capacity; the job as it stands then.

        Every step may be repeated: every pass calls this again. Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class ResizeRequester(Protocol):
    """Asks somebody outside of the queue to change a job's size (`elastic.Hook.CUSTOM`)."""

    def request_resize(self, target: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Ask; the answer where it comes at once.

        Args:
            target: whom, see `Elastic.target`.
            question: what `docs/how-to/custom-resize.md` says; JSON values.

        Raises `Throttled`, `Unavailable`, `NotPermitted`.
        """
        ...


class Publisher(Protocol):
    """What leaves the system besides answers."""

    def wake(self, follows: int) -> None:
        """Ask for a pass that begins after pass `follows`; asking twice for one costs nothing."""
        ...

    def set_aside(self, message: str, reason: str) -> None:
        """Put a message that cannot be handled where people will find it, with the reason."""
        ...


class Clock(Protocol):
    """Time, handed in."""

    def now(self) -> datetime:
        """The time now, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let that many seconds pass."""
        ...
