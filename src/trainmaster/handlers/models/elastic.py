"""What an elastic job says of itself, and the rendezvous of its nodes, as they travel.

It must not say anything that the job's row, or the nodes' own state, does not.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainmaster.domain.elastic.rendezvous import Role
from trainmaster.domain.elastic.sizes import Cause, Hook
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.handlers.models.base import RequestModel, ResponseModel


class ResizeAnswer(RequestModel):
    """What whoever carries out a custom resize says of it."""

    token: Annotated[str, Field(min_length=1, max_length=64, description="Of the resize, as it was asked.")]
    outcome: Annotated[Literal["done", "refused"], Field(description="refused: the job goes on as it was.")]
    instances: Annotated[int | None, Field(ge=1, description="Where it is done: how many the job has now.")] = None
    reason: Annotated[str, Field(max_length=MAX_REASON_LENGTH, description="Where it is refused: why.")] = ""


MemberState = Literal["requested", "starting", "working", "draining", "stopping"]


class Member(ResponseModel):
    """A training job of one instance by which a job has grown."""

    training_job_name: Annotated[str, Field(description="Its name on SageMaker.")]
    state: Annotated[
        MemberState,
        Field(
            description="requested: SageMaker is not known to have it yet. starting: its instance is not at work yet. "
            "draining: it was asked to leave the rendezvous. stopping: it has left, or was out of time."
        ),
    ]
    created_at: Annotated[datetime, Field(description="When it was decided.")]
    started_at: Annotated[datetime | None, Field(description="When SageMaker reported its instance at work.")]


class Resizing(ResponseModel):
    """A change of size that is under way."""

    before: Annotated[int, Field(alias="from", description="Instances.")]
    after: Annotated[int, Field(alias="to", description="Instances.")]
    cause: Cause
    asked_at: Annotated[datetime, Field(description="When it was decided.")]
    until: Annotated[datetime, Field(description="A growth is given up then; a shrink goes on by force.")]
    freed_for: Annotated[str | None, Field(description="The job that the freed instances are for.")]
    given_up: Annotated[bool, Field(description="Whether it goes back to a size before.")]
    message: Annotated[str, Field(description="What it waits for, for people.")]


class Elastic(ResponseModel):
    """Within which bounds a job may be resized, how, and where it stands."""

    min_instances: int
    max_instances: int
    instance_step: Annotated[int | None, Field(description="Between sizes; null where `instanceValues` lists them.")]
    instance_values: Annotated[list[int] | None, Field(description="All sizes that it may have.")]
    hook: Annotated[Hook, Field(description="How its size is changed.")]
    target: Annotated[str | None, Field(description="Of a custom hook: the function's ARN, or `event`.")]
    scaling_timeout_seconds: float
    graceful_shutdown_timeout_seconds: float
    faulty_scale_down_timeout_seconds: float
    scale_up_snooze_seconds: float
    size: Annotated[int | None, Field(description="Instances that it holds; null where it holds none.")]
    sized_at: Annotated[datetime | None, Field(description="Since when it has held so many.")]
    resizes: Annotated[int, Field(description="How often its newest attempts have changed their size.")]
    resizing: Annotated[Resizing | None, Field(description="Null where none is under way.")]
    faulty_since: Annotated[datetime | None, Field(description="Since when it has lacked a member that was lost.")]
    wanted: Annotated[int | None, Field(description="Its size before that.")]
    members: Annotated[list[Member], Field(description="Beside its own training job, oldest first.")]


class Node(ResponseModel):
    """One container of a rendezvous."""

    training_job_name: str
    host: Annotated[str, Field(description="Its name in that training job, such as `algo-1`.")]
    role: Role
    rank: Annotated[int | None, Field(description="In the present world; null outside of it.")]
    beats: Annotated[int, Field(description="How often it has said that it lives: a count that stands still is death.")]


class Rendezvous(ResponseModel):
    """The nodes of a job as they say themselves that they stand."""

    run: Annotated[str | None, Field(description="Its id; null before the job's first start.")]
    round: Annotated[int | None, Field(description="Of the present world, or the one that forms; null where none is.")]
    complete: Annotated[bool, Field(description="Whether that world is formed.")]
    closed: Annotated[bool, Field(description="Whether it is over for good.")]
    reason: Annotated[str | None, Field(description="Why it was closed.")]
    restarts: Annotated[int, Field(description="Restarts that count against the job's budget.")]
    nodes: Annotated[list[Node], Field(description="In the order of their ranks, then by name.")]
    trouble: Annotated[str | None, Field(description="Why the nodes' state cannot be read.")]
