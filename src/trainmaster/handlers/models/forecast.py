"""API models of forecasts: deadlines, causes of a wait, and the effects of a submission."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainmaster.handlers.models.base import ResponseModel
from trainmaster.handlers.models.elastic import Scaling
from trainmaster.handlers.models.pools import ManagedPoolChange
from trainmaster.handlers.models.reasons import Reason

Position = Annotated[
    int | None,
    Field(description="1 for the first job to be considered; null if it does not wait, or waits too deep to count."),
]
AtLeast = Annotated[int | None, Field(description="Set instead of the position if the queue is too deep to count.")]
Expected = Annotated[
    datetime | None,
    Field(description="Expected start, if jobs run as long as similar jobs did."),
]
Earliest = Annotated[datetime | None, Field(description="Start if the jobs ahead of it are quick.")]
Latest = Annotated[
    datetime | None,
    Field(description="Start if they are slow, within their limits; later submissions may delay it."),
]


class Deadline(ResponseModel):
    """Prospect of a job to meet its deadline."""

    deadline: datetime
    prospect: Annotated[
        Literal["in time", "urgent", "late", "lost"],
        Field(
            description=(
                "Urgent: it goes ahead of jobs of equal priority. Late: most similar jobs would not end in time."
            )
        ),
    ]
    latest_start: Annotated[
        datetime, Field(description="Latest start with which nine in ten similar jobs end in time.")
    ]
    urgent_from: Annotated[
        datetime | None, Field(description="Time from which it goes ahead of jobs of equal priority; null: never.")
    ]
    message: Annotated[str, Field(description="Prospect as a sentence.")]


class Holder(ResponseModel):
    """Job that holds instances which the waiting job could use."""

    job_name: str
    pool: str
    instances: int
    expected_end: Annotated[datetime, Field(description="Expected time of their release.")]
    overdue: Annotated[bool, Field(description="Whether it has run for longer than expected.")]
    stopping: Annotated[bool, Field(description="Whether it is stopping.")]
    giving_back: Annotated[int, Field(description="Instances that an elastic job releases now while it keeps running.")]


class ExternalHolders(ResponseModel):
    """Training jobs outside the queue that hold instances which the waiting job could use."""

    pool: str
    instances: Annotated[int, Field(description="Instances of the pool that all of them hold.")]
    training_job_names: Annotated[list[str], Field(description="At most ten of them.")]
    training_jobs: Annotated[int, Field(description="Number of all of them.")]


class Reserved(ResponseModel):
    """Reservation of a blocked job."""

    instances: Annotated[dict[str, int], Field(description="Instances by pool.")]
    at: Annotated[datetime | None, Field(description="Expected time at which they are free.")]


class Advice(ResponseModel):
    """Suggestion for the whole demand, verified by re-planning the current queue; one of the last members is set."""

    message: str
    priority: int | None
    pool: str | None


class Why(ResponseModel):
    """Diagnosis of a waiting job, beyond the members that every job has."""

    in_the_way: Annotated[list[Holder], Field(description="Jobs that are expected to end first, at most ten.")]
    jobs_in_the_way: Annotated[int, Field(description="Number of all such jobs.")]
    external: Annotated[list[ExternalHolders], Field(description="Training jobs outside the queue that are, by pool.")]
    reserved: Annotated[Reserved | None, Field(description="Null if there is none.")]
    rule: Annotated[
        str | None,
        Field(description="Rule of shares that keeps it from preempting jobs of lower priority; null if none does."),
    ]
    advice: Annotated[list[Advice], Field(description="At most three.")]


class Delay(ResponseModel):
    """Job that would start later."""

    job_name: str
    by_seconds: int
    expected_start: Annotated[datetime, Field(description="Without the new job.")]
    would_start: Annotated[datetime, Field(description="With the new job.")]


class Creation(ResponseModel):
    """Pool that the manager would create or enlarge for the job."""

    pool: str
    instance_type: str
    instances: Annotated[int, Field(description="Instances that the pool would have.")]
    dollars_per_hour: Annotated[
        float | None,
        Field(description="On-demand cost of the added instances while in use; null if unknown."),
    ]


class MadeDollars(ResponseModel):
    """Maximum cost per hour of all managed pools while all are in use, without unknown prices."""

    now: float
    then: Annotated[float, Field(description="The same after the next pass.")]


class Plan(ResponseModel):
    """Effects of a request if it were submitted now."""

    decision: Literal["start", "preempt", "wait"]
    position: Position
    position_at_least: AtLeast
    reason: Reason | None
    would_take: Annotated[
        dict[str, int], Field(description="Instances by pool on which the next pass would start it; otherwise empty.")
    ]
    would_preempt: Annotated[list[str], Field(description="Jobs that it would preempt.")]
    would_start: Annotated[list[str], Field(description="Jobs that the next pass would start only because of it.")]
    would_delay: Annotated[
        list[Delay], Field(description="Those of the next 20 jobs behind it that would start over a minute later.")
    ]
    would_create: Annotated[
        list[Creation], Field(description="Pools that the manager would create for it, if expansion were on.")
    ]
    would_create_none: Annotated[
        str | None,
        Field(description="If expansion is off and would create none: the reason. Otherwise `reason` has it."),
    ]
    expansion_enabled: Annotated[bool, Field(description="Whether the manager creates pools.")]
    would_change: Annotated[
        list[ManagedPoolChange],
        Field(description="All changes of managed pools in the next pass, for this job or others."),
    ]
    made_dollars_per_hour: Annotated[
        MadeDollars | None,
        Field(description="Null for a job that would be held or is in the queue already: it has no forecast."),
    ]
    estimated_start: Expected
    estimated_start_low: Earliest
    estimated_start_high: Latest
    deadline: Deadline | None
    scaling: Annotated[
        Scaling | None, Field(description="Speed of an elastic job by its size, as learned from jobs of its kind.")
    ]
    warnings: list[str]
