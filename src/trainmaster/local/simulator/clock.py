"""The two clocks of the simulator: one that tests move, one that moves by itself.

A clock only tells the time; what is due at which moment is the agenda's business. It must not sleep.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Where a virtual clock begins that was given no time, and second 0 of replays and benchmarks."""
MILLISECOND = 1000
"""In microseconds: the finest that SageMaker's timestamps tell."""


class Clock(Protocol):
    """What time it is, UTC, in whole milliseconds as SageMaker's own timestamps."""

    def now(self) -> datetime:
        """The time now."""
        ...


class VirtualClock:
    """Stands still until it is moved.

    Args:
        start: the time at which it begins; must carry a time zone.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """The time that it was last moved to."""
        return self._now

    def move_to(self, time: datetime) -> None:
        """Move forward; a time that has passed already changes nothing."""
        self._now = max(self._now, time)


class WallClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """The time now, cut to milliseconds."""
        now = datetime.now(UTC)
        return now - timedelta(microseconds=now.microsecond % MILLISECOND)
