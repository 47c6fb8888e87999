"""Types of the API's responses, member for member as in JSON. Times are ISO 8601 in UTC.

Written by scripts/client_types.py from docs/reference/openapi.json; do not edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

AuditAction = Literal[
    "submit",
    "import",
    "cancel",
    "purge",
    "priority",
    "hold",
    "release",
    "size-bounds",
    "resize-answer",
    "settings",
    "pools",
    "pause",
    "resume",
    "restore",
    "adopt",
    "export",
]
"""The recorded changes."""


By = Literal["share", "pool", "user", "priority"]
"""Groups of a usage report."""


Cause = Literal["grow", "shrink", "replace", "repair", "bounds", "slower"]
"""Cause of a resize."""


DifferenceKind = Literal["ended", "newer", "lost", "surplus"]
"""The kinds of differences."""


Hook = Literal["restart", "members", "custom"]
"""Means by which a job is resized."""


ImportOutcome = Literal["new", "unchanged", "conflict", "refused"]
"""Outcome of a job's import."""


IntervalKind = Literal["past", "running", "planned", "reserved", "held", "warm", "external", "closed"]
"""Kinds of intervals."""


JobState = Literal[
    "pending",
    "preempted",
    "held",
    "starting",
    "running",
    "preempting",
    "resizing",
    "completed",
    "failed",
    "stopped",
    "cancelled",
]
"""State of a job. Waiting: pending, preempted. Holding capacity: starting to resizing."""


Kind = Literal["on-demand", "spot", "training-plan", "service"]
"""Source of a pool's instances; `SERVICE`: its units are requests to a service."""


Lending = Literal["reserve", "lend", "lend-and-borrow"]
"""Use of the units that a share does not use itself (AWS Batch quota shares, "resource sharing")."""


Order = Literal["fifo", "backfill", "gittins", "fair"]
"""Order of jobs of equal priority."""


Outcome = Literal["active", "completed", "failed", "stopped", "preempted", "returned", "reclaimed", "resized"]
"""Outcome of an attempt."""


PlanStatus = Literal["Pending", "Scheduled", "Active", "Expired", "Failed"]
"""`TrainingPlanStatus` (SageMaker API, DescribeTrainingPlan)."""


PoolAction = Literal["expand", "shrink", "retire"]
"""Change of a pool: created or enlarged, shrunk, removed."""


Role = Literal["member", "waiting", "spare", "leaving"]
"""Role of a node in the rendezvous."""


State = Literal["in use", "draining", "drained"]
"""State of a pool."""


WhenSpent = Literal["wait", "refuse"]
"""Treatment of the jobs of a share whose budget is spent."""


class AdviceView(TypedDict):
    """Suggestion for the whole demand, verified by re-planning the current queue; one of the last members is set."""

    message: str
    priority: int | None
    pool: str | None


class AttemptView(TypedDict):
    """Run of a job on SageMaker."""

    number: int
    trainingJobName: str
    units: dict[str, int]
    instanceType: str | None
    outcome: Outcome
    createdAt: str
    launched: bool
    startedAt: str | None
    endedAt: str | None
    interruptions: int
    reason: str | None


class AuditEntryView(TypedDict):
    """A recorded change or export: who made it, from where, and what it changed."""

    at: str
    action: AuditAction
    principal: str | None
    arn: str | None
    sourceIp: str | None
    userAgent: str | None
    requestId: str | None
    job: str | None
    before: dict[str, Any]
    after: dict[str, Any]


class AuditPageView(TypedDict):
    """One page of audit entries, newest first."""

    entries: list[AuditEntryView]
    nextCursor: str | None


class BudgetUseView(TypedDict):
    """Budget of a share and its use in the present period. An unset limit, and what is left of it, are null."""

    gpuHours: float | None
    dollars: float | None
    gpuHoursUsed: float
    dollarsUsed: float
    gpuHoursLeft: float | None
    dollarsLeft: float | None
    spent: bool
    whenSpent: WhenSpent
    periodStart: str
    periodEnd: str


class CreationView(TypedDict):
    """Pool that the manager would create or enlarge for the job."""

    pool: str
    instanceType: str
    instances: int
    dollarsPerHour: float | None


