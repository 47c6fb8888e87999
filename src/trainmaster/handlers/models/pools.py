"""API models of pools: their settings and their use; `handlers.views.pools` fills them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from trainmaster.domain.capacity.pool_history import PoolAction
from trainmaster.domain.capacity.pools import HIGHEST_PRICE, MAX_ACCELERATORS, MAX_GIB, MAX_NAME_LENGTH, MAX_VCPUS
from trainmaster.domain.capacity.units import MAX_CAP, Kind, PlanStatus
from trainmaster.handlers.models.base import RequestModel, ResponseModel
from trainmaster.service.capacity.pool_usage import State

INSTANCE_TYPE = r"^ml\.[a-z0-9-]{1,30}\.[a-z0-9-]{1,30}$"
MAX_POOLS = 200

_OF_TYPE = "Per instance; 0: as known of the type."
Cap = Annotated[int, Field(ge=0, le=MAX_CAP, description="Maximum instances that jobs hold at the same time.")]
CountExternal = Annotated[bool, Field(description="Whether training jobs from outside the queue count toward the cap.")]
Price = Annotated[float, Field(ge=0, le=HIGHEST_PRICE, description="Dollars per hour of one instance, for budgets.")]
Draining = Annotated[bool, Field(description="Whether the pool starts no more jobs; running jobs end by themselves.")]
Accelerators = Annotated[int, Field(ge=0, le=MAX_ACCELERATORS, description=_OF_TYPE)]
VCpus = Annotated[int, Field(ge=0, le=MAX_VCPUS, description=_OF_TYPE)]
Memory = Annotated[float, Field(ge=0, le=MAX_GIB, description="GiB per instance; 0: as known of the type.")]
Maker = Annotated[
    str,
    Field(
        max_length=32,
        description="Manufacturer of the accelerators, in lower case; empty: as known of the type.",
        examples=["nvidia"],
    ),
]
AcceleratorMemory = Annotated[
    float,
    Field(ge=0, le=MAX_GIB, description="GiB of all accelerators of an instance; 0: as known of the type."),
]
Version = Annotated[
    int | None, Field(ge=0, description="Expected version in force; otherwise the request is rejected (409).")
]

# ---------------------------------------------------------------- requests


class PoolParts(RequestModel):
    """Members of a pool beside its name and type."""

    kind: Annotated[Kind, Field(strict=False, description="Kind of capacity.")] = Kind.ON_DEMAND
    training_plan_arn: Annotated[
        str | None, Field(max_length=2048, description="Required for a pool of kind training-plan.")
    ] = None
    cap: Cap
    count_external: CountExternal = True
    draining: Draining = False
    price: Price = 0.0
    vcpus: VCpus = 0
    memory_gib: Memory = 0.0
    accelerators: Accelerators = 0
    accelerator: Maker = ""
    accelerator_memory_gib: AcceleratorMemory = 0.0


class PoolSetting(PoolParts):
    """Pool: capacity of one instance type and one kind. Omitted members have their defaults."""

    instance_type: Annotated[str, Field(pattern=INSTANCE_TYPE, examples=["ml.p5.48xlarge"])]
    name: Annotated[
        str | None,
        Field(
            max_length=MAX_NAME_LENGTH,
            description="By default the instance type, followed by `.` and the kind if it is not on demand.",
            examples=["p5-spot"],
        ),
    ] = None


class PoolSettings(RequestModel):
    """All pools; an omitted pool is removed. Jobs that hold more than a lowered cap keep running."""

    pools: Annotated[list[PoolSetting], Field(max_length=MAX_POOLS)]
    version: Version = None


class NamedPool(PoolParts):
    """Pool of the name in the path; the name is the instance type if there is none."""

    instance_type: Annotated[str | None, Field(pattern=INSTANCE_TYPE, examples=["ml.p5.48xlarge"])] = None
    version: Version = None


class PoolChange(RequestModel):
    """Change of a pool; omitted and null members stay as they are."""

    cap: Cap | None = None
    count_external: CountExternal | None = None
    draining: Draining | None = None
    price: Price | None = None
    vcpus: VCpus | None = None
    memory_gib: Memory | None = None
    accelerators: Accelerators | None = None
    accelerator: Maker | None = None
    accelerator_memory_gib: AcceleratorMemory | None = None
    version: Version = None


# ---------------------------------------------------------------- responses


class ServiceLoad(ResponseModel):
    """The values that give the cap of a service's pool: capacity x target x pressure - external, at least 1."""

    capacity: Annotated[int, Field(description="Requests that the service takes at once.")]
    target: Annotated[float, Field(description="Part of the capacity that jobs may use, as configured.")]
    pressure: Annotated[
        float, Field(description="Factor of the target after throttling; it recovers to 1 within minutes.")
    ]
    throttled_at: Annotated[
        datetime | None, Field(description="Newest throttling that lowered it; null if the factor is 1.")
    ]
    external: Annotated[int, Field(description="Requests that other callers make at once, at least.")]
    external_at: Annotated[datetime | None, Field(description="Time of their measurement; null if there are none.")]
    window_seconds: Annotated[
        int | None, Field(description="Time over which they are measured; null if they are not measured.")
    ]


