"""A training job as SageMaker keeps it: the request, where it stands, and how it got there.

Plain records; the rules that change them are in `course`. It must not touch quotas, clocks or the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum, auto
from typing import Any

from trainmaster.local.simulator.service.demand import Units, alternatives, market
from trainmaster.local.simulator.service.profiles import Profile

DEFAULT_MAX_RUNTIME = timedelta(days=1)
IN_PROGRESS, STOPPING, STOPPED, COMPLETED, FAILED = "InProgress", "Stopping", "Stopped", "Completed", "Failed"
TERMINAL = frozenset({COMPLETED, FAILED, STOPPED})


class Stage(StrEnum):
    """Where the machinery stands; finer than the statuses that SageMaker shows."""

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
    """`WarmPoolResourceStatus`."""

    IN_USE = "InUse"
    AVAILABLE = "Available"
    REUSED = "Reused"
    TERMINATED = "Terminated"


@dataclass(slots=True)
class Transition:
    """One entry of `SecondaryStatusTransitions`."""

    status: str
    start: datetime
    message: str
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job will end once its instances have been given back."""

    status: str
    secondary: str
    message: str
    failure_reason: str | None = None


@dataclass(slots=True)
class TrainingJob:
    """One training job.

    Attributes:
        stage_number: counts the stages entered, so that a timer can tell that its stage has passed.
        run: counts the starts of the script, so that a late exit of an earlier one can be told apart.
        trained_since: since when the script has made progress; in the future while it restarts or pauses.
        pace: how much of its work it does in a second.
        work_left: seconds of work that it needed at `trained_since`.
        work_done: work that it had done by then in this run, not yet saved.
        quota_units: what counts against the account's quotas.
        warm_quota_units: what counts against the quotas for warm pools.
        instances: which EC2 instances it has.
        selected: which alternative SageMaker selected, for a job with preferences.
        earlier_run_time: time on instances in earlier runs (spot interruptions and retries).
        keep_alive: seconds that its instances are to be kept after its end.
        market: where its instances come from.
        alternatives: what it may run on, best first.
        chain_start: when the instances that it runs on were first started, over all jobs of a warm pool.
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
        # Read once: those that wait for capacity are asked about whenever any is freed.
        self.market = market(self.request)
        self.alternatives = alternatives(self.request)

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.status in TERMINAL

    @property
    def checkpoint_uri(self) -> str | None:
        """Where its checkpoints go."""
        uri: str | None = self.request.get("CheckpointConfig", {}).get("S3Uri")
        return uri

    @property
    def argv(self) -> list[str]:
        """The command that its request names, if any."""
        algorithm = self.request.get("AlgorithmSpecification", {})
        return [*algorithm.get("ContainerEntrypoint", []), *algorithm.get("ContainerArguments", [])]

    def limit(self, name: str) -> timedelta | None:
        """A limit of its `StoppingCondition`; None where it sets none."""
        seconds = self.request.get("StoppingCondition", {}).get(name)
        return None if seconds is None else timedelta(seconds=seconds)

    @property
    def max_runtime(self) -> timedelta:
        """How long it may be on instances, over all runs."""
        return self.limit("MaxRuntimeInSeconds") or DEFAULT_MAX_RUNTIME

    def worked(self, now: datetime) -> timedelta:
        """What its script has done since `trained_since`."""
        return max(now - self.trained_since, timedelta(0)) * self.pace if self.trained_since else timedelta(0)

    def time_on_instances(self, now: datetime) -> timedelta:
        """How long it has been on instances, over all runs."""
        return self.earlier_run_time + (now - self.run_since if self.run_since else timedelta(0))
