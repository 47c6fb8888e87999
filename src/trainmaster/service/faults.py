"""Confine an unexpected exception to the job that caused it, so that it costs that job its turn and no other.

Errors of AWS (`ServiceError`) are expected and pass through to the caller that handles them, as does anything that
ends the process.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster.domain.errors import ServiceError

log = logging.getLogger(__name__)


@contextmanager
def isolate_fault(name: str, faults: list[str] | None = None) -> Iterator[None]:
    """Log an unexpected exception of the block and continue after it.

    Args:
        name: the job, or training job, that the block works on.
        faults: receives the name if there was such an exception.

    Raises `ServiceError` unchanged.
    """
    try:
        yield
    except ServiceError:
        raise
    except Exception as error:  # noqa: BLE001 -- other jobs go on whatever it is
        record_fault(error, name, faults)


def record_fault(error: Exception, name: str, faults: list[str] | None = None) -> None:
    """Log an unexpected exception; the arguments are those of `isolate_fault`."""
    log.error("an unexpected error; other jobs continue", extra={"job": name, **log_fields(error)})
    if faults is not None:
        faults.append(name)


def log_fields(error: Exception) -> dict[str, object]:
    """Return the types and places of an error for the log; its text may repeat a secret of the request."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error_type": error_types(error),
        "where": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def error_types(error: BaseException | None) -> str:
    """Return the type of an error and of its causes, such as `KeyError from ValueError`."""
    names = []
    while error is not None:
        names.append(type(error).__name__)
        error = error.__cause__ or error.__context__
    return " from ".join(names)
