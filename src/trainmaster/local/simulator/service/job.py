"""A training job of SageMaker: request, status, history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import auto
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.local.simulator.service.demand import Units, alternatives, market
from trainmaster.local.simulator.service.profiles import Profile

DEFAULT_MAX_RUNTIME = timedelta(days=1)
IN_PROGRESS, STOPPING, STOPPED, COMPLETED, FAILED = "InProgress", "Stopping", "Stopped", "Completed", "Failed"
TERMINAL = frozenset({COMPLETED, FAILED, STOPPED})


class Stage(StrEnum):
    """Stage of the lifecycle; finer than SageMaker's statuses."""

    REQUESTING = auto()
    PENDING = auto()
    PREPARING = auto()
    DOWNLOADING = auto()
    TRAINING = auto()
    TERMINATING = auto()
    INTERRUPTED = auto()
    UPLOADING = auto()
    STOPPING = auto()
    ENDED = auto()


class WarmPool(StrEnum):
    """Values of `WarmPoolResourceStatus`."""

    IN_USE = "InUse"
    AVAILABLE = "Available"
    REUSED = "Reused"
    TERMINATED = "Terminated"


@dataclass(slots=True)
class Transition:
    """An entry of `SecondaryStatusTransitions`."""

    status: str
    start: datetime
    message: str
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """Terminal status of a job, set before its instances are released."""

    status: str
    secondary: str
    message: str
    failure_reason: str | None = None


@dataclass(slots=True)
class TrainingJob:
    """A training job.

    Attributes:
        stage_number: number of stages entered; timers of an earlier stage are void.
        run: number of starts of the script; exits of an earlier run are ignored.
        trained_since: start of the script's progress; in the future during a restart or pause.
        pace: seconds of work done in a second.
        work_left: seconds of work left at `trained_since`.
        work_done: seconds of work done in this run before `trained_since` and not saved.
        quota_units: instances charged to the account's quotas.
        warm_quota_units: instances charged to the warm pool quotas.
        instances: EC2 instances that it holds.
        selected: the alternative that SageMaker selected, for a job with preferences.
        earlier_run_time: time on instances in earlier runs (spot interruptions and retries).
        keep_alive: `KeepAlivePeriodInSeconds`.
        market: source of its instances.
        alternatives: instances that it may run on, best first.
        chain_start: first start of its instances, over all jobs of a warm pool.
    """

    name: str
    arn: str
    request: Mapping[str, Any]
    created: datetime
    profile: Profile
    tags: dict[str, str]
    last_modified: datetime
    stage: Stage = Stage.REQUESTING
    stage_number: int = 0
    run: int = 0
    status: str = IN_PROGRESS
    secondary: str = "Starting"
    transitions: list[Transition] = field(default_factory=list)
    started: datetime | None = None
    ended: datetime | None = None
    run_since: datetime | None = None
    trained_since: datetime | None = None
    pace: float = 1.0
    work_left: float = 0.0
    work_done: timedelta = timedelta(0)
    earlier_run_time: timedelta = timedelta(0)
    ending: Ending | None = None
    failure_reason: str | None = None
    quota_units: Units = field(default_factory=dict)
    warm_quota_units: Units = field(default_factory=dict)
    instances: Units = field(default_factory=dict)
    selected: Units | None = None
    keep_alive: int = 0
    warm_pool: WarmPool | None = None
    reused_by: str | None = None
    pool_ended: datetime | None = None
    chain_start: datetime | None = None
    retries: int = 0
    market: str = field(init=False)
    alternatives: tuple[Units, ...] = field(init=False)

    def __post_init__(self) -> None:
        # Computed once: waiting jobs are retried whenever capacity is freed.
        self.market = market(self.request)
        self.alternatives = alternatives(self.request)

    @property
    def terminal(self) -> bool:
        """True if it has ended."""
        return self.status in TERMINAL

    @property
    def checkpoint_uri(self) -> str | None:
        """S3 URI of its checkpoints."""
        uri: str | None = self.request.get("CheckpointConfig", {}).get("S3Uri")
        return uri

    @property
    def argv(self) -> list[str]:
        """Command of its request; empty if none."""
        algorithm = self.request.get("AlgorithmSpecification", {})
        return [*algorithm.get("ContainerEntrypoint", []), *algorithm.get("ContainerArguments", [])]

    def limit(self, name: str) -> timedelta | None:
        """Return a limit of its `StoppingCondition`; None if it is not set."""
        seconds = self.request.get("StoppingCondition", {}).get(name)
        return None if seconds is None else timedelta(seconds=seconds)

    @property
    def max_runtime(self) -> timedelta:
        """Maximum time on instances, over all runs."""
        return self.limit("MaxRuntimeInSeconds") or DEFAULT_MAX_RUNTIME

    def worked(self, now: datetime) -> timedelta:
        """Return the work that its script has done since `trained_since`."""
        return max(now - self.trained_since, timedelta(0)) * self.pace if self.trained_since else timedelta(0)

    def time_on_instances(self, now: datetime) -> timedelta:
        """Return its time on instances, over all runs."""
        return self.earlier_run_time + (now - self.run_since if self.run_since else timedelta(0))
