"""Capacity in units: pools and demands.

A unit is one instance; in a pool of kind service it is one concurrent request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from trainmaster.domain.capacity import instances
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.compat import StrEnum

Units = Mapping[str, int]
"""Instances by pool name; concurrent requests in a pool of kind `SERVICE`."""
MAX_CAP = 1_000_000
"""Largest cap of a pool, and largest number of its units in any setting."""


RECLAIMED_BEFORE = timedelta(minutes=30)
"""Time before the end of a training plan's reserved capacity at which SageMaker begins to take its instances back
(SageMaker developer guide, "Training plans utilization for SageMaker training jobs")."""


class Kind(StrEnum):
    """Source of a pool's instances; `SERVICE`: its units are requests to a service."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    TRAINING_PLAN = "training-plan"
    SERVICE = "service"


class PlanStatus(StrEnum):
    """`TrainingPlanStatus` (SageMaker API, DescribeTrainingPlan).

    Between two reserved capacities of one plan it is Scheduled again (developer guide, "View training plan details").
    """

    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    ACTIVE = "Active"
    EXPIRED = "Expired"
    FAILED = "Failed"


OVER = frozenset({PlanStatus.EXPIRED, PlanStatus.FAILED})
"""Statuses of a plan that will never be usable again."""


@dataclass(frozen=True, slots=True)
class PlanWindow:
    """Status and reserved capacity of a training plan.

    Attributes:
        status: its status.
        starts_at: start of the reserved capacity that is usable now or next; None if there is none left.
        ends_at: end of that capacity.
        instances: its total instances; None if SageMaker does not report them.
    """

    status: PlanStatus
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    instances: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLoad:
    """The values from which the cap of a service's pool follows, as the kind of jobs that uses the service has them.

    Attributes:
        capacity: requests that the service takes at once.
        target: part of them that jobs may make, as configured.
        pressure: factor of the target after throttling, above 0; 1 without throttling.
        throttled_at: time of the newest throttling that lowered it, UTC; None if there was none.
        external: requests of other callers, which the cap leaves out.
        external_at: time of their measurement, UTC; None without one that counts.
        window: time over which they are measured; None if they are not measured.
    """

    capacity: int
    target: float = 1.0
    pressure: float = 1.0
    throttled_at: datetime | None = None
    external: int = 0
    external_at: datetime | None = None
    window: timedelta | None = None


@dataclass(frozen=True)
class Pool:
    """Named capacity of one kind with a cap.

    Attributes:
        name: its name; by default the instance type.
        cap: maximum units that jobs may hold at once.
        count_external: whether external training jobs count against the cap.
        type_: the ML instance type of its units; "" for the name.
        kind: on demand, spot, or a training plan.
        plan_arn: of a training plan.
        starts_at: when the reserved capacity of a training plan begins that is usable now or next; None before
            SageMaker was asked (DescribeTrainingPlan, `ReservedCapacitySummaries`).
        ends_at: when that one ends; SageMaker takes its instances back 30 minutes before.
        price: US dollars an instance-hour, for budgets; 0 if not set.
        accelerators_per_unit: accelerators of an instance; 0 for those of its type.
        plan_status: status of a training plan; None before it is known.
        draining: whether no more jobs start in it; running ones continue to their ends.
        status: of a service that is not serving; it is draining then. "" of all others.
        load: of a service with a limited capacity; None of all others.
        made_for: the demand that it was made for (`planner/expansion/expand.py`); "" for a pool that people set.
        made_at: when the manager made it or last made it larger.
        raised_at: when people last let more jobs into it: a larger cap, the end of a drain, external jobs not counted.
        vcpus, memory_gib, accelerator, accelerator_memory_gib: of an instance, as `resources.InstanceType` has them;
            0 or "" for what is known of its type.
    """

    name: str
    cap: int
    count_external: bool = True
    type_: str = ""
    kind: Kind = Kind.ON_DEMAND
    plan_arn: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    price: float = 0.0
    accelerators_per_unit: int = 0
    plan_status: PlanStatus | None = None
    draining: bool = False
    made_for: str = ""
    made_at: datetime | None = None
    vcpus: int = 0
    memory_gib: float = 0.0
    accelerator: str = ""
    accelerator_memory_gib: float = 0.0
    status: str = ""
    raised_at: datetime | None = field(default=None, compare=False)
    load: ServiceLoad | None = field(default=None, compare=False)

    @property
    def instance_type(self) -> str:
        """The ML instance type that the pool's units are of; "" of a service's."""
        return "" if self.kind is Kind.SERVICE else self.type_ or self.name

    @cached_property
    def accelerators(self) -> int:
        """Accelerators of one unit; a request has none."""
        if self.kind is Kind.SERVICE:
            return 0
        return self.accelerators_per_unit or instances.accelerators_of(self.instance_type)

    @property
    def reclaimed_at(self) -> datetime | None:
        """Time at which SageMaker begins to take its instances back; None if it does not, or if that is unknown."""
        if self.kind is not Kind.TRAINING_PLAN or self.ends_at is None:
            return None
        return self.ends_at - RECLAIMED_BEFORE


