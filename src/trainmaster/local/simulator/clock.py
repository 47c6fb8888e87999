"""Clocks of the simulator: a virtual one that callers move, and the wall clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from trainmaster.domain.compat import UTC

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Default start of a virtual clock, and second 0 of replays and benchmarks."""
MILLISECOND = 1000
"""In microseconds: the resolution of SageMaker's timestamps."""


class Clock(Protocol):
    """The current time, UTC, in whole milliseconds like SageMaker's timestamps."""

    def now(self) -> datetime:
        """Return the current time."""
        ...


class VirtualClock:
    """A clock that stands still until it is moved.

    Args:
        start: initial time, with a time zone.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """Return the time that the clock was last moved to."""
        return self._now

    def move_to(self, time: datetime) -> None:
        """Move the clock forward; a time in the past has no effect."""
        self._now = max(self._now, time)


class WallClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the current time, truncated to milliseconds."""
        now = datetime.now(UTC)
        return now - timedelta(microseconds=now.microsecond % MILLISECOND)
