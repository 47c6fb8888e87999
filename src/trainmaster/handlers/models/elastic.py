"""API models of elastic jobs, of their resizes, and of the rendezvous of their nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainmaster.domain.elastic.rendezvous import Role
from trainmaster.domain.elastic.scaling import MAX_RATE, MIN_RATE
from trainmaster.domain.elastic.sizes import Cause, Hook
from trainmaster.domain.text import MAX_REASON_LENGTH
from trainmaster.handlers.models.base import RequestModel, ResponseModel


class ResizeAnswer(RequestModel):
    """Outcome of a custom resize."""

    token: Annotated[str, Field(min_length=1, max_length=64, description="Token of the resize request.")]
    outcome: Annotated[Literal["done", "refused"], Field(description="refused: the job keeps its size.")]
    instances: Annotated[int | None, Field(ge=1, description="Instances that the job has now, if done.")] = None
    reason: Annotated[str, Field(max_length=MAX_REASON_LENGTH, description="Reason of the refusal, if refused.")] = ""


class SpeedReport(RequestModel):
    """Speed of an elastic job at its present size."""

    instances: Annotated[int, Field(ge=1, description="Instances that the job works with.")]
    per_second: Annotated[
        float,
        Field(
            ge=MIN_RATE,
            le=MAX_RATE,
            allow_inf_nan=False,
            description="Steps or samples per second, in the same unit at every size.",
        ),
    ]


MemberState = Literal["requested", "starting", "working", "draining", "stopping"]


class Member(ResponseModel):
    """A training job of one instance by which a job has grown."""

    training_job_name: Annotated[str, Field(description="Its name on SageMaker.")]
    state: Annotated[
        MemberState,
        Field(
            description="requested: SageMaker has not confirmed it yet. starting: its instance does not work yet. "
            "draining: it has to leave the rendezvous. stopping: it has left, or its time was over."
        ),
    ]
    created_at: Annotated[datetime, Field(description="Time of the decision.")]
    started_at: Annotated[datetime | None, Field(description="Time at which SageMaker reported its instance at work.")]


class Resizing(ResponseModel):
    """Resize in progress."""

    before: Annotated[int, Field(alias="from", description="Instances.")]
    after: Annotated[int, Field(alias="to", description="Instances.")]
    cause: Cause
    asked_at: Annotated[datetime, Field(description="Time of the decision.")]
    until: Annotated[datetime, Field(description="When a growth is given up, or a shrink is forced.")]
    freed_for: Annotated[str | None, Field(description="Job for which it frees instances.")]
    given_up: Annotated[bool, Field(description="Whether the job goes back to its former size.")]
    message: Annotated[str, Field(description="What it waits for, as a sentence.")]


class SizeSpeed(ResponseModel):
    """Speed of an elastic job at one size."""

    instances: int
    speedup: Annotated[float, Field(description="Believed speed, relative to one instance.")]
    per_second: Annotated[
        float | None, Field(description="Mean of the reported steps or samples per second; null without reports.")
    ]
    reports: Annotated[int, Field(description="Reports that count in it, at most 8.")]
    measured_at: Annotated[
        datetime | None, Field(description="Time of its last report that told something new; null without reports.")
    ]
    slower_than: Annotated[
        int | None, Field(description="Smaller size that was faster, by at least three reports; null if none is known.")
    ]
    retry_at: Annotated[
        datetime | None, Field(description="Time before which the job does not come to this size, as it was slower.")
    ]


class Scaling(ResponseModel):
    """Speed of an elastic job by its size, as learned from reports of it and of its kind."""

    message: Annotated[str, Field(description="Such as `8 instances run 5.9 times as fast as 1`.")]
    serial_part: Annotated[float, Field(description="Part of the work that more instances do not shorten.")]
    communication_part: Annotated[
        float, Field(description="Time that each pair of instances adds, as a part of the time on one instance.")
    ]
    sizes: Annotated[list[SizeSpeed], Field(description="Smallest, present, largest and reported sizes.")]


class Elastic(ResponseModel):
    """Sizes of an elastic job, its hook, and its present size."""

    min_instances: int
    max_instances: int
    instance_step: Annotated[
        int | None, Field(description="Difference between sizes; null if `instanceValues` lists them.")
    ]
    instance_values: Annotated[
        list[int] | None,
        Field(description="Sizes that the request lists; those from `minInstances` to `maxInstances` are legal."),
    ]
    hook: Annotated[Hook, Field(description="Way in which the queue resizes it.")]
    target: Annotated[str | None, Field(description="Function's ARN or `event`, for a custom hook.")]
    scaling_timeout_seconds: float
    graceful_shutdown_timeout_seconds: float
    faulty_scale_down_timeout_seconds: float
    scale_up_snooze_seconds: float
    size: Annotated[int | None, Field(description="Instances that it holds; null if none.")]
    sized_at: Annotated[datetime | None, Field(description="Time since which it has held so many.")]
    resizes: Annotated[int, Field(description="Number of resizes of its newest attempts.")]
    resizing: Annotated[Resizing | None, Field(description="Null if none is in progress.")]
    faulty_since: Annotated[datetime | None, Field(description="Time since which a lost member is missing.")]
    wanted: Annotated[int | None, Field(description="Its size before the loss.")]
    members: Annotated[list[Member], Field(description="Members beside its base, oldest first.")]
    scaling: Annotated[
        Scaling | None, Field(description="Null if neither the job nor an earlier one of its kind has reported.")
    ]


class Node(ResponseModel):
    """One container of a rendezvous."""

    training_job_name: str
    host: Annotated[str, Field(description="Host name in the training job, such as `algo-1`.")]
    role: Role
    rank: Annotated[int | None, Field(description="Rank in the present world; null if it is not a member.")]


class Rendezvous(ResponseModel):
    """Rendezvous of the nodes of a job, as the nodes report it."""

    run: Annotated[str | None, Field(description="Id of the run; null before the job's first start.")]
    round: Annotated[int | None, Field(description="Number of the present or forming world; null if there is none.")]
    complete: Annotated[bool, Field(description="Whether that world is complete.")]
    closed: Annotated[bool, Field(description="Whether the rendezvous is closed for good.")]
    reason: Annotated[str | None, Field(description="Reason for which it was closed.")]
    restarts: Annotated[int, Field(description="Restarts that count toward the job's budget.")]
    nodes: Annotated[list[Node], Field(description="By rank, then by name.")]
    problem: Annotated[str | None, Field(description="Reason for which the state of the nodes cannot be read.")]
