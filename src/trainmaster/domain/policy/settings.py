"""Settings of a queue: one declaration each, with its default, bounds and documentation.

The API model, the JSON schema, the reference page and the checks of `problems` derive from the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

from trainmaster.domain.capacity.units import MAX_CAP, Units
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.policy.declaration import MAX_COUNT, Setting

if TYPE_CHECKING:
    from typing_extensions import Self


DEFAULT_SHARE = "default"
"""The share of jobs without a `trainmaster:share` tag; it owns the units that no other share owns."""
TEN_YEARS: Final = timedelta(days=3_653).total_seconds()
"""Longest duration of a setting, in seconds."""
MAX_RESERVATION: Final = timedelta(days=7).total_seconds()
MAX_RESERVATIONS = 100
MAX_ACTIONS = 500
"""Each start and each preemption calls SageMaker, and a Lambda function ends after 15 minutes."""
MAX_SHARES = 200
"""All settings are one row of the table, which holds at most 400 KB."""
MAX_ROLES = 100
MAX_PATTERNS = 100


def _span(doc: str) -> Setting:
    """Return the declaration of a duration that may be 0."""
    return Setting(doc, maximum=TEN_YEARS)


def _period(doc: str, default: str = "", maximum: float = TEN_YEARS) -> Setting:
    """Return the declaration of a duration that must be longer than 0."""
    return Setting(doc, maximum=maximum, above_minimum=True, default=default)


def _count(doc: str, default: str = "") -> Setting:
    return Setting(doc, maximum=MAX_COUNT, default=default)


def _size(doc: str) -> Setting:
    """Return the declaration of a number of instances, or of such numbers by pool."""
    return Setting(doc, maximum=MAX_CAP)


def _callers(doc: str) -> Setting:
    """Return the declaration of patterns of callers."""
    return Setting(doc, max_items=MAX_ROLES, example=("arn:aws:iam::111122223333:role/vision-*",))


# Each member has a strategy of the same name in `planner/orders`.
class Order(StrEnum):
    """Order of jobs of equal priority.

    fifo: first in, first out; no job passes an equal that waits for the same pool.
    backfill: EASY backfill; later jobs pass if they delay none of the first blocked ones (Lifka, 1995).
    gittins: jobs with little work left go first, the more so the longer the queue (Yu and Scully, 2024).
    fair: jobs of the share with the least usage of its entitlement go first, then as `backfill`.
    """

    FIFO = "fifo"
    BACKFILL = "backfill"
    GITTINS = ("gittins", True)
    FAIR = "fair"

    preempts_equals: bool
    """Jobs of equal priority may preempt each other if true; readers of the queue then read more of it."""

    def __new__(cls, value: str, preempts_equals: bool = False) -> Self:  # noqa: FBT001, FBT002 -- of the members above
        """Return a member with its trait."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.preempts_equals = preempts_equals
        return member

    @classmethod
    def _missing_(cls, value: object) -> Order | None:
        """Return the order that has replaced one of this name, which settings and exports may still hold."""
        return cls.GITTINS if value == "least-attained-service" else None


class Placement(StrEnum):
    """Choice among pools that could all hold a job (Liu et al. 2022, section 3.2, and `best-fit`).

    best-fit: the pool whose instances fit the job best, then the fullest, so that large holes stay large.
    """

    RANDOM = "random"
    ROUND_ROBIN = "round-robin"
    PICK_KX = "pick-kx"
    RESOURCE_PICK_KX = "resource-pick-kx"
    SMOOTH_WEIGHTED_ROUND_ROBIN = "smooth-weighted-round-robin"
    BEST_FIT = "best-fit"


class Choose(StrEnum):
    """Choice among the instance types that cover a demand, for a managed pool."""

    SMALLEST = "smallest"
    CHEAPEST = "cheapest"


