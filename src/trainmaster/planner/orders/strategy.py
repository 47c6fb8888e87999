"""The interface of an order, by which the planner's stages use the setting `order`."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Protocol

from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.ranking import Ranking


class ShareUsage(Protocol):
    """Usage of shares, by which they take turns: the share that has used least goes first."""

    def of(self, share: str, accelerators: int) -> float:
        """Return the usage of a share, GPU-seconds, while its jobs hold this many accelerators."""


class OrderStrategy:
    """An order of jobs of equal priority: the base class, which ranks by entry time and backfills.

    Register an instance in `planner/orders/__init__.py` under the name of the setting.

    Attributes:
        name: the value of the setting `order`.
        strict: whether jobs start in entry order alone: no job passes a blocked equal, and the load of endpoints does
            not reorder jobs. The approximate forecast lets no job pass either.
        preempts_equals: whether jobs of equal priority preempt each other by place.
        reserves: whether blocked jobs get reservations that later jobs must not delay.
        by_usage: whether ended attempts count as usage of their share; then `usage` returns it.
    """

    name: ClassVar[str]
    strict: ClassVar[bool] = False
    preempts_equals: ClassVar[bool] = False
    reserves: ClassVar[bool] = True
    by_usage: ClassVar[bool] = False

    def ranking(self, snapshot: Snapshot, now: datetime) -> Ranking:
        """Return the order and the preemption ranks of the jobs of a snapshot."""
        return Ranking(snapshot, now, strict_order=self.strict)

    def usage(self, snapshot: Snapshot, now: datetime) -> ShareUsage | None:  # noqa: ARG002 -- see `fair`
        """Return the usage by which shares take turns; None if they take turns by what they hold."""
        return None
