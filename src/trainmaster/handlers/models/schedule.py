"""API models of the schedule; `handlers.views.schedule` fills them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from trainmaster.domain.capacity.units import Kind
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.handlers.models.base import ResponseModel
from trainmaster.service.explain.timeline import IntervalKind


class ScheduleInterval(ResponseModel):
    """Instances of a pool for a while. Intervals of kinds past, running and planned never exceed the cap together."""

    kind: Annotated[
        IntervalKind,
        Field(
            description=(
                "past: an attempt held them, or an elastic one had this size. running: an attempt holds them, until "
                "its expected end. planned: a job is expected to. reserved: the scheduler keeps them for a blocked job "
                "from the time at which it expects them to be free. held: they were freed for a job. warm: a warm pool "
                "keeps them. external: training jobs from outside the queue hold them. closed: the training plan's "
                "capacity is not usable."
            )
        ),
    ]
    job_name: Annotated[str | None, Field(description="Null for warm, external and closed.")]
    job_state: JobState | None
    share: str | None
    priority: int | None
    units: Annotated[int, Field(description="Instances; requests in a pool of kind service.")]
    attempt: Annotated[int | None, Field(description="Number of the attempt; null for what has not started.")]
    outcome: Annotated[
        Outcome | None, Field(description="Of a past attempt; `resized` if it continued with another size.")
    ]
    start: Annotated[datetime, Field(alias="from", description="Beginning; expected if it is planned or reserved.")]
    start_low: Annotated[
        datetime | None, Field(alias="fromLow", description="Beginning if jobs are quick; null unless planned.")
    ]
    start_high: Annotated[
        datetime | None, Field(alias="fromHigh", description="Beginning if they are slow; null unless planned.")
    ]
    until: Annotated[datetime | None, Field(description="End; expected if it is not past. Null if it is unknown.")]
    until_low: Annotated[
        datetime | None, Field(description="End if jobs are quick; null unless the job runs or is planned.")
    ]
    until_high: Annotated[
        datetime | None, Field(description="End if they are slow; null unless the job runs or is planned.")
    ]


class SchedulePool(ResponseModel):
    """Pool with its intervals."""

    name: str
    kind: Annotated[Kind | None, Field(description="Null if the pool does not exist now.")]
    instance_type: Annotated[str | None, Field(description="Empty for a pool of kind service.")]
    cap: Annotated[int | None, Field(description="Present cap; null if the pool does not exist now.")]
    draining: bool
    intervals: Annotated[list[ScheduleInterval], Field(description="In the order of their beginnings.")]
    left_out: Annotated[int, Field(description="Further intervals of the period: those furthest from now.")]


class Schedule(ResponseModel):
    """Attempts, running jobs and planned starts in a period, by pool."""

    at: Annotated[datetime, Field(description="Time of the answer: what begins later is a forecast.")]
    start: Annotated[datetime, Field(alias="from", description="Beginning of the period.")]
    until: Annotated[datetime, Field(alias="to", description="End of the period.")]
    past_from: Annotated[
        datetime,
        Field(description="Time from which no past attempt is missing; after `from` if too many jobs have ended."),
    ]
    more: Annotated[
        bool, Field(description="Whether jobs wait that have no planned interval: the queue is not read to its end.")
    ]
    pools: Annotated[list[SchedulePool], Field(description="In the order of their names.")]
