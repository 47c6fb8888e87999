"""Timers: actions in the order of their time, then of their addition. They are never removed.

An action must check whether it still applies when it is called.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime

Action = Callable[[datetime], None]


class Timers:
    """Scheduled actions."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Action]] = []
        self._order = itertools.count()

    def at(self, time: datetime, action: Action) -> None:
        """Schedule an action."""
        heapq.heappush(self._heap, (time, next(self._order), action))

    def next_time(self) -> datetime | None:
        """Return the time of the next action; None without one."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime) -> tuple[datetime, Action] | None:
        """Remove and return the first action that is due, with its time; None if none is."""
        if not self._heap or self._heap[0][0] > now:
            return None
        time, _, action = heapq.heappop(self._heap)
        return time, action