class DeadlineView(TypedDict):
    """Prospect of a job to meet its deadline."""

    deadline: str
    prospect: Literal["in time", "urgent", "late", "lost"]
    latestStart: str
    urgentFrom: str | None
    message: str


class DelayView(TypedDict):
    """Job that would start later."""

    jobName: str
    bySeconds: int
    expectedStart: str
    wouldStart: str


class EarlierAttemptsView(TypedDict):
    """Sums over a job's oldest attempts, which are not listed."""

    count: int
    outcomes: dict[str, int]
    beganAt: str
    atWorkSeconds: float
    instanceSeconds: float


class ElasticView(TypedDict):
    """Sizes of an elastic job, its hook, and its present size."""

    minInstances: int
    maxInstances: int
    instanceStep: int | None
    instanceValues: list[int] | None
    hook: Hook
    target: str | None
    scalingTimeoutSeconds: float
    gracefulShutdownTimeoutSeconds: float
    faultyScaleDownTimeoutSeconds: float
    scaleUpSnoozeSeconds: float
    size: int | None
    sizedAt: str | None
    resizes: int
    resizing: ResizingView | None
    faultySince: str | None
    wanted: int | None
    members: list[MemberView]
    scaling: ScalingView | None


class ExportPageView(TypedDict):
    """Page of an export."""

    trainmasterExport: int
    release: str
    queue: str
    at: str
    settings: dict[str, Any]
    pools: list[dict[str, Any]]
    jobs: list[ExportedJobView]
    skipped: list[str]
    nextCursor: str | None


class ExportedJobView(TypedDict):
    """Waiting or held job."""

    request: dict[str, Any]
    priority: int
    entryTime: str
    submittedBy: str | None
    heldBy: str | None
    after: list[str]
    minInstances: int | None
    maxInstances: int | None


class ExternalHoldersView(TypedDict):
    """Training jobs outside the queue that hold instances which the waiting job could use."""

    pool: str
    instances: int
    trainingJobNames: list[str]
    trainingJobs: int


# In the functional form, because a member is a Python keyword.
HistoryEntryView = TypedDict(
    "HistoryEntryView",
    {
        "at": str,
        "from": JobState | None,
        "to": JobState,
        "reason": str,
        "attempt": int | None,
    },
)
"""Entry of a job's history."""


class HolderView(TypedDict):
    """Job that holds instances which the waiting job could use."""

    jobName: str
    pool: str
    instances: int
    expectedEnd: str
    overdue: bool
    stopping: bool
    givingBack: int


class ImportReportView(TypedDict):
    """Result of an import."""

    jobs: list[ImportedJobView]
    settingsChange: bool
    poolsChange: bool
    done: bool


class ImportedJobView(TypedDict):
    """Outcome of one job."""

    jobName: str
    outcome: ImportOutcome
    message: str


class JobView(TypedDict):
    """Job in the queue."""

    jobName: str
    kind: str
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
    reason: ReasonView | None
    estimatedStart: str | None
    estimatedStartLow: str | None
    estimatedStartHigh: str | None
    expectedEnd: str | None
    expectedEndLow: str | None
    expectedEndHigh: str | None
    deadline: DeadlineView | None
    endedAt: str | None
    submittedBy: str | None
    failureReason: str | None
    trainingJobName: str | None
    attempts: list[AttemptView]
    earlierAttempts: EarlierAttemptsView | None
    elastic: ElasticView | None
    details: dict[str, Any] | None


class JobDetailView(TypedDict):
    """Job with its history and the submitted request."""

    jobName: str
    kind: str
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
    reason: ReasonView | None
    estimatedStart: str | None
    estimatedStartLow: str | None
    estimatedStartHigh: str | None
    expectedEnd: str | None
    expectedEndLow: str | None
    expectedEndHigh: str | None
    deadline: DeadlineView | None
    endedAt: str | None
    submittedBy: str | None
    failureReason: str | None
    trainingJobName: str | None
    attempts: list[AttemptView]
    earlierAttempts: EarlierAttemptsView | None
    elastic: ElasticView | None
    details: dict[str, Any] | None
    history: list[HistoryEntryView]
    jobDetails: dict[str, Any]
    redacted: list[str]
    why: WhyView | None


class JobsPageView(TypedDict):
    """Page of jobs."""

    jobs: list[JobView]
    nextCursor: str | None


