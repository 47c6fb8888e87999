"""The order `fifo`: first in, first out; no job passes an equal that waits for the same pool."""

from __future__ import annotations

from typing import ClassVar

from trainmaster.planner.orders.strategy import OrderStrategy


class Fifo(OrderStrategy):
    """First in, first out."""

    name: ClassVar[str] = "fifo"
    strict: ClassVar[bool] = True
