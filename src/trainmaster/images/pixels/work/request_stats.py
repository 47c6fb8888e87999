"""How a model has answered one worker so far: requests that were made of it, and those that it was too busy for.

Counted where requests are made, so that those count, too, of which a later try was answered. It must not know what
follows from that: `images/pixels/work/pressure.py` does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster.domain.errors import Throttled, Unavailable


class RequestStats:
    """Counts of one model, by all threads that ask it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = self._refused = 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """One request. Refused is one that is told to slow down, fails in the model (5xx), or has no answer.

        That a tile is refused as bad (4xx) says nothing of how busy a model is.
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

    def retried(self, times: int) -> None:
        """So many requests were refused before the one that is being made; botocore repeats by itself."""
        self._count(times, times)

    def counts(self) -> tuple[int, int]:
        """Requests made so far, and how many of them were refused."""
        with self._lock:
            return self._asked, self._refused

    def _count(self, asked: int, refused: int) -> None:
        with self._lock:
            self._asked += asked
            self._refused += refused