class MadeDollarsView(TypedDict):
    """Maximum cost per hour of all managed pools while all are in use, without unknown prices."""

    now: float
    then: float


class ManagedPoolChangeView(TypedDict):
    """Change of a managed pool: creation or growth, shrinking, or removal."""

    change: PoolAction
    pool: str
    instanceType: str
    before: int
    after: int
    dollarsPerHour: float | None
    madeFor: str
    jobs: list[str]
    jobCount: int
    why: str


class ManagedPoolEventView(TypedDict):
    """Change of a managed pool with its time."""

    change: PoolAction
    pool: str
    instanceType: str
    before: int
    after: int
    dollarsPerHour: float | None
    madeFor: str
    jobs: list[str]
    jobCount: int
    why: str
    at: str


class ManagerPauseView(TypedDict):
    """A pause of the manager."""

    reason: str
    by: str
    at: str


class ManagerStateView(TypedDict):
    """The state of the manager."""

    pause: ManagerPauseView | None
    restore: RestoreReportView | None


class MemberView(TypedDict):
    """A training job of one instance by which a job has grown."""

    trainingJobName: str
    state: Literal["requested", "starting", "working", "draining", "stopping"]
    createdAt: str
    startedAt: str | None


class NodeView(TypedDict):
    """One container of a rendezvous."""

    trainingJobName: str
    host: str
    role: Role
    rank: int | None


class PlanView(TypedDict):
    """Effects of a request if it were submitted now."""

    decision: Literal["start", "preempt", "wait"]
    position: int | None
    positionAtLeast: int | None
    reason: ReasonView | None
    wouldTake: dict[str, int]
    wouldPreempt: list[str]
    wouldStart: list[str]
    wouldDelay: list[DelayView]
    wouldCreate: list[CreationView]
    wouldCreateNone: str | None
    expansionEnabled: bool
    wouldChange: list[ManagedPoolChangeView]
    madeDollarsPerHour: MadeDollarsView | None
    estimatedStart: str | None
    estimatedStartLow: str | None
    estimatedStartHigh: str | None
    deadline: DeadlineView | None
    scaling: ScalingView | None
    warnings: list[str]


class PoolView(TypedDict):
    """The state of a pool, in instances; a pool of kind service counts requests, and exists while jobs need it."""

    name: str
    instanceType: str
    kind: Kind
    trainingPlanArn: str | None
    planStatus: PlanStatus | None
    startsAt: str | None
    endsAt: str | None
    state: State
    madeFor: str | None
    madeAt: str | None
    price: float
    onDemandPrice: float
    vcpus: int
    memoryGib: float
    accelerators: int
    accelerator: str | None
    acceleratorMemoryGib: float
    cap: int
    quota: int | None
    quotaAt: str | None
    used: int
    stopping: int
    beyondMinimum: int
    held: int
    external: int
    warm: int
    free: int
    load: ServiceLoadView | None
    countExternal: bool
    waiting: int
    waitingUnits: int
    waitingMore: bool
    weight: float
    setting: dict[str, Any]


class PoolSetting(TypedDict):
    """Pool: capacity of one instance type and one kind. Omitted members have their defaults."""

    kind: NotRequired[Kind]
    trainingPlanArn: NotRequired[str | None]
    cap: int
    countExternal: NotRequired[bool]
    draining: NotRequired[bool]
    price: NotRequired[float]
    vcpus: NotRequired[int]
    memoryGib: NotRequired[float]
    accelerators: NotRequired[int]
    accelerator: NotRequired[str]
    acceleratorMemoryGib: NotRequired[float]
    instanceType: str
    name: NotRequired[str | None]


class PoolsView(TypedDict):
    """All pools, and the version to name in a change."""

    pools: list[PoolView]
    version: int
    history: NotRequired[list[ManagedPoolEventView] | None]


class QueuePageView(TypedDict):
    """Page of waiting jobs in queue order, with the pools."""

    jobs: list[JobView]
    nextCursor: str | None
    pools: list[PoolView]


