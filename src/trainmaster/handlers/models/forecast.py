"""What is foreseen, as it travels: deadlines, what stands in a job's way, what a submission would do.

It must not foresee anything: `service.explain`, `service.why` and `service.consequences` do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainmaster.handlers.models.base import ResponseModel
from trainmaster.handlers.models.pools import ManagedPoolChange
from trainmaster.handlers.models.reasons import Reason

Position = Annotated[
    int | None,
    Field(description="1 for the first to be considered; null where it is not waiting, or too deep to count."),
]
AtLeast = Annotated[int | None, Field(description="Set instead of position where the queue is too deep to count.")]
Expected = Annotated[
    datetime | None,
    Field(description="When it is expected to start, if jobs run as long as is usual for their kind."),
]
Earliest = Annotated[datetime | None, Field(description="When it would start if the jobs before it were quick.")]
Latest = Annotated[
    datetime | None,
    Field(description="When it would start if they were slow, none beyond its limit; later arrivals may put it off."),
]


class Deadline(ResponseModel):
    """How a job stands to its deadline."""

    deadline: datetime
    prospect: Annotated[
        Literal["in time", "urgent", "late", "lost"],
        Field(description="Urgent: it goes before its equals. Late: most of its like would not be done in time."),
    ]
    latest_start: Annotated[datetime, Field(description="When it has to start, nine times in ten.")]
    urgent_from: Annotated[datetime | None, Field(description="When it begins to go before its equals; null: never.")]
    message: Annotated[str, Field(description="The same as a sentence.")]


class Holder(ResponseModel):
    """A job that holds instances which the waiting one could use."""

    job_name: str
    pool: str
    instances: int
    expected_end: Annotated[datetime, Field(description="When it is expected to give them back.")]
    overdue: Annotated[bool, Field(description="Whether it has run for longer than was expected of it.")]
    stopping: Annotated[bool, Field(description="Whether it has been asked to stop.")]
    giving_back: Annotated[int, Field(description="How many of these an elastic job gives back now, and runs on.")]


class Reserved(ResponseModel):
    """What is reserved for a blocked job."""

    instances: Annotated[dict[str, int], Field(description="By pool.")]
    at: Annotated[datetime | None, Field(description="When that much is expected to be free.")]


class Advice(ResponseModel):
    """Something that would help, as the planner says of the queue as it is; one of the last three is set."""

    message: str
    priority: int | None
    instances: int | None
    pool: str | None


class Why(ResponseModel):
    """The whole story of a waiting job, beyond what every job shows."""

    in_the_way: Annotated[list[Holder], Field(description="The first that are expected to end, ten at most.")]
    jobs_in_the_way: Annotated[int, Field(description="How many there are in all.")]
    reserved: Annotated[Reserved | None, Field(description="Null where nothing is.")]
    advice: list[Advice]


class Delay(ResponseModel):
    """A job that would start later."""

    job_name: str
    by_seconds: int
    expected_start: Annotated[datetime, Field(description="As things are.")]
    would_start: Annotated[datetime, Field(description="With the new job before it.")]


class Creation(ResponseModel):
    """A pool that the manager would make, or make larger, for the job."""

    pool: str
    instance_type: str
    instances: Annotated[int, Field(description="That the pool would have in all.")]
    dollars_per_hour: Annotated[
        float | None,
        Field(description="What the instances that it adds cost on demand while in use; null where nobody knows."),
    ]


class MadeDollars(ResponseModel):
    """What all pools that the manager made may cost an hour when all they have is in use; without unknown prices."""

    now: float
    then: Annotated[float, Field(description="After the next pass: more for what it makes, less for what it removes.")]


class Plan(ResponseModel):
    """What would happen to a request, and to others, if it were submitted now."""

    decision: Literal["start", "preempt", "wait"]
    position: Position
    position_at_least: AtLeast
    reason: Reason | None
    would_take: Annotated[
        dict[str, int], Field(description="Instances by pool that the next pass would start it on; else empty.")
    ]
    would_preempt: Annotated[list[str], Field(description="Jobs that would step aside for it.")]
    would_start: Annotated[list[str], Field(description="Jobs that the next pass would start, and would not without.")]
    would_delay: Annotated[
        list[Delay], Field(description="Of the next 20 jobs behind it those that would start over a minute later.")
    ]
    would_create: Annotated[
        list[Creation], Field(description="Pools that would be made for it, or would be if expansion were on.")
    ]
    would_create_none: Annotated[
        str | None,
        Field(description="Where expansion is off, and would make none if it were on: why. Else the reason says so."),
    ]
    expansion_enabled: Annotated[bool, Field(description="Whether the queue makes pools by itself.")]
    would_change: Annotated[
        list[ManagedPoolChange],
        Field(description="All that the next pass would do to pools that the manager made, for this job or not."),
    ]
    made_dollars_per_hour: Annotated[
        MadeDollars | None,
        Field(description="Null for a job that would be held, or that is in the queue already: nothing is foreseen."),
    ]
    estimated_start: Expected
    estimated_start_low: Earliest
    estimated_start_high: Latest
    deadline: Deadline | None
    warnings: list[str]
