"""The shapes of the API's answers, member for member as they travel in JSON.

Times are ISO 8601 in UTC (`2026-01-31T12:00:00Z`). This module holds types only, and must not do anything.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypedDict

from trainmaster.client.views.elastic import ElasticView
from trainmaster.client.views.pools import PoolDeedView, PoolView
from trainmaster.images.client.views import ImageView

JobState = Literal[
    "pending",
    "starting",
    "running",
    "preempting",
    "preempted",
    "resizing",
    "completed",
    "failed",
    "stopped",
    "held",
    "cancelled",
]

WAITING: Final[frozenset[str]] = frozenset({"pending", "preempted", "held"})
ENDED: Final[frozenset[str]] = frozenset({"completed", "failed", "stopped", "cancelled"})


class Reason(TypedDict):
    """Why a job waits, or why an attempt ended; further members depend on the type."""

    type: str
    message: str


class DeadlineView(TypedDict):
    """How a job stands to its deadline; `message` says it."""

    deadline: str
    prospect: Literal["in time", "urgent", "late", "lost"]
    latestStart: str
    urgentFrom: str | None
    message: str


class ResourcesView(TypedDict):
    """What a job asks of each of its instances; 0 or empty where it does not mind."""

    accelerators: int
    acceleratorMemoryGib: float
    vcpus: int
    memoryGib: float
    accelerator: str


class AttemptView(TypedDict):
    """One run of a job on SageMaker; `trainingJobName` is its name there, `instanceType` what the queue chose."""

    number: int
    trainingJobName: str
    units: dict[str, int]
    instanceType: str | None
    outcome: str
    interruptions: int
    createdAt: str | None
    startedAt: str | None
    endedAt: str | None
    reason: Reason | str | None


class EarlierAttemptsView(TypedDict):
    """Sums over a job's oldest attempts, which are not listed: how many, how they ended, how long they were at work."""

    count: int
    outcomes: dict[str, int]
    beganAt: str
    atWorkSeconds: float
    instanceSeconds: float


class JobView(TypedDict):
    """A job as the queue sees it; `trainingJobName` is the newest attempt's name on SageMaker."""

    jobName: str
    kind: Literal["training", "image"]
    jobState: JobState
    priority: int
    share: str
    entryTime: str
    pools: list[str]
    demand: list[dict[str, int]]
    resources: ResourcesView | None
    instances: int | None
    preemptible: bool
    position: int | None
    positionAtLeast: int | None
    reason: Reason | None
    estimatedStart: str | None
    estimatedStartLow: str | None
    estimatedStartHigh: str | None
    deadline: DeadlineView | None
    submittedBy: str | None
    failureReason: str | None
    trainingJobName: str | None
    attempts: list[AttemptView]
    earlierAttempts: EarlierAttemptsView | None
    elastic: ElasticView | None
    image: ImageView | None


class Submission(JobView):
    """The answer to a submit: the job, what to beware of, and which jobs it would preempt."""

    warnings: list[str]
    wouldPreempt: list[str]


# In the functional form, because `from` is a Python keyword.
_Ends = TypedDict("_Ends", {"from": str | None, "to": str})


class HistoryEntry(_Ends):
    """One transition of a job: the states it went `from` and `to`, when, why, and under which attempt."""

    at: str
    reason: Reason | str | None
    attempt: int | None


class Holder(TypedDict):
    """A job that holds instances which a waiting one could use."""

    jobName: str
    pool: str
    instances: int
    expectedEnd: str
    overdue: bool
    stopping: bool
    givingBack: int


class Reserved(TypedDict):
    """What is reserved for a blocked job, and when it is expected to be free."""

    instances: dict[str, int]
    at: str | None


class Advice(TypedDict):
    """Something that would help; one of the last three is set."""

    message: str
    priority: int | None
    instances: int | None
    pool: str | None


class WhyView(TypedDict):
    """The story of a waiting job."""

    inTheWay: list[Holder]
    jobsInTheWay: int
    reserved: Reserved | None
    advice: list[Advice]


class JobDetail(JobView):
    """A job with its history and the request that was submitted; `why` where it was asked for."""

    history: list[HistoryEntry]
    jobDetails: dict[str, Any]
    why: WhyView | None


SettingsView = dict[str, Any]
"""A document of settings with its `version`, as docs/reference/settings.md tells it."""


class JobsPage(TypedDict):
    """One page of jobs; `nextCursor` is None on the last."""

    jobs: list[JobView]
    nextCursor: str | None


class QueuePage(JobsPage):
    """One page of the queue, in the order in which jobs will be considered."""

    pools: list[PoolView]


class Delay(TypedDict):
    """A job that would start later: when as things are, and when then."""

    jobName: str
    bySeconds: int
    expectedStart: str
    wouldStart: str


class Creation(TypedDict):
    """A pool that would be made, or made larger."""

    pool: str
    instanceType: str
    instances: int
    dollarsPerHour: float | None


class MadeDollars(TypedDict):
    """What all pools that the queue made may cost an hour: now, and after the next pass."""

    now: float
    then: float


class PlanView(TypedDict):
    """What would happen to a request, and to others, if it were submitted now."""

    decision: Literal["start", "preempt", "wait"]
    position: int | None
    positionAtLeast: int | None
    reason: Reason | None
    wouldTake: dict[str, int]
    wouldPreempt: list[str]
    wouldStart: list[str]
    wouldDelay: list[Delay]
    wouldCreate: list[Creation]
    wouldCreateNone: str | None
    expansionEnabled: bool
    wouldChange: list[PoolDeedView]
    madeDollarsPerHour: MadeDollars | None
    estimatedStart: str | None
    estimatedStartLow: str | None
    estimatedStartHigh: str | None
    deadline: DeadlineView | None
    warnings: list[str]