class ReasonView(TypedDict):
    """Reason for which a job waits. The members beside `type` and `message` depend on the type."""

    type: Literal[
        "WaitsForCapacity",
        "WaitsForRelease",
        "Preempts",
        "Shrinks",
        "EndsWarmPool",
        "Behind",
        "ReservedForOther",
        "Protected",
        "PreemptsLater",
        "BackingOff",
        "BehindBackingOff",
        "KindRefused",
        "QuotaTooSmall",
        "NextPass",
        "NotConsideredYet",
        "CanNeverFit",
        "Infeasible",
        "Draining",
        "NotInService",
        "ShareFull",
        "UserFull",
        "BudgetSpent",
        "GroupFull",
        "PlanClosed",
        "NotBefore",
        "WaitsForJobs",
        "Held",
    ]
    message: str
    pool: NotRequired[str | None]
    needed: NotRequired[int | None]
    free: NotRequired[int | None]
    expected: NotRequired[str | None]
    overdue: NotRequired[str | None]
    quota: NotRequired[int | None]
    pools: NotRequired[list[str] | None]
    until: NotRequired[str | None]
    victims: NotRequired[list[str] | None]
    shrinks: NotRequired[list[str] | None]
    trainingJobs: NotRequired[list[str] | None]
    job: NotRequired[str | None]
    jobs: NotRequired[list[str] | None]
    cause: NotRequired[str | None]
    cap: NotRequired[int | None]
    expansion: NotRequired[str | None]
    atZero: NotRequired[bool | None]
    resources: NotRequired[str | None]
    largest: NotRequired[int | None]
    share: NotRequired[str | None]
    limit: NotRequired[int | None]
    bound: NotRequired[str | None]
    user: NotRequired[str | None]
    spent: NotRequired[float | None]
    budget: NotRequired[float | None]
    unit: NotRequired[str | None]
    group: NotRequired[str | None]
    by: NotRequired[str | None]


class RemovalView(TypedDict):
    """Remaining pools, and the jobs that the removal affects."""

    pools: list[PoolView]
    version: int
    history: NotRequired[list[ManagedPoolEventView] | None]
    moved: int
    stranded: int
    more: bool
    running: list[str]


class RendezvousView(TypedDict):
    """Rendezvous of the nodes of a job, as the nodes report it."""

    run: str | None
    round: int | None
    complete: bool
    closed: bool
    reason: str | None
    restarts: int
    nodes: list[NodeView]
    problem: str | None


class ReservedView(TypedDict):
    """Reservation of a blocked job."""

    instances: dict[str, int]
    at: str | None


# In the functional form, because a member is a Python keyword.
ResizingView = TypedDict(
    "ResizingView",
    {
        "from": int,
        "to": int,
        "cause": Cause,
        "askedAt": str,
        "until": str,
        "freedFor": str | None,
        "givenUp": bool,
        "message": str,
    },
)
"""Resize in progress."""


class ResourcesView(TypedDict):
    """Resources that a job requests of each instance; 0 or empty for no requirement."""

    accelerators: int
    acceleratorMemoryGib: float
    vcpus: int
    memoryGib: float
    accelerator: str


class RestoreDifferenceView(TypedDict):
    """A difference between the table and SageMaker."""

    job: str
    trainingJob: str
    kind: DifferenceKind
    stored: str
    status: str
    action: str


class RestoreReportView(TypedDict):
    """A comparison of the table with SageMaker."""

    askedAt: str
    askedBy: str
    adopt: bool
    comparedAt: str | None
    differences: list[RestoreDifferenceView]
    leftOut: int
    adopted: list[str]
    failed: list[str]


class ScalingView(TypedDict):
    """Speed of an elastic job by its size, as learned from reports of it and of its kind."""

    message: str
    serialPart: float
    communicationPart: float
    sizes: list[SizeSpeedView]


# In the functional form, because a member is a Python keyword.
ScheduleView = TypedDict(
    "ScheduleView",
    {
        "at": str,
        "from": str,
        "to": str,
        "pastFrom": str,
        "more": bool,
        "pools": "list[SchedulePoolView]",
    },
)
"""Attempts, running jobs and planned starts in a period, by pool."""


