"""The system clock, as a Clock.

Other modules read the time through the port only, so tests can pass in another clock.
"""

from __future__ import annotations

import time
from datetime import datetime

from trainmaster.domain.compat import UTC


class SystemClock:
    """Wall-clock time; implements `ports.Clock`."""

    def now(self) -> datetime:
        """Return the current time, UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds; return at once for zero or less."""
        time.sleep(max(0.0, seconds))
