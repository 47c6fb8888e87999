"""The settings as they travel: GET and PUT /settings, member for member, and their part of the OpenAPI document.

Names and types are checked here, what settings mean in `domain.policy_problems`; `domain.settings` is the one reader
and writer of the document. It must not decide what a setting does.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from trainmaster.domain.capacity.pools import LARGEST_CAP
from trainmaster.domain.document import Document
from trainmaster.domain.policy.document import settings_document
from trainmaster.domain.policy.problems import LONGEST, MAX_ACTIONS, MAX_RESERVATIONS
from trainmaster.domain.policy.settings import (
    Budget,
    Choose,
    Lending,
    Order,
    Placement,
    Policy,
    Retry,
    Share,
    WhenSpent,
)
from trainmaster.handlers.models.base import Asked
from trainmaster.ports.store import QueueSettings

_POLICY = Policy()
_RULES, _LIMITS = _POLICY.preemption, _POLICY.limits
_EXPANSION, _RESIZES = _POLICY.expansion, _POLICY.resizes
_SHARE, _BUDGET, _RETRY = Share(name=""), Budget(), Retry()

Seconds = Annotated[float, Field(ge=0, le=LONGEST.total_seconds(), allow_inf_nan=False)]
Period = Annotated[float, Field(gt=0, le=LONGEST.total_seconds(), allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=0, le=LARGEST_CAP)]
Units = dict[str, Annotated[int, Field(ge=0, le=LARGEST_CAP)]]


class PreemptionSettings(Asked):
    """What keeps preemption from thrashing; jobs may ask for other values within `limits`."""

    min_runtime_seconds: Annotated[
        Seconds, Field(description="An attempt is not preempted before it has worked this long.")
    ] = _RULES.min_runtime.total_seconds()
    cooldown_seconds: Annotated[
        Seconds, Field(description="Nor a resumed one before it has worked this long, where that is longer.")
    ] = _RULES.cooldown.total_seconds()
    delay_seconds: Annotated[Seconds, Field(description="A job preempts nobody before it has waited this long.")] = (
        _RULES.delay.total_seconds()
    )
    most: Annotated[
        Count | None, Field(description="Preemptions after which a job is protected; null for no bound.")
    ] = _RULES.most


class LimitSettings(Asked):
    """How far jobs may ask for other preemption rules than the queue's."""

    longest_min_runtime_seconds: Annotated[Seconds, Field(description="For the tag trainmaster:min-runtime.")] = (
        _LIMITS.longest_min_runtime.total_seconds()
    )
    longest_cooldown_seconds: Annotated[Seconds, Field(description="For the tag trainmaster:cooldown.")] = (
        _LIMITS.longest_cooldown.total_seconds()
    )
    fewest_preemptions: Annotated[Count, Field(description="For the tag trainmaster:max-preemptions.")] = (
        _LIMITS.fewest_preemptions
    )


class BudgetSettings(Asked):
    """What a share may use in each period, counted from 1970-01-01 UTC; at least one of the two bounds."""

    gpu_hours: Annotated[Amount | None, Field(description="Accelerators times hours.")] = _BUDGET.gpu_hours
    dollars: Annotated[Amount | None, Field(description="By the pools' prices.")] = _BUDGET.dollars
    period_seconds: Annotated[Period, Field(description="Length of a period.")] = _BUDGET.period.total_seconds()
    when_spent: Annotated[
        WhenSpent, Field(strict=False, description="Whether jobs then wait for the next period, or are refused.")
    ] = _BUDGET.when_spent


class ShareSettings(Asked):
    """A team's claim on pools, in instances by pool name."""

    nominal: Annotated[Units, Field(default_factory=dict, description="Its own.")]
    lending: Annotated[
        Lending, Field(strict=False, description="Whether it lends what is idle, and whether it borrows.")
    ] = _SHARE.lending
    lends: Annotated[
        Units, Field(default_factory=dict, description="Most of its own that it lends; all, where a pool is absent.")
    ]
    borrows: Annotated[
        Units,
        Field(default_factory=dict, description="Most beyond its own that it borrows; unbounded, where one is absent."),
    ]
    weight: Annotated[Amount, Field(description="Its part among borrowers; 0: it borrows last.")] = _SHARE.weight
    most: Annotated[Units, Field(default_factory=dict, description="Most that its jobs hold at once, in all.")]
    most_per_user: Annotated[Units, Field(default_factory=dict, description="The same for each of its users.")]
    budget: Annotated[BudgetSettings | None, Field(description="Null for none.")] = None
    roles: Annotated[
        list[str],
        Field(
            default_factory=list,
            description="Callers that may submit to it, as ARN patterns with `*`; empty for everybody.",
            examples=[["arn:aws:sts::111122223333:assumed-role/vision-*"]],
        ),
    ]
    prefers: Annotated[
        list[str],
        Field(
            default_factory=list,
            description="Pools in which its jobs that ask for resources are started first, best first.",
            examples=[["ml.g6.12xlarge", "ml.g5.12xlarge"]],
        ),
    ]


class RetrySettings(Asked):
    """How failures of one class are tried again; what is absent is as by default for that class."""

    most: Annotated[
        Count | None,
        Field(default_factory=lambda: None, description="Failures after which the job fails; null for no bound."),
    ]
    first_seconds: Annotated[Period, Field(description="Wait before the first new try; doubled each time.")] = (
        _RETRY.first.total_seconds()
    )
    longest_seconds: Annotated[Period, Field(description="The wait is never longer.")] = _RETRY.longest.total_seconds()


