"""The time of this machine, as a Clock.

It must not be read anywhere but through the port: what has a clock handed in can be tested with another.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall-clock time; implements `ports.Clock`."""

    def now(self) -> datetime:
        """The time now, UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Let that many seconds pass; nothing for zero and below."""
        time.sleep(max(0.0, seconds))
