"""Waiting for signals, without losing one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def signal_pipe() -> Iterator[Callable[[], object]]:
    """Yield a function that waits until a signal with a handler in Python arrives, or has arrived meanwhile.

    The signal is a byte in a pipe. A lock or an event waits forever after a signal that comes just before, or that the
    kernel gives to another thread: neither wakes the main thread, which calls handlers. Only for the main thread.
    """
    arrived, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake)
    try:
        yield partial(os.read, arrived, 1)
    finally:
        signal.set_wakeup_fd(before)
        os.close(arrived)
        os.close(wake)
