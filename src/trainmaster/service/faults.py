"""A fault of ours, met in what is done for one job: it costs that job its turn, never everybody the pass.

Trouble at AWS is none: it is known, and passes through to whoever knows what to do about it. So does whatever ends the
process. It must not decide what becomes of the job.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster.domain.errors import ServiceTrouble

log = logging.getLogger(__name__)


@contextmanager
def isolate_fault(name: str, faults: list[str] | None = None) -> Iterator[None]:
    """Whatever should not have been raised in here is told, and ends here.

    Args:
        name: the job, or training job, for which something is done.
        faults: gets the name where there was such a fault.

    Raises `ServiceTrouble` as it comes.
    """
    try:
        yield
    except ServiceTrouble:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever it is, the other jobs go on
        note(error, name, faults)


def note(error: Exception, name: str, faults: list[str] | None = None) -> None:
    """Tell of a fault of ours. Arguments are those of `isolate_fault`."""
    log.error("a fault of the queue's; others go on", extra={"job": name, **log_fields(error)})
    if faults is not None:
        faults.append(name)


def log_fields(error: Exception) -> dict[str, object]:
    """What the log gets of an error: types and places. Its text may repeat what it choked on, and with it a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "error_type": error_types(error),
        "where": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames],
    }


def error_types(error: BaseException | None) -> str:
    """The type of an error, and of those that it came from."""
    names = []
    while error is not None:
        names.append(type(error).__name__)
        error = error.__cause__ or error.__context__
    return " from ".join(names)
