"""Orders of jobs of equal priority: one strategy per file, registered here by the value of the setting `order`."""

from __future__ import annotations

from datetime import datetime

from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Policy
from trainmaster.planner.orders.backfill import Backfill
from trainmaster.planner.orders.fair import Fair
from trainmaster.planner.orders.fifo import Fifo
from trainmaster.planner.orders.gittins.order import GittinsOrder
from trainmaster.planner.orders.ranking import Ranking
from trainmaster.planner.orders.strategy import OrderStrategy

ORDERS: dict[str, OrderStrategy] = {order.name: order for order in (Fifo(), Backfill(), GittinsOrder(), Fair())}


def order_of(policy: Policy) -> OrderStrategy:
    """Return the strategy of the queue's order. Raises `KeyError` if it is not registered."""
    return ORDERS[policy.order]


def ranking_of(snapshot: Snapshot, now: datetime) -> Ranking:
    """Return the order and the preemption ranks of the jobs of a snapshot."""
    return order_of(snapshot.policy).ranking(snapshot, now)
