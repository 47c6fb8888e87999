"""When to ask again, and how long to wait before: exponential back-off with full jitter.

Safe because every request of the API is idempotent by design. It must not send anything; clock and chance are given.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

_TRANSIENT = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Retry:
    """At most `tries` tries; the pause before try n+1 is drawn from 0 to `first * 2**(n-1)` seconds, at most `longest`.

    A `Retry-After` in seconds is honoured up to `longest`.
    """

    tries: int = 5
    first: float = 0.25
    longest: float = 8.0
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)

    def wants(self, response: httpx.Response) -> bool:
        """Whether this answer may be different on another try."""
        return response.status_code in _TRANSIENT

    def pause(self, tried: int, response: httpx.Response | None) -> None:
        """Wait before the try after the `tried`-th."""
        asked = response.headers.get("retry-after", "") if response is not None else ""
        least = float(asked) if asked.isdigit() else 0.0
        drawn = self.rng.uniform(0, self.first * 2 ** (tried - 1))
        self.sleep(min(max(least, drawn), self.longest))
