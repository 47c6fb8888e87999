"""The settings that a queue decides by: order, reservations, preemption, shares, budgets, retries.

Values only, each with the default that a queue has before anybody sets anything. It must not decide: deciding is
`planner/`; whether settings make sense is `policy_problems`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Self

from trainmaster.domain.capacity.units import Units

DEFAULT_SHARE = "default"
"""The share of jobs without a `trainmaster:share` tag; it owns what no other share does."""


class Order(StrEnum):
    """How jobs of equal priority are ordered; the strategies are in `planner/orders`.

    fifo: first in, first out; nobody passes an equal that waits for the same pool.
    backfill: EASY; later jobs pass where they delay none of the first blocked ones (Lifka, 1995).
    least-attained-service: those that have received least run, by discrete levels (Tiresias, NSDI 2019).
    fair: jobs of the share that uses least of what it is due go first, then as `backfill`.
    """

    FIFO = "fifo"
    BACKFILL = "backfill"
    LEAST_ATTAINED_SERVICE = ("least-attained-service", True)
    FAIR = "fair"

    preempts_equals: bool
    """Whether jobs of equal priority may preempt each other; readers of the queue then count on it."""

    def __new__(cls, value: str, preempts_equals: bool = False) -> Self:  # noqa: FBT001, FBT002 -- of the members above
        """Return a member with its trait."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.preempts_equals = preempts_equals
        return member


class Placement(StrEnum):
    """How the queue chooses among pools that could all hold a job (Liu et al. 2022, section 3.2, and `best-fit`).

    best-fit: the pool whose instances fit the job best, then the fullest, so that large holes stay large.
    """

    RANDOM = "random"
    ROUND_ROBIN = "round-robin"
    PICK_KX = "pick-kx"
    RESOURCE_PICK_KX = "resource-pick-kx"
    SMOOTH_WEIGHTED_ROUND_ROBIN = "smooth-weighted-round-robin"
    BEST_FIT = "best-fit"


class Choose(StrEnum):
    """Which of the types that cover a demand the manager makes a pool of."""

    SMALLEST = "smallest"
    CHEAPEST = "cheapest"


@dataclass(frozen=True, slots=True)
class Expansion:
    """Whether, and how far, the manager makes pools for demands that no pool could ever hold (Liu et al. 2022, 3.3).

    Attributes:
        enabled: off until somebody says otherwise: pools cost money while they are used.
        types: the types that it may use, as names with `*`; empty for all that are known.
        most_per_type: most instances of one type in pools that it made.
        most: most instances in all pools that it made.
        dollars_per_hour: most that all of them together may cost an hour; None for no bound. Types without a known
            price are not used where there is one.
        choose: which of the types that would do.
        utilisation: target use of what it made, `f` of equation 10.
        retire_after: a pool that it made is removed once nobody has used it for so long.
    """

    enabled: bool = False
    types: tuple[str, ...] = ()
    most_per_type: int = 8
    most: int = 16
    dollars_per_hour: float | None = None
    choose: Choose = Choose.CHEAPEST
    utilisation: float = 0.8
    retire_after: timedelta = timedelta(minutes=30)

    def allows(self, instance_type: str) -> bool:
        """Whether the manager may use this type; `*` stands for any characters, every other one for itself."""
        globs = (".*".join(map(re.escape, pattern.split("*"))) for pattern in self.types)
        return not self.types or any(re.fullmatch(glob, instance_type) for glob in globs)


@dataclass(frozen=True, slots=True)
class Preemption:
    """What keeps preemption from thrashing; a job may ask for other values within `Limits`.

    Attributes:
        min_runtime: an attempt is not preempted before it has worked this long (Slurm, `PreemptExemptTime`).
        cooldown: nor a resumed one before it has worked this long, where that is longer.
        delay: a job preempts nobody before it has waited this long (YuniKorn, `preemption.delay`).
        most: preemptions after which a job is protected (never killed); None for no bound.
    """

    min_runtime: timedelta = timedelta(0)
    cooldown: timedelta = timedelta(minutes=10)
    delay: timedelta = timedelta(0)
    most: int | None = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionOverrides:
    """Preemption rules that a job asks for instead of the queue's; None for the queue's (see `Preemption`)."""

    min_runtime: timedelta | None = None
    cooldown: timedelta | None = None
    delay: timedelta | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How far jobs may ask for other preemption rules than the queue's.

    Attributes:
        longest_min_runtime: for `trainmaster:min-runtime`.
        longest_cooldown: for `trainmaster:cooldown`.
        fewest_preemptions: for `trainmaster:max-preemptions`.
    """

    longest_min_runtime: timedelta = timedelta(hours=4)
    longest_cooldown: timedelta = timedelta(hours=4)
    fewest_preemptions: int = 1


class Lending(StrEnum):
    """What a share does with units that it does not use (AWS Batch quota shares, "resource sharing")."""

    RESERVE = "reserve"
    LEND = "lend"
    LEND_AND_BORROW = "lend-and-borrow"


class WhenSpent(StrEnum):
    """What happens to jobs of a share whose budget is spent."""

    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Budget:
    """What a share may use in each period; None for no bound. Periods follow each other from 1970 on.

    Attributes:
        gpu_hours: accelerators times hours.
        dollars: by the pools' prices.
        period: length of a period.
        when_spent: whether new jobs are refused at the door, or wait for the next period.
    """

    gpu_hours: float | None = None
    dollars: float | None = None
    period: timedelta = timedelta(days=30)
    when_spent: WhenSpent = WhenSpent.WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A team's claim on pools. Units by pool name.

    Attributes:
        nominal: units that are its own.
        lending: whether it lends what is idle, and whether it borrows.
        lends: most units that it lends of each pool; all its own where a pool is absent.
        borrows: most units beyond its own that it borrows of each pool; unlimited where a pool is absent.
        weight: its part among borrowers; usage counts divided by it.
        most: most units that its jobs hold at once, in all.
        most_per_user: the same for each of its users.
        roles: caller ARN patterns (with `*`) that may submit to it; empty for everybody.
        prefers: pools that its jobs are started in first, best first, where they name none themselves.
    """

    name: str
    nominal: Units = field(default_factory=dict)
    lending: Lending = Lending.LEND_AND_BORROW
    lends: Units = field(default_factory=dict)
    borrows: Units = field(default_factory=dict)
    weight: float = 1.0
    most: Units = field(default_factory=dict)
    most_per_user: Units = field(default_factory=dict)
    budget: Budget | None = None
    roles: tuple[str, ...] = ()
    prefers: tuple[str, ...] = ()