class RetriesSettings(Asked):
    """By class of failure."""

    capacity: Annotated[
        RetrySettings, Field(default_factory=RetrySettings, description="No instances to be had; unbounded by default.")
    ]
    service: Annotated[
        RetrySettings, Field(default_factory=RetrySettings, description="SageMaker's own fault; 3 by default.")
    ]
    spot: Annotated[
        RetrySettings,
        Field(default_factory=RetrySettings, description="Interrupted and not resumed in time; unbounded by default."),
    ]
    algorithm: Annotated[
        RetrySettings, Field(default_factory=RetrySettings, description="The user's own code; 0 by default.")
    ]


class ExpansionSettings(Asked):
    """Whether, and how far, the manager makes pools for jobs that no other pool could hold."""

    enabled: Annotated[bool, Field(description="Off until somebody turns it on: what runs in pools costs money.")] = (
        _EXPANSION.enabled
    )
    types: Annotated[
        list[str],
        Field(
            default_factory=list,
            description="Instance types that it may use, as names with `*`; empty for all that are known.",
            examples=[["ml.g5.*", "ml.g6.*"]],
        ),
    ]
    most_per_type: Annotated[Size, Field(description="Most instances of one type in pools that it made.")] = (
        _EXPANSION.most_per_type
    )
    most: Annotated[Size, Field(description="Most instances in all pools that it made.")] = _EXPANSION.most
    dollars_per_hour: Annotated[
        Amount | None,
        Field(
            description="Most that all of them may cost an hour while all are in use, on demand; null for no bound. "
            "With a bound, types without a known price are not used."
        ),
    ] = _EXPANSION.dollars_per_hour
    choose: Annotated[Choose, Field(strict=False, description="Which of the types that would do.")] = _EXPANSION.choose
    utilisation: Annotated[
        float,
        Field(gt=0, le=1, allow_inf_nan=False, description="The part of what it made that ought to be in use."),
    ] = _EXPANSION.utilisation
    retire_after_seconds: Annotated[
        Period,
        Field(
            description="A pool that it made is removed once nobody has held any of it for so long, or made smaller."
        ),
    ] = _EXPANSION.retire_after.total_seconds()


class ResizeSettings(Asked):
    """How far the queue resizes elastic jobs by itself."""

    enabled: Annotated[
        bool, Field(description="Whether elastic jobs grow and shrink; without it they keep their least size.")
    ] = _RESIZES.enabled
    shrink_equals: Annotated[
        bool, Field(description="Whether a waiting job has running ones of its own priority give, down to the least.")
    ] = _RESIZES.shrink_equals
    payback: Annotated[
        Amount, Field(description="A growth has to be expected to bring so many times the work that its pause costs.")
    ] = _RESIZES.payback


_EXAMPLE: dict[str, Any] = {
    "order": "backfill",
    "preemption": {"minRuntimeSeconds": 600, "cooldownSeconds": 1800},
    "shares": {
        "vision": {
            "nominal": {"ml.p5.48xlarge": 4},
            "lends": {"ml.p5.48xlarge": 2},
            "budget": {"gpuHours": 20000, "whenSpent": "wait"},
        },
        "speech": {"nominal": {"ml.p5.48xlarge": 2}, "lending": "reserve"},
    },
    "version": 3,
}


class Settings(Asked):
    """All settings but the pools: what is absent is as by default, and a share that is not named is gone."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    order: Annotated[Order, Field(strict=False, description="Among jobs of equal priority.")] = _POLICY.order
    reservations: Annotated[
        int,
        Field(ge=0, le=MAX_RESERVATIONS, description="How many of the first blocked jobs of a pool are reserved for."),
    ] = _POLICY.reservations
    patience_seconds: Annotated[
        Period, Field(description="A job that has waited longer goes first within its priority, in any order.")
    ] = _POLICY.patience.total_seconds()
    preemption: Annotated[PreemptionSettings, Field(default_factory=PreemptionSettings)]
    limits: Annotated[LimitSettings, Field(default_factory=LimitSettings)]
    shares: Annotated[dict[str, ShareSettings], Field(default_factory=dict, description="By name.")]
    usage_half_life_seconds: Annotated[Period, Field(description="After this long, past usage counts half.")] = (
        _POLICY.usage_half_life.total_seconds()
    )
    retries: Annotated[RetriesSettings, Field(default_factory=RetriesSettings)]
    hold_for_seconds: Annotated[
        Period,
        Field(
            default_factory=_POLICY.hold_for.total_seconds,
            description="How long freed capacity is kept for the job that it was freed for; absent: as deployed.",
        ),
    ]
    placement: Annotated[
        Placement,
        Field(strict=False, description="How the queue chooses among pools that could all hold a job."),
    ] = _POLICY.placement
    cpu_weight: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            allow_inf_nan=False,
            description="What vCPUs count against accelerators in `smooth-weighted-round-robin`.",
        ),
    ] = _POLICY.cpu_weight
    expansion: Annotated[ExpansionSettings, Field(default_factory=ExpansionSettings)]
    resizes: Annotated[ResizeSettings, Field(default_factory=ResizeSettings)]
    most_actions: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_ACTIONS,
            description="Most starts and preemptions of one pass of the manager; four starts of image jobs are one.",
        ),
    ] = _POLICY.most_actions
    version: Annotated[
        int | None,
        Field(ge=0, description="Where given, refused (409) unless it is still the version in force, pools included."),
    ] = None

    @property
    def document(self) -> Document:
        """What the caller said, and nothing else."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude={"version"})


class SettingsInForce(Settings):
    """All settings but the pools, and the version to name when changing them."""

    version: int


def in_force(settings: QueueSettings) -> Document:
    """The answer that tells them, as `SettingsInForce`."""
    return {**settings_document(settings.policy), "version": settings.version}
