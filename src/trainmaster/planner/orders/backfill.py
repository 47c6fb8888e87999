"""The order `backfill`: later jobs pass where they delay no reservation (EASY; Lifka, 1995)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from trainmaster.domain.plan import Snapshot
from trainmaster.planner.orders.ranking import Ranking
from trainmaster.planner.orders.strategy import OrderStrategy


class Backfill(OrderStrategy):
    """EASY backfill; large jobs that have waited unusually long go first."""

    name: ClassVar[str] = "backfill"

    def ranking(self, snapshot: Snapshot, now: datetime) -> Ranking:
        """Return the ranking by entry time with aging."""
        return Ranking(snapshot, now, ages_large_jobs=True)
