"""A thread that runs timers under a wall clock."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)
MAX_SLEEP = 3600.0
"""Seconds; threads cannot wait for an arbitrary time."""


class Ticker:
    """Sleeps until a timer is due, then runs it, until it is closed.

    Args:
        seconds_left: returns the seconds until the next timer; None without one.
        tick: runs the timers that are due.
    """

    def __init__(self, seconds_left: Callable[[], float | None], tick: Callable[[], None]) -> None:
        self._seconds_left = seconds_left
        self._tick = tick
        self._nudged = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="simulator-ticker", daemon=True)
        self._thread.start()

    def nudge(self) -> None:
        """Wake the thread: the next timer may have changed."""
        self._nudged.set()

    def close(self) -> None:
        """Stop the thread and wait for its end."""
        self._closed = True
        self._nudged.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed:
            left = self._seconds_left()
            self._nudged.wait(MAX_SLEEP if left is None else min(max(left, 0.0), MAX_SLEEP))
            self._nudged.clear()
            if not self._closed:
                self._tick_once()

    def _tick_once(self) -> None:
        try:
            self._tick()
        except Exception:
            # An error of a receiver must not stop time, nor the events behind that one.
            log.exception("The simulator's clock continues after an error")
            self._nudged.set()
