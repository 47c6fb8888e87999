"""Statistics of one worker's requests to a model: all requests, and those that the model throttled.

Retries count too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster.domain.errors import Throttled, Unavailable


class RequestStats:
    """Counts of one model, over all threads that call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = self._refused = 0

    @contextmanager
    def count_request(self) -> Iterator[None]:
        """Count one request: as refused if it is throttled, fails in the model (5xx), or has no answer.

        A tile rejected as invalid (4xx) says nothing about the model's load.
        """
        try:
            yield
        except (Throttled, Unavailable):
            self._count(1, 1)
            raise
        except BaseException:
            self._count(1, 0)
            raise
        self._count(1, 0)

    def add_retries(self, times: int) -> None:
        """Count refused requests that botocore has retried before the current one."""
        self._count(times, times)

    def counts(self) -> tuple[int, int]:
        """Return the requests so far, and the refused ones among them."""
        with self._lock:
            return self._asked, self._refused

    def _count(self, asked: int, refused: int) -> None:
        with self._lock:
            self._asked += asked
            self._refused += refused
