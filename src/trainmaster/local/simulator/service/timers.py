"""What is due when. A heap of actions in the order of their time, then of their entering; nothing is ever removed.

An action whose reason has gone must find that out itself when its time comes. It must not read a clock.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime

Action = Callable[[datetime], None]


class Timers:
    """Actions waiting for their time."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Action]] = []
        self._order = itertools.count()

    def at(self, time: datetime, action: Action) -> None:
        """Do this at that time."""
        heapq.heappush(self._heap, (time, next(self._order), action))

    def next_time(self) -> datetime | None:
        """When the next action is due; None where nothing waits."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime) -> tuple[datetime, Action] | None:
        """The first action whose time has come, with that time; None where there is none."""
        if not self._heap or self._heap[0][0] > now:
            return None
        time, _, action = heapq.heappop(self._heap)
        return time, action