class Pool(ResponseModel):
    """The state of a pool, in instances; a pool of kind service counts requests, and exists while jobs need it."""

    name: str
    instance_type: Annotated[str, Field(description="Empty for a pool of kind service.")]
    kind: Kind
    training_plan_arn: str | None
    plan_status: Annotated[
        PlanStatus | None, Field(description="Status of the training plan as last read from SageMaker; null before.")
    ]
    starts_at: Annotated[
        datetime | None, Field(description="Beginning of the plan's capacity that is usable now or next.")
    ]
    ends_at: Annotated[
        datetime | None,
        Field(description="End of that capacity; SageMaker reclaims its instances half an hour before."),
    ]
    state: Annotated[State, Field(description="draining: it starts no more jobs; drained: and holds none.")]
    made_for: Annotated[
        str | None, Field(description="Demand for which the manager created the pool; null if a user set it.")
    ]
    made_at: Annotated[datetime | None, Field(description="Time at which the manager created or last enlarged it.")]
    price: Annotated[float, Field(description="Dollars per hour of one instance; 0 if not set.")]
    on_demand_price: Annotated[float, Field(description="On-demand price of the instance type; 0 if unknown.")]
    vcpus: Annotated[int, Field(description="Per instance; 0 if unknown.")]
    memory_gib: Annotated[float, Field(description="Per instance; 0 if unknown.")]
    accelerators: Annotated[int, Field(description="Per instance.")]
    accelerator: Annotated[str | None, Field(description="Manufacturer; null if there are none or it is unknown.")]
    accelerator_memory_gib: Annotated[float, Field(description="All accelerators of an instance together.")]
    cap: int
    quota: Annotated[
        int | None,
        Field(description="Quota of the account where it is below the cap, as SageMaker last reported it; it applies."),
    ]
    quota_at: Annotated[datetime | None, Field(description="Time at which SageMaker reported that quota.")]
    used: Annotated[int, Field(description="Instances held by jobs of the queue, including stopping ones.")]
    stopping: Annotated[int, Field(description="Used instances whose jobs are stopping.")]
    beyond_minimum: Annotated[int, Field(description="Used instances of elastic jobs beyond their minimum size.")]
    held: Annotated[int, Field(description="Instances reserved for jobs.")]
    external: Annotated[int, Field(description="Instances held by training jobs from outside the queue, if counted.")]
    warm: Annotated[int, Field(description="Instances in warm pools of ended jobs.")]
    free: Annotated[int, Field(description="0 if the pool starts no jobs.")]
    load: Annotated[
        ServiceLoad | None,
        Field(description="Load of a service; null for instances, and for services whose capacity is not checked."),
    ]
    count_external: bool
    waiting: Annotated[int, Field(description="Waiting jobs that could run there, even if elsewhere too.")]
    waiting_units: Annotated[int, Field(description="Instances that they would use in all.")]
    waiting_more: Annotated[bool, Field(description="Whether more may wait: the queue is not read to its end.")]
    weight: Annotated[
        float,
        Field(
            description="Weight in the placement policy smooth-weighted-round-robin, "
            "from 0 to 1; 0 if the policy does not choose it."
        ),
    ]
    setting: Annotated[
        dict[str, Any],
        Field(
            description="The pool as `PUT /pools` takes it: only what people have set. Empty for a pool of "
            "kind service, which cannot be set."
        ),
    ]


Dollars = Annotated[
    float | None,
    Field(description="Change of the maximum cost per hour; null if unknown."),
]


class ManagedPoolChange(ResponseModel):
    """Change of a managed pool: creation or growth, shrinking, or removal."""

    change: PoolAction
    pool: str
    instance_type: str
    before: Annotated[int, Field(description="Instances before; 0 for a new pool.")]
    after: Annotated[int, Field(description="Instances after; 0 for a removed pool.")]
    dollars_per_hour: Dollars
    made_for: Annotated[str, Field(description="Demand for which the pool was created.")]
    jobs: Annotated[list[str], Field(description="First five of the waiting jobs that caused it.")]
    job_count: Annotated[int, Field(description="Number of such jobs.")]
    why: Annotated[str, Field(description="Reason as a sentence.")]


class ManagedPoolEvent(ManagedPoolChange):
    """Change of a managed pool with its time."""

    at: datetime


class Pools(ResponseModel):
    """All pools, and the version to name in a change."""

    pools: list[Pool]
    version: int
    history: Annotated[
        list[ManagedPoolEvent] | None,
        Field(description="Last 50 changes of managed pools, newest first; null without `history=true`."),
    ] = None


class Removal(Pools):
    """Remaining pools, and the jobs that the removal affects."""

    moved: Annotated[int, Field(description="Waiting jobs that can run elsewhere.")]
    stranded: Annotated[int, Field(description="Waiting jobs that can run nowhere else; only if forced.")]
    more: Annotated[bool, Field(description="Whether there may be more of both: the queue was not read to its end.")]
    running: Annotated[list[str], Field(description="Jobs that keep running there; only if forced.")]