# In the functional form, because a member is a Python keyword.
ScheduleIntervalView = TypedDict(
    "ScheduleIntervalView",
    {
        "kind": IntervalKind,
        "jobName": str | None,
        "jobState": JobState | None,
        "share": str | None,
        "priority": int | None,
        "units": int,
        "attempt": int | None,
        "outcome": Outcome | None,
        "from": str,
        "fromLow": str | None,
        "fromHigh": str | None,
        "until": str | None,
        "untilLow": str | None,
        "untilHigh": str | None,
    },
)
"""Instances of a pool for a while. Intervals of kinds past, running and planned never exceed the cap together."""


class SchedulePoolView(TypedDict):
    """Pool with its intervals."""

    name: str
    kind: Kind | None
    instanceType: str | None
    cap: int | None
    draining: bool
    intervals: list[ScheduleIntervalView]
    leftOut: int


class ServiceLoadView(TypedDict):
    """The values that give the cap of a service's pool: capacity x target x pressure - external, at least 1."""

    capacity: int
    target: float
    pressure: float
    throttledAt: str | None
    external: int
    externalAt: str | None
    windowSeconds: int | None


SettingsInForceView = dict[str, Any]
"""All settings but the pools, and the version to name when changing them."""


class ShareOfPoolView(TypedDict):
    """A share's part of a pool, in its units."""

    pool: str
    nominal: int
    own: int
    used: int
    held: int
    borrowed: int
    lent: int
    lends: int
    borrows: int | None
    limit: int | None
    limitedBy: str | None
    maxPerUser: int | None


class ShareUseView(TypedDict):
    """A share and its use of the queue."""

    name: str
    configured: bool
    weight: float
    lending: Lending
    running: int
    waiting: int
    fadedGpuHours: float
    budget: BudgetUseView | None
    pools: list[ShareOfPoolView]


class SharedPoolView(TypedDict):
    """A pool as the shares divide it, in its units."""

    name: str
    kind: Kind | None
    cap: int | None
    used: int
    held: int
    external: int
    unowned: int


class SharesView(TypedDict):
    """Shares with what they own, use, lend and borrow."""

    at: str
    order: Order
    usageHalfLifeSeconds: float
    more: bool
    shares: list[ShareUseView]
    pools: list[SharedPoolView]


class SizeSpeedView(TypedDict):
    """Speed of an elastic job at one size."""

    instances: int
    speedup: float
    perSecond: float | None
    reports: int
    measuredAt: str | None
    slowerThan: int | None
    retryAt: str | None


class SubmissionView(TypedDict):
    """Submitted job with warnings, and the jobs that it would preempt."""

    jobName: str
    kind: str
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
    reason: ReasonView | None
    estimatedStart: str | None
    estimatedStartLow: str | None
    estimatedStartHigh: str | None
    expectedEnd: str | None
    expectedEndLow: str | None
    expectedEndHigh: str | None
    deadline: DeadlineView | None
    endedAt: str | None
    submittedBy: str | None
    failureReason: str | None
    trainingJobName: str | None
    attempts: list[AttemptView]
    earlierAttempts: EarlierAttemptsView | None
    elastic: ElasticView | None
    details: dict[str, Any] | None
    submittedBefore: bool
    warnings: list[str]
    wouldPreempt: list[str]


# In the functional form, because a member is a Python keyword.
UsageView = TypedDict(
    "UsageView",
    {
        "at": str,
        "from": str,
        "to": str,
        "by": By,
        "jobsRead": int,
        "total": "UsageGroupView",
        "groups": "list[UsageGroupView]",
        "nextCursor": str | None,
    },
)
"""A part of the usage in a period. Numbers of all parts add up, and their waits are joined."""


class UsageGroupView(TypedDict):
    """Sums over jobs in the period. Instances count from the decision to start an attempt until its end."""

    name: str | None
    jobs: int
    submitted: int
    started: int
    completed: int
    failed: int
    stopped: int
    cancelled: int
    instanceHours: float
    acceleratorHours: float
    dollars: float
    unpricedInstanceHours: float
    preemptions: int
    lostInstanceHours: float
    lostAcceleratorHours: float
    unlistedAttempts: int
    waits: list[float]
    waitP50Seconds: float | None
    waitP95Seconds: float | None


class WhyView(TypedDict):
    """Diagnosis of a waiting job, beyond the members that every job has."""

    inTheWay: list[HolderView]
    jobsInTheWay: int
    external: list[ExternalHoldersView]
    reserved: ReservedView | None
    rule: str | None
    advice: list[AdviceView]
