"""The thread that lets time pass under a wall clock: it sleeps until something is due, then has it done.

It must not know what is due.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)
MAX_SLEEP = 3600.0
"""Seconds; threads cannot wait for arbitrarily long."""


class Ticker:
    """Runs until it is closed.

    Args:
        seconds_left: how long until something is due; None where nothing is.
        tick: does what is due.
    """

    def __init__(self, seconds_left: Callable[[], float | None], tick: Callable[[], None]) -> None:
        self._seconds_left = seconds_left
        self._tick = tick
        self._nudged = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="simulator-ticker", daemon=True)
        self._thread.start()

    def nudge(self) -> None:
        """Something may be due earlier than was known."""
        self._nudged.set()

    def close(self) -> None:
        """Stop, and wait until it has."""
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
            # Whatever a receiver of events has done wrong, time must go on, and the events behind that one too.
            log.exception("the simulator's clock went on after an error")
            self._nudged.set()
