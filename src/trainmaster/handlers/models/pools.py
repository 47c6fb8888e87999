"""The shapes of pools that travel: what may be set of them, and how they stand, member for member.

It must not know the domain's objects beyond names and bounds: `pool_views.py` makes answers of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from trainmaster.domain.capacity.pool_history import PoolAction
from trainmaster.domain.capacity.pools import HIGHEST_PRICE, MAX_ACCELERATORS, MAX_GIB, MAX_NAME_LENGTH, MAX_VCPUS
from trainmaster.domain.capacity.units import LARGEST_CAP, Kind, PlanStatus
from trainmaster.handlers.models.base import RequestModel, ResponseModel
from trainmaster.service.capacity.pool_usage import State

INSTANCE_TYPE = r"^ml\.[a-z0-9-]{1,30}\.[a-z0-9-]{1,30}$"
MAX_POOLS = 200

_OF_TYPE = "Of one instance; 0: as known of the type."
Cap = Annotated[int, Field(ge=0, le=LARGEST_CAP, description="Most instances that jobs may hold at once.")]
Foreign = Annotated[
    bool, Field(description="Whether training jobs that did not come from the queue count against the cap.")
]
Price = Annotated[float, Field(ge=0, le=HIGHEST_PRICE, description="Dollars for an hour of one instance, for budgets.")]
Draining = Annotated[bool, Field(description="Nothing more is started in it; what runs there ends by itself.")]
Accelerators = Annotated[int, Field(ge=0, le=MAX_ACCELERATORS, description=_OF_TYPE)]
VCpus = Annotated[int, Field(ge=0, le=MAX_VCPUS, description=_OF_TYPE)]
Memory = Annotated[float, Field(ge=0, le=MAX_GIB, description="GiB of one instance; 0: as known of the type.")]
Maker = Annotated[
    str,
    Field(
        max_length=32,
        description="Who makes the accelerators, in small letters; empty: as known of the type.",
        examples=["nvidia"],
    ),
]
AcceleratorMemory = Annotated[
    float,
    Field(ge=0, le=MAX_GIB, description="GiB of all accelerators of one instance; 0: as known of the type."),
]
Version = Annotated[
    int | None, Field(ge=0, description="Where given, refused (409) unless it is still the version in force.")
]

# ---------------------------------------------------------------- asked


class PoolParts(RequestModel):
    """What a pool has beside its name and type."""

    kind: Annotated[Kind, Field(strict=False, description="How SageMaker gives the instances.")] = Kind.ON_DEMAND
    training_plan_arn: Annotated[
        str | None, Field(max_length=2048, description="Of a pool of kind training-plan, which needs it.")
    ] = None
    cap: Cap
    count_foreign: Foreign = False
    draining: Draining = False
    price: Price = 0.0
    vcpus: VCpus = 0
    memory_gib: Memory = 0.0
    accelerators: Accelerators = 0
    accelerator: Maker = ""
    accelerator_memory_gib: AcceleratorMemory = 0.0


class PoolSetting(PoolParts):
    """A pool: capacity of one instance type and one kind. What is absent is as by default."""

    instance_type: Annotated[str, Field(pattern=INSTANCE_TYPE, examples=["ml.p5.48xlarge"])]
    name: Annotated[
        str | None,
        Field(
            max_length=MAX_NAME_LENGTH,
            description="Without one: the instance type, followed by `.` and the kind where it is not on demand.",
            examples=["p5-spot"],
        ),
    ] = None


class PoolSettings(RequestModel):
    """All pools: one that is not named is gone. Jobs that hold more than a lowered cap run on."""

    pools: Annotated[list[PoolSetting], Field(max_length=MAX_POOLS)]
    version: Version = None


class NamedPool(PoolParts):
    """The pool of the name in the path; without an instance type the name is the type."""

    instance_type: Annotated[str | None, Field(pattern=INSTANCE_TYPE, examples=["ml.p5.48xlarge"])] = None
    version: Version = None


class PoolChange(RequestModel):
    """What to change of a pool; what is absent or null stays as it is."""

    cap: Cap | None = None
    count_foreign: Foreign | None = None
    draining: Draining | None = None
    price: Price | None = None
    vcpus: VCpus | None = None
    memory_gib: Memory | None = None
    accelerators: Accelerators | None = None
    accelerator: Maker | None = None
    accelerator_memory_gib: AcceleratorMemory | None = None
    version: Version = None


# ---------------------------------------------------------------- answered


class Pool(ResponseModel):
    """The state of a pool, in instances; a pool of kind service counts requests, and exists while jobs need it."""

    name: str
    instance_type: Annotated[str, Field(description="Empty for a pool of kind service.")]
    kind: Kind
    training_plan_arn: str | None
    plan_status: Annotated[
        PlanStatus | None, Field(description="Of the training plan, as SageMaker last told; null before it has.")
    ]
    starts_at: Annotated[
        datetime | None, Field(description="When the plan's capacity begins that is usable now or next.")
    ]
    ends_at: Annotated[
        datetime | None, Field(description="When that capacity ends; its instances go half an hour before.")
    ]
    state: Annotated[
        State, Field(description="Draining: nothing more is started in it; drained: and nothing is held any more.")
    ]
    made_for: Annotated[
        str | None, Field(description="The demand that the manager made the pool for; null where people set it.")
    ]
    made_at: Annotated[datetime | None, Field(description="When the manager made it, or last made it larger.")]
    price: Annotated[float, Field(description="Dollars for an hour of one instance; 0 where nobody has set one.")]
    on_demand_price: Annotated[
        float, Field(description="The same as known of the instance type on demand; 0 where nothing is known.")
    ]
    vcpus: Annotated[int, Field(description="Of one instance; 0 where nothing is known.")]
    memory_gib: Annotated[float, Field(description="Of one instance; 0 where nothing is known.")]
    accelerators: Annotated[int, Field(description="Of one instance.")]
    accelerator: Annotated[str | None, Field(description="Who makes them; null where there are none, or nobody knows.")]
    accelerator_memory_gib: Annotated[float, Field(description="Of all accelerators of one instance together.")]
    cap: int
    used: Annotated[int, Field(description="Held by jobs of the queue, stopping ones included.")]
    stopping: Annotated[int, Field(description="Of those used: on the way to be free.")]
    beyond_least: Annotated[
        int, Field(description="Of those used: held by elastic jobs beyond their least size, which these could give.")
    ]
    held: Annotated[int, Field(description="Kept for jobs that they were freed for.")]
    foreign: Annotated[int, Field(description="Held by training jobs that did not come from the queue, where counted.")]
    warm: Annotated[int, Field(description="Kept by SageMaker in warm pools of ended jobs, those being ended too.")]
    free: Annotated[int, Field(description="None where nothing may start.")]
    count_foreign: bool
    waiting: Annotated[int, Field(description="Waiting jobs that could run there, whether or not elsewhere, too.")]
    waiting_units: Annotated[int, Field(description="What those would take of it, all together.")]
    waiting_more: Annotated[
        bool, Field(description="Whether more may wait than were counted: the queue is not read to its end for this.")
    ]
    weight: Annotated[
        float,
        Field(
            description="Its part in the placement policy smooth-weighted-round-robin, "
            "from 0 to 1; 0 where the queue does not choose it by itself."
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
    Field(description="What its instances may cost an hour from then on, more or (below 0) less; null: nobody knows."),
]


class ManagedPoolChange(ResponseModel):
    """What the manager does to a pool of its own: makes it or makes it larger, makes it smaller, or removes it."""

    change: PoolAction
    pool: str
    instance_type: str
    before: Annotated[int, Field(description="Instances; 0 of a pool that is made.")]
    after: Annotated[int, Field(description="0 of one that is removed.")]
    dollars_per_hour: Dollars
    made_for: Annotated[str, Field(description="The demand that the pool was made for.")]
    jobs: Annotated[list[str], Field(description="The first five of the waiting jobs that it is done for.")]
    job_count: Annotated[int, Field(description="How many there are.")]
    why: Annotated[str, Field(description="The reason as a sentence.")]


class ManagedPoolEvent(ManagedPoolChange):
    """What the manager did, and when."""

    at: datetime


class Pools(ResponseModel):
    """All pools, and the version to name when changing them."""

    pools: list[Pool]
    version: int
    history: Annotated[
        list[ManagedPoolEvent] | None,
        Field(description="What the manager has done to its own pools, the last 50, newest first; null if not asked."),
    ] = None


class Removal(Pools):
    """The pools that are left, and what became of the jobs that waited for the one that is gone."""

    moved: Annotated[int, Field(description="Waiting jobs that could have run there, and can elsewhere.")]
    stranded: Annotated[int, Field(description="Waiting jobs that can run nowhere now; only where it was forced.")]
    more: Annotated[bool, Field(description="Whether there may be more of both: not all that wait were read.")]
    running: Annotated[list[str], Field(description="Jobs that run on there; only where it was forced.")]
