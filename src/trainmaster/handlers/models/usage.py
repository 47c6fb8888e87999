"""API models of usage reports; `handlers.views.usage` fills them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from trainmaster.handlers.models.base import ResponseModel
from trainmaster.service.explain.usage import By


class UsageGroup(ResponseModel):
    """Sums over jobs in the period. Instances count from the decision to start an attempt until its end."""

    name: Annotated[str | None, Field(description="Share, pool, user or priority; null for the total.")]
    jobs: Annotated[int, Field(description="Jobs that held capacity.")]
    submitted: Annotated[int, Field(description="Jobs that entered the queue.")]
    started: Annotated[int, Field(description="Jobs that started for the first time.")]
    completed: int
    failed: int
    stopped: int
    cancelled: int
    instance_hours: float
    accelerator_hours: Annotated[float, Field(description="Hours times accelerators; an instance may have none.")]
    dollars: Annotated[float, Field(description="By the prices of pools, or of types on demand.")]
    unpriced_instance_hours: Annotated[float, Field(description="Part of `instanceHours` without a known price.")]
    preemptions: Annotated[int, Field(description="Attempts that were preempted.")]
    lost_instance_hours: Annotated[
        float, Field(description="Work of preempted attempts since their newest known checkpoints.")
    ]
    lost_accelerator_hours: float
    unlisted_attempts: Annotated[
        int, Field(description="Attempts that their jobs no longer list one by one; their hours are missing.")
    ]
    waits: Annotated[
        list[float], Field(description="Seconds from the entry of each started job to its start, ascending.")
    ]
    wait_p50_seconds: Annotated[float | None, Field(alias="waitP50Seconds", description="Median; null without waits.")]
    wait_p95_seconds: Annotated[float | None, Field(alias="waitP95Seconds", description="95th percentile.")]


class Usage(ResponseModel):
    """A part of the usage in a period. Numbers of all parts add up, and their waits are joined."""

    at: Annotated[datetime, Field(description="Time of the first part: what happened later does not count.")]
    start: Annotated[datetime, Field(alias="from", description="Beginning of the period.")]
    until: Annotated[datetime, Field(alias="to", description="End of the period.")]
    by: By
    jobs_read: Annotated[int, Field(description="Jobs in this part, with those that add nothing.")]
    total: Annotated[UsageGroup, Field(description="Each job counts once, also if it used several pools.")]
    groups: Annotated[list[UsageGroup], Field(description="In the order of their names, the highest priority first.")]
    next_cursor: Annotated[str | None, Field(description="`cursor` of the next part; null if this is the last one.")]