@dataclass(frozen=True)
class Demand:
    """A job's demand: any one of the alternatives, with all units of that one together.

    A plain job and one with `InstanceGroups` have one alternative; `InstancePreferences` give one per entry, in
    the caller's order.

    Attributes:
        alternatives: units by pool name.
        queue_selects_pool: whether the queue chooses among them; otherwise SageMaker does, after the start.
        resources: minimum resources of every instance; None for a job that names types or pools only. Such a demand is
            resolved against the pools of every snapshot (`resolve`).
        instances: instances that a demand with `resources` needs.
        listed: number of alternatives that the job names itself, best first; the others follow from its resources, and
            the queue's placement policy chooses among them.
    """

    alternatives: tuple[Units, ...]
    queue_selects_pool: bool = False
    resources: Resources | None = None
    instances: int = 0
    listed: int = 0

    @cached_property
    def size(self) -> int:
        """The units of the largest alternative."""
        return max((sum(units.values()) for units in self.alternatives), default=self.instances)

    @cached_property
    def pools(self) -> tuple[str, ...]:
        """Every pool that the job could use, sorted."""
        return tuple(sorted({name for units in self.alternatives for name in units}))

    @cached_property
    def types(self) -> str:
        """The pools that the job could use as text; its resources instead, if it requests these."""
        return ",".join(self.pools) if self.resources is None else f"?{self.resources}"

    def sized(self, instances: int) -> Demand:
        """Return the demand of a job that needs this many instances of one pool, whichever it is."""
        alternatives = tuple(dict.fromkeys(units, instances) for units in self.alternatives)
        return replace(self, alternatives=alternatives, instances=instances if self.instances else 0)

    @property
    def named(self) -> tuple[Units, ...]:
        """The alternatives that the job names itself, best first."""
        return self.alternatives if self.resources is None else self.alternatives[: self.listed]

    @cached_property
    def lane(self) -> str:
        """The part of a lane's name for the pools that its jobs can run in; independent of the pools in force."""
        pools = "|".join(",".join(sorted(units)) for units in self.named)
        return pools if self.resources is None else f"{pools}?{self.resources}"

    @cached_property
    def equivalence_key(self) -> str:
        """Equal for demands that the same pools meet in the same order, whatever pools exist."""
        return repr((self.named, self.queue_selects_pool, self.resources, self.instances))


def is_service_pool(name: str) -> bool:
    """Return whether a pool's units are a service's concurrent requests; people cannot give a pool such a name."""
    return "/" in name


def counted(count: int, pool: str) -> str:
    """So many units of a pool, in words."""
    if not is_service_pool(pool):
        return f"{count} x {pool}"
    return f"{count} request{'s' if count != 1 else ''} at {pool}"


def total(parts: Iterable[Units]) -> dict[str, int]:
    """Return the sum of units by pool."""
    result: dict[str, int] = {}
    for units in parts:
        for name, count in units.items():
            result[name] = result.get(name, 0) + count
    return result


def covers(available: Units, asked: Units) -> bool:
    """Return whether `available` has at least the units of `asked` in every pool."""
    for name, count in asked.items():  # noqa: SIM110 -- a hot path, where a generator triples the time
        if available.get(name, 0) < count:
            return False
    return True


def worst_case(alternatives: Iterable[Units]) -> dict[str, int]:
    """Return the maximum of each pool over the alternatives, for the time before SageMaker chooses one of them.

    SageMaker checks the quota of every listed type and chooses later (SageMaker developer guide, "instance
    preferences"), so until then a cap must carry them all.
    """
    result: dict[str, int] = {}
    for units in alternatives:
        for name, count in units.items():
            result[name] = max(result.get(name, 0), count)
    return result


def in_settings(pools: Mapping[str, Pool]) -> dict[str, Pool]:
    """Return the pools stored in the settings; each snapshot discovers those of services."""
    return {name: pool for name, pool in pools.items() if pool.kind is not Kind.SERVICE}


def reclaimed_at(units: Units, pools: Mapping[str, Pool]) -> datetime | None:
    """Return when SageMaker begins to take any of these units back; None if it does not, or if that is unknown."""
    times = (pools[name].reclaimed_at for name in units if name in pools)
    return min((time for time in times if time is not None), default=None)


def pool_for(pools: Mapping[str, Pool], kind: Kind, instance_type: str) -> str | None:
    """Return the pool of this kind and type; of several, the one named after its type, else the first by name."""
    found = [pool.name for pool in pools.values() if pool.kind is kind and pool.instance_type == instance_type]
    return min(found, key=lambda name: (name != instance_type, name), default=None)


def pool_of_plan(pools: Mapping[str, Pool], plan_arn: object) -> Pool | None:
    """Return the pool of a training plan."""
    return next((pool for pool in pools.values() if pool.plan_arn is not None and pool.plan_arn == plan_arn), None)


def source(instance_type: str, *, spot: bool = False, plan_arn: str | None = None) -> str:
    """Return the source of a training job's instances, independent of pools: a plan's ARN, or a type, possibly spot."""
    return plan_arn or (f"{instance_type}.{Kind.SPOT}" if spot else instance_type)
