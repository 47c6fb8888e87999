"""Keeps informational records of libraries out of the log while this package calls them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOGGERS = ("httpx", "botocore.credentials", "botocore.configprovider", "botocore.tokens")
"""They log each request, and where credentials and endpoints were found, at level INFO."""
_inside: ContextVar[bool] = ContextVar("trainmaster_quiet", default=False)


def _is_wanted(record: logging.LogRecord) -> bool:
    return record.levelno != logging.INFO or not _inside.get()


@contextmanager
def quiet() -> Iterator[None]:
    """Drop INFO records of the libraries that this block calls, in this thread alone; other records stay."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_wanted)
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