@dataclass(frozen=True, slots=True)
class Expansion:
    """Rules on pools that the manager creates for jobs that no other pool could hold (Liu et al. 2022, 3.3)."""

    enabled: Annotated[bool, Setting("Whether the manager creates pools; what runs in them costs money.")] = False
    types: Annotated[
        tuple[str, ...],
        Setting(
            "Instance types that it may use, as names with `*`, each of which matches a known type; empty for all.",
            max_items=MAX_PATTERNS,
            example=("ml.g5.*", "ml.g6.*"),
        ),
    ] = ()
    max_per_type: Annotated[
        int, _size("Maximum instances of one type in managed pools; not more than `maxInstances`.")
    ] = 8
    max_instances: Annotated[int, _size("Maximum instances in all managed pools.")] = 16
    dollars_per_hour: Annotated[
        float | None,
        Setting(
            "Maximum cost per hour of all managed pools while all are in use, on demand; null for no limit. "
            "With a limit, types without a known price are not used."
        ),
    ] = None
    choose: Annotated[Choose, Setting("Which of the suitable types to use.")] = Choose.CHEAPEST
    utilization: Annotated[
        float,
        Setting(
            "Target utilization of managed pools, `f` in equation 10 of the article.", maximum=1, above_minimum=True
        ),
    ] = 0.8
    retire_after: Annotated[
        timedelta,
        _period("Idle time after which the manager removes a managed pool, or gives back idle units of one in use."),
    ] = timedelta(minutes=30)

    def allows(self, instance_type: str) -> bool:
        """Return whether the manager may use this type; `*` matches any text, every other character itself."""
        globs = (".*".join(map(re.escape, pattern.split("*"))) for pattern in self.types)
        return not self.types or any(re.fullmatch(glob, instance_type) for glob in globs)


@dataclass(frozen=True, slots=True)
class Preemption:
    """Protection against thrashing; a job may request other values within `limits`."""

    min_runtime: Annotated[
        timedelta, _span("Minimum time that an attempt works before it can be preempted (Slurm, `PreemptExemptTime`).")
    ] = timedelta(0)
    cooldown: Annotated[timedelta, _span("The same for a resumed attempt, if longer.")] = timedelta(minutes=10)
    delay: Annotated[
        timedelta, _span("Minimum wait before a job can preempt others (YuniKorn, `preemption.delay`).")
    ] = timedelta(0)
    max_preemptions: Annotated[
        int | None, _count("Number of preemptions after which a job is protected, never killed; null for no limit.")
    ] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionOverrides:
    """Preemption rules that a job requests instead of the queue's; None for the queue's (see `Preemption`)."""

    min_runtime: timedelta | None = None
    cooldown: timedelta | None = None
    delay: timedelta | None = None
    max_preemptions: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the preemption rules that jobs may request instead of the queue's."""

    max_min_runtime: Annotated[
        timedelta,
        _span(
            "Maximum of the tags `trainmaster:min-runtime` and `trainmaster:graceful-shutdown-timeout`, and of "
            "`preemption.minRuntimeSeconds`."
        ),
    ] = timedelta(hours=4)
    max_cooldown: Annotated[
        timedelta, _span("Maximum of the tag `trainmaster:cooldown`, and of `preemption.cooldownSeconds`.")
    ] = timedelta(hours=4)
    min_max_preemptions: Annotated[int, _count("Minimum of the tag `trainmaster:max-preemptions`.")] = 1


class Lending(StrEnum):
    """Use of the units that a share does not use itself (AWS Batch quota shares, "resource sharing")."""

    RESERVE = "reserve"
    LEND = "lend"
    LEND_AND_BORROW = "lend-and-borrow"


