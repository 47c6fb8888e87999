"""The shapes of the API's answers about pools, and of what a caller may set, member for member as they travel in JSON.

This module holds types only, and must not do anything.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class PoolParts(TypedDict, total=False):
    """What a caller may set or change of a pool beside its name, type and cap."""

    kind: str
    trainingPlanArn: str
    draining: bool
    price: float
    vcpus: int
    memoryGib: float
    accelerators: int
    accelerator: str
    acceleratorMemoryGib: float
    countForeign: bool


class PoolSetting(PoolParts):
    """A pool in a list of them."""

    instanceType: str
    cap: int
    name: NotRequired[str]


class PoolView(TypedDict):
    """A pool's cap and what becomes of it, in instances; `setting` is what would set it as it is."""

    name: str
    instanceType: str
    kind: str
    trainingPlanArn: str | None
    planStatus: str | None
    startsAt: str | None
    endsAt: str | None
    state: str
    madeFor: str | None
    madeAt: str | None
    price: float
    onDemandPrice: float
    vcpus: int
    memoryGib: float
    accelerators: int
    accelerator: str | None
    acceleratorMemoryGib: float
    cap: int
    used: int
    stopping: int
    beyondLeast: int
    held: int
    foreign: int
    warm: int
    free: int
    countForeign: bool
    waiting: int
    waitingUnits: int
    waitingMore: bool
    weight: float
    setting: PoolSetting


class PoolDeedView(TypedDict):
    """What the manager does to a pool of its own: `expand`, `shrink` or `retire`."""

    change: str
    pool: str
    instanceType: str
    before: int
    after: int
    dollarsPerHour: float | None
    madeFor: str
    jobs: list[str]
    jobCount: int
    why: str


class PoolEventView(PoolDeedView):
    """What the manager did, and when."""

    at: str


class PoolsView(TypedDict):
    """All pools, and the version that the next change has to name."""

    pools: list[PoolView]
    version: int
    history: NotRequired[list[PoolEventView] | None]


class RemovalView(PoolsView):
    """The pools that are left, and whom the removal concerned: how many wait, and who runs on.

    With `more`, not all jobs that wait were read, and there may be more of them.
    """

    moved: int
    stranded: int
    more: bool
    running: list[str]
