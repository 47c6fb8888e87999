"""The order `backfill`: later jobs pass where they delay no reservation (EASY; Lifka, 1995)."""

from __future__ import annotations

from typing import ClassVar

from trainmaster.planner.orders.strategy import OrderStrategy


class Backfill(OrderStrategy):
    """Backfill around the reservations of the first blocked jobs."""

    name: ClassVar[str] = "backfill"
