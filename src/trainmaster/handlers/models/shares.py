"""API models of the shares; `handlers.views.shares` fills them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from trainmaster.domain.capacity.units import Kind
from trainmaster.domain.policy.settings import Lending, Order, WhenSpent
from trainmaster.handlers.models.base import ResponseModel


class BudgetUse(ResponseModel):
    """Budget of a share and its use in the present period. An unset limit, and what is left of it, are null."""

    gpu_hours: Annotated[float | None, Field(description="Maximum accelerators times hours in a period.")]
    dollars: Annotated[float | None, Field(description="Maximum cost in a period.")]
    gpu_hours_used: Annotated[float, Field(description="Active attempts included.")]
    dollars_used: Annotated[float, Field(description="By the prices of the pools; active attempts included.")]
    gpu_hours_left: float | None
    dollars_left: float | None
    spent: Annotated[bool, Field(description="Whether a limit is reached.")]
    when_spent: WhenSpent
    period_start: datetime
    period_end: Annotated[datetime, Field(description="Time at which the budget renews.")]


class ShareOfPool(ResponseModel):
    """A share's part of a pool, in its units."""

    pool: str
    nominal: Annotated[int, Field(description="Own quota as set; of an unset default share, what no other share owns.")]
    own: Annotated[int, Field(description="Own quota in force, at most the share's maximum.")]
    used: Annotated[int, Field(description="Held by its active jobs.")]
    held: Annotated[int, Field(description="Freed for its waiting jobs.")]
    borrowed: Annotated[int, Field(description="Part of `used` beyond `own`.")]
    lent: Annotated[int, Field(description="Own, idle, and used by other shares.")]
    lends: Annotated[int, Field(description="Maximum of its own quota that it lends.")]
    borrows: Annotated[int | None, Field(description="Maximum beyond its own quota that it uses; null for no limit.")]
    limit: Annotated[int | None, Field(description="Maximum that its jobs hold; null if only the pool limits them.")]
    limited_by: Annotated[str | None, Field(description="`own units`, `borrow limit` or `cap`: the rule of `limit`.")]
    max_per_user: Annotated[int | None, Field(description="Maximum for each of its users; null for no limit.")]


class ShareUse(ResponseModel):
    """A share and its use of the queue."""

    name: str
    configured: Annotated[bool, Field(description="Whether the settings name it.")]
    weight: float
    lending: Lending
    running: Annotated[int, Field(description="Jobs that hold capacity.")]
    waiting: Annotated[int, Field(description="Jobs that wait; a lower bound if `more` is true.")]
    faded_gpu_hours: Annotated[
        float, Field(description="Accelerators times hours, decayed with the half-life; active attempts included.")
    ]
    budget: BudgetUse | None
    pools: Annotated[
        list[ShareOfPool],
        Field(description="Pools in which it owns or holds units or has a limit, in the order of their names."),
    ]


class SharedPool(ResponseModel):
    """A pool as the shares divide it, in its units."""

    name: str
    kind: Annotated[Kind | None, Field(description="Null if the pool does not exist now.")]
    cap: Annotated[int | None, Field(description="Null if the pool does not exist now.")]
    used: Annotated[int, Field(description="Held by active jobs.")]
    held: Annotated[int, Field(description="Freed for waiting jobs.")]
    external: Annotated[int, Field(description="Held by external training jobs.")]
    unowned: Annotated[int, Field(description="Usable ones that no share owns.")]


class Shares(ResponseModel):
    """Shares with what they own, use, lend and borrow."""

    at: datetime
    order: Order
    usage_half_life_seconds: float
    more: Annotated[bool, Field(description="Whether more jobs wait than were counted.")]
    shares: Annotated[list[ShareUse], Field(description="In the order of their names.")]
    pools: Annotated[list[SharedPool], Field(description="In the order of their names.")]