class WhenSpent(StrEnum):
    """Treatment of the jobs of a share whose budget is spent."""

    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Budget:
    """Budget of a share for each period, counted from 1970-01-01 UTC; at least one of the two bounds is set."""

    gpu_hours: Annotated[float | None, Setting("Maximum accelerators times hours; null for no limit.")] = None
    dollars: Annotated[float | None, Setting("Maximum cost, by the prices of the pools; null for no limit.")] = None
    period: Annotated[timedelta, _period("Length of a period.")] = timedelta(days=30)
    when_spent: Annotated[WhenSpent, Setting("Whether new jobs then wait for the next period, or are refused.")] = (
        WhenSpent.WAIT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A team's claim on pools, in instances by pool name."""

    name: str
    nominal: Annotated[Units, _size("Own quota: instances of each pool; over all shares, at most the pool's cap.")] = (
        field(default_factory=dict)
    )
    lending: Annotated[
        Lending, Setting("Whether it lends the idle instances of its quota, and whether it borrows.")
    ] = Lending.LEND_AND_BORROW
    lends: Annotated[
        Units, _size("Maximum of its own quota that it lends; all of it if a pool is absent; not with `reserve`.")
    ] = field(default_factory=dict)
    borrows: Annotated[
        Units,
        _size(
            "Maximum beyond its own quota that it borrows; no limit if a pool is absent; only with `lend-and-borrow`."
        ),
    ] = field(default_factory=dict)
    weight: Annotated[float, Setting("Weight among borrowers, by which its usage is divided; 0: it borrows last.")] = (
        1.0
    )
    max: Annotated[Units, _size("Maximum instances that its jobs hold at the same time.")] = field(default_factory=dict)
    max_per_user: Annotated[Units, _size("The same for each of its users.")] = field(default_factory=dict)
    budget: Annotated[Budget | None, Setting("Budget for each period; null for none.")] = None
    max_priority: Annotated[
        int | None,
        Setting("Maximum priority of its jobs; null for no limit.", minimum=-MAX_PRIORITY, maximum=MAX_PRIORITY),
    ] = None
    allow_non_preemptible: Annotated[
        bool, Setting("Whether its jobs may have `trainmaster:preemptible=false`, if the deployment allows it.")
    ] = True
    max_job_instances: Annotated[int | None, _size("Maximum instances of each of its jobs; null for no limit.")] = None
    max_job_dollars_per_hour: Annotated[
        float | None, Setting("Maximum cost of each of its jobs, by the prices of pools and types; null for no limit.")
    ] = None
    admins: Annotated[
        tuple[str, ...],
        _callers("Callers that may cancel, hold, release and re-prioritize its jobs, and answer for their resizes."),
    ] = ()
    submitters: Annotated[
        tuple[str, ...], _callers("Callers that may submit to it, beside its admins; empty for all callers.")
    ] = ()
    resizers: Annotated[
        tuple[str, ...],
        _callers("Callers that may also answer for custom resizes of its jobs, such as the functions' roles."),
    ] = ()
    prefers: Annotated[
        tuple[str, ...],
        Setting(
            "Pools in which its jobs that request resources start first, in order of preference, if they name none.",
            example=("ml.g6.12xlarge", "ml.g5.12xlarge"),
        ),
    ] = ()


class FailureClass(StrEnum):
    """Class of a failed attempt, which decides about retries."""

    CAPACITY = "capacity"
    SERVICE = "service"
    SPOT = "spot"
    ALGORITHM = "algorithm"


_FAILURES: Final[Mapping[str, str]] = {
    FailureClass.CAPACITY: "No instances (`CapacityError`, `ResourceLimitExceeded`); no limit by default.",
    FailureClass.SERVICE: "Error of SageMaker itself (`InternalServerError`); 3 retries by default.",
    FailureClass.SPOT: "Interrupted, and not resumed in time; no limit by default.",
    FailureClass.ALGORITHM: "Error of the user's code; no retry by default.",
}


@dataclass(frozen=True, slots=True)
class Retry:
    """Retries after failures of one class; members that a class omits take the default values of that class."""

    max_retries: Annotated[
        int | None, _count("Failures of the class after which the job fails; null for no limit.", "of the class")
    ] = 0
    first_delay: Annotated[timedelta, _period("Wait before the first retry; doubled each time.")] = timedelta(minutes=1)
    max_delay: Annotated[timedelta, _period("Maximum wait before a retry; not less than the first.")] = timedelta(
        minutes=16
    )


def default_retries() -> Mapping[FailureClass, Retry]:
    """Return the default of `Policy.retries`: no limit for missing capacity, none for the user's own code."""
    return {
        FailureClass.CAPACITY: Retry(max_retries=None),
        FailureClass.SERVICE: Retry(max_retries=3),
        FailureClass.SPOT: Retry(max_retries=None),
        FailureClass.ALGORITHM: Retry(max_retries=0),
    }


@dataclass(frozen=True, slots=True)
class Resizes:
    """Rules on the resizes of elastic jobs."""

    enabled: Annotated[
        bool, Setting("Whether elastic jobs grow and shrink; if not, they start with their minimum size and keep it.")
    ] = True
    shrink_equals: Annotated[
        bool, Setting("Whether a waiting job can shrink running jobs of its own priority to their minimum size.")
    ] = False
    payback: Annotated[
        float,
        Setting(
            "Minimum gain of a growth, or of a shrink for equals, as a multiple of the work that it costs; 0 for none."
        ),
    ] = 2.0


@dataclass(frozen=True, slots=True)
class Gittins:
    """The four parameters of the order `gittins` (Yu and Scully, 2024), and its lane, which is off by default."""

    average_weight: Annotated[
        float,
        Setting(
            "How much short average times count against the longest waits: 0 for order of arrival; the larger, the "
            "earlier jobs that are expected to end soon."
        ),
    ] = 0.35
    restart_budget: Annotated[
        float,
        Setting("Part of the GPU time that restarts may cost; beyond it, jobs do not preempt equals.", maximum=1),
    ] = 0.01
    min_attempt: Annotated[
        timedelta, _span("Shortest attempt: the run time before which equals do not preempt a job.")
    ] = timedelta(minutes=90)
    switch_ratio: Annotated[
        float,
        Setting("How many times better than a running job a waiting one has to be to take its place.", minimum=1),
    ] = 3.0
    guaranteed_lane: Annotated[
        float,
        Setting(
            "Part of the GPUs for those jobs of 8 GPUs and more that have waited longest, before jobs that are "
            "expected to end sooner; 0 for none.",
            maximum=1,
        ),
    ] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All settings of a queue but its pools."""

    order: Annotated[Order, Setting("Order of jobs of equal priority.")] = Order.BACKFILL
    gittins: Annotated[Gittins, Setting("Parameters of the order `gittins`.")] = field(default_factory=Gittins)
    reservations: Annotated[
        int,
        Setting(
            "Number of the first blocked jobs of a pool that get a reservation (Flux, `reservation-depth`).",
            maximum=MAX_RESERVATIONS,
        ),
    ] = 4
    patience: Annotated[
        timedelta,
        _period("Wait after which a job goes first within its priority and gets a reservation, in any order."),
    ] = timedelta(days=28)
    preemption: Annotated[Preemption, Setting("Protection against thrashing.")] = field(default_factory=Preemption)
    limits: Annotated[Limits, Setting("Limits on the preemption rules that a job may request.")] = field(
        default_factory=Limits
    )
    shares: Annotated[
        Mapping[str, Share],
        Setting(
            "Shares by name (letters, digits, `-`, `_` and `.`, at most 63); a share that is not here has no quota.",
            max_items=MAX_SHARES,
        ),
    ] = field(default_factory=dict)
    usage_half_life: Annotated[
        timedelta, _period("Time after which past usage counts half (Slurm, `PriorityDecayHalfLife`).")
    ] = timedelta(days=7)
    retries: Annotated[Mapping[FailureClass, Retry], Setting("Retries by class of failure.", keys=_FAILURES)] = field(
        default_factory=default_retries
    )
    reservation_timeout: Annotated[
        timedelta,
        _period(
            "How long capacity stays reserved for the job for which it was freed.",
            "`ReservationTimeoutSeconds` of the deployment",
            MAX_RESERVATION,
        ),
    ] = timedelta(hours=1)
    placement: Annotated[Placement, Setting("Policy that chooses among pools that could all hold a job.")] = (
        Placement.BEST_FIT
    )
    cpu_weight: Annotated[
        float,
        Setting(
            "Weight of CPUs relative to accelerators in `smooth-weighted-round-robin`, `alpha` in equation 6.",
            maximum=1,
        ),
    ] = 0.5
    expansion: Annotated[Expansion, Setting("Pools that the manager creates.")] = field(default_factory=Expansion)
    resizes: Annotated[Resizes, Setting("Resizes of elastic jobs.")] = field(default_factory=Resizes)
    max_actions: Annotated[
        int,
        Setting(
            "Maximum starts and preemptions in one pass of the manager; "
            "four starts of other kinds of jobs count as one.",
            minimum=1,
            maximum=MAX_ACTIONS,
        ),
    ] = 50