class FailureClass(StrEnum):
    """Why an attempt failed, as far as trying again is concerned.

    capacity: no instances (`CapacityError`, `ResourceLimitExceeded`). service: SageMaker's own fault
    (`InternalServerError`). spot: interrupted and not resumed in time. algorithm: the user's code.
    """

    CAPACITY = "capacity"
    SERVICE = "service"
    SPOT = "spot"
    ALGORITHM = "algorithm"


@dataclass(frozen=True, slots=True)
class Retry:
    """How failures of one class are tried again.

    Attributes:
        most: failures of the class after which the job fails; None for no bound.
        first: wait before the first new try; doubled each time.
        longest: the wait is never longer.
    """

    most: int | None = 0
    first: timedelta = timedelta(seconds=60)
    longest: timedelta = timedelta(minutes=16)


def default_retries() -> Mapping[FailureClass, Retry]:
    """Missing capacity is waited for, SageMaker's own faults are tried again, the user's code is not."""
    return {
        FailureClass.CAPACITY: Retry(most=None),
        FailureClass.SERVICE: Retry(most=3),
        FailureClass.SPOT: Retry(most=None),
        FailureClass.ALGORITHM: Retry(most=0),
    }


@dataclass(frozen=True, slots=True)
class Resizes:
    """How far the queue resizes elastic jobs by itself.

    Attributes:
        enabled: whether elastic jobs grow and shrink; without it they start, and stay, with their least size.
        shrink_equals: whether a job that waits has running ones of its own priority shrink back to their least size.
        payback: a growth has to be expected to bring so many times the work that it costs.
    """

    enabled: bool = True
    shrink_equals: bool = False
    payback: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Settings of the queue that a pass obeys.

    Attributes:
        order: among jobs of equal priority.
        reservations: how many of the first blocked jobs of a pool are reserved for (Flux, `reservation-depth`).
        patience: a job that has waited longer goes first within its priority and is reserved for, in any order.
        preemption: what keeps preemption from thrashing.
        limits: how far jobs may ask for other rules.
        shares: by name; a share that is not here has nothing of its own.
        usage_half_life: after this long, past usage counts half (Slurm, `PriorityDecayHalfLife`).
        retries: by class of failure.
        hold_for: how long freed capacity is kept for the job that it was freed for.
        placement: how the queue chooses among pools that could all hold a job.
        cpu_weight: what CPUs count against accelerators in `smooth-weighted-round-robin`, from 0 to 1 (`alpha` of
            equation 6).
        expansion: whether the manager makes pools for what no pool can hold.
        resizes: how far elastic jobs are resized.
        most_actions: most starts and preemptions of one pass, so that a Lambda call ends in time; several starts of
            image jobs count as one (`planner.deciding`).
    """

    order: Order = Order.BACKFILL
    reservations: int = 1
    patience: timedelta = timedelta(days=28)
    preemption: Preemption = field(default_factory=Preemption)
    limits: Limits = field(default_factory=Limits)
    shares: Mapping[str, Share] = field(default_factory=dict)
    usage_half_life: timedelta = timedelta(days=7)
    retries: Mapping[FailureClass, Retry] = field(default_factory=default_retries)
    hold_for: timedelta = timedelta(hours=1)
    placement: Placement = Placement.BEST_FIT
    cpu_weight: float = 0.5
    expansion: Expansion = field(default_factory=Expansion)
    resizes: Resizes = field(default_factory=Resizes)
    most_actions: int = 50
