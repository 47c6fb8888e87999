"""Exit codes that scripts can rely on, and which error means which.

It must not print anything. The kind of an error decides, never its words.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotConfigured, NotFound, Refused, Unreachable


class Code(IntEnum):
    """What the program's exit status says."""

    OK = 0
    JOB_FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    CONFLICT = 4
    NOT_ALLOWED = 5
    UNREACHABLE = 6
    BUG = 70
    TIMED_OUT = 124
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS: Final[Mapping[Code, str]] = {
    Code.OK: "Done; with wait, every job has completed.",
    Code.JOB_FAILED: "With wait, a job has ended without completing.",
    Code.INVALID: "Wrong usage, no API address, or an invalid request.",
    Code.NOT_FOUND: "There is no such job or pool.",
    Code.CONFLICT: "The name is taken, or the state of the job or pool forbids it.",
    Code.NOT_ALLOWED: "Your identity or the job's role is not allowed.",
    Code.UNREACHABLE: "The queue's API cannot be reached.",
    Code.BUG: "An error in trainmaster itself.",
    Code.TIMED_OUT: "With wait, the time is up.",
    Code.INTERRUPTED: "Interrupted with Ctrl-C.",
}
"""What the help says of each; 141 (the reader of a pipe has gone) needs no words."""

# The most special kind first.
_CODES: tuple[tuple[type[ApiError], Code], ...] = (
    (Forbidden, Code.NOT_ALLOWED),
    (Refused, Code.INVALID),
    (NotConfigured, Code.INVALID),
    (NotFound, Code.NOT_FOUND),
    (Conflict, Code.CONFLICT),
    (Unreachable, Code.UNREACHABLE),
)
# The API words its hints for whoever calls it; here one of our own commands helps better.
_HINTS = {
    "JobNotFound": "See `trainmaster ls --all`.",
    "VersionConflict": "Try again.",
    "PoolNotFound": "See `trainmaster pools`.",
}
# What is wrong with a name or a version is plain from the message: these are no fields of a request.
_PLAIN = frozenset({"JobNotFound", "PoolNotFound", "IllegalTransition", "VersionConflict"})


def code_of(error: ApiError) -> Code:
    """The exit code that an error means."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Code.UNREACHABLE)


def line_of(error: ApiError) -> str:
    """An error in one line: its type, message, field and hint."""
    where = f" (field {error.field})" if error.field and error.type not in _PLAIN else ""
    hint = _HINTS.get(error.type, error.hint)
    message = error.message.rstrip(".") if hint or where else error.message
    text = f"{error.type}: {message}{where}{'. ' + hint if hint else ''}"
    return " ".join(text.split())


def expected(error: Exception) -> ApiError | None:
    """The error in the terms of the client's errors; None for one that only a bug can cause."""
    if isinstance(error, ApiError):
        return error
    # Where an AWS library was never imported, none of its errors can have been raised.
    if "botocore" in sys.modules:
        return _of_credentials(error)
    return None


def _of_credentials(error: Exception) -> ApiError | None:
    from botocore.exceptions import BotoCoreError

    if not isinstance(error, BotoCoreError):
        return None
    return Forbidden(str(error), type=type(error).__name__, hint="Log in again, or name a profile with --profile.")
