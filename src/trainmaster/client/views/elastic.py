"""The shapes of the API's answers about elastic jobs, member for member as they travel in JSON.

This module holds types only, and must not do anything.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class MemberView(TypedDict):
    """A training job of one instance by which a job has grown."""

    trainingJobName: str
    state: Literal["requested", "starting", "working", "draining", "stopping"]
    createdAt: str
    startedAt: str | None


# In the functional form, because `from` is a Python keyword.
ResizingView = TypedDict(
    "ResizingView",
    {
        "from": int,
        "to": int,
        "cause": Literal["grow", "shrink", "replace", "repair"],
        "askedAt": str,
        "until": str,
        "freedFor": str | None,
        "givenUp": bool,
        "message": str,
    },
)
"""A change of size that is under way; `message` says what it waits for."""


class ElasticView(TypedDict):
    """Within which bounds a job may be resized, how, and where it stands; `size` is null where it holds nothing."""

    minInstances: int
    maxInstances: int
    instanceStep: int | None
    instanceValues: list[int] | None
    hook: Literal["restart", "members", "custom"]
    target: str | None
    scalingTimeoutSeconds: float
    gracefulShutdownTimeoutSeconds: float
    faultyScaleDownTimeoutSeconds: float
    scaleUpSnoozeSeconds: float
    size: int | None
    sizedAt: str | None
    resizes: int
    resizing: ResizingView | None
    faultySince: str | None
    wanted: int | None
    members: list[MemberView]


class NodeView(TypedDict):
    """One container of a rendezvous; `beats` counts how often it has said that it lives."""

    trainingJobName: str
    host: str
    role: Literal["member", "waiting", "spare", "leaving"]
    rank: int | None
    beats: int


class RendezvousView(TypedDict):
    """The nodes of a job as they say themselves that they stand; `round` is null where no node has come yet."""

    run: str | None
    round: int | None
    complete: bool
    closed: bool
    reason: str | None
    restarts: int
    nodes: list[NodeView]
    trouble: str | None
