"""Tells calls that join what the attempts of a job have from those of callers, which are answered with the result.

Several routes may have handlers on the clients of one session, so a handler that recognized only its own calls would
call another's, and that one the first, without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_joining: ContextVar[bool] = ContextVar("trainmaster_joining", default=False)


def joining() -> bool:
    """Return whether the current call is one that joins attempts, which passes through."""
    return _joining.get()


@contextmanager
def join() -> Iterator[None]:
    """Mark the calls of the block."""
    token = _joining.set(True)
    try:
        yield
    finally:
        _joining.reset(token)
