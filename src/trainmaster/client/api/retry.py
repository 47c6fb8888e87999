"""Retries with exponential back-off and full jitter; every request of the API is idempotent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

_TRANSIENT = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry policy: at most `max_attempts` attempts, with a random pause between them.

    The pause after attempt n is drawn from 0 to `base_delay_seconds * 2**(n-1)`, at most `max_delay_seconds`. A
    `Retry-After` header in seconds is honored up to the same maximum.
    """

    max_attempts: int = 5
    base_delay_seconds: float = 0.25
    max_delay_seconds: float = 8.0
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)

    def is_retryable(self, response: httpx.Response) -> bool:
        """Return whether another attempt may get a different response."""
        return response.status_code in _TRANSIENT

    def pause(self, attempt: int, response: httpx.Response | None) -> None:
        """Sleep before the attempt that follows this one, counted from 1."""
        header = response.headers.get("retry-after", "") if response is not None else ""
        retry_after = float(header) if header.isdigit() else 0.0
        backoff = self.rng.uniform(0, self.base_delay_seconds * 2 ** (attempt - 1))
        self.sleep(min(max(retry_after, backoff), self.max_delay_seconds))
