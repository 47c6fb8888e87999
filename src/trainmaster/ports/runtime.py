"""The wake queue and the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Publisher(Protocol):
    """The wake queue and its dead-letter queue. Verbs raise `Throttled`, `Unavailable`, `NotPermitted`."""

    def wake(self, follows: int) -> None:
        """Request a pass that begins after pass `follows`; requests for the same pass are deduplicated."""
        ...

    def set_aside(self, message: str, reason: str) -> None:
        """Move a message that cannot be handled to the dead-letter queue, with the reason."""
        ...


class Clock(Protocol):
    """Time as an argument."""

    def now(self) -> datetime:
        """Return the current time, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        ...
