"""Exit codes for scripts. The type of an error decides its code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from trainmaster.client.api.errors import ApiError, Conflict, Forbidden, NotConfigured, NotFound, Refused, Unreachable


class ExitCode(IntEnum):
    """The program's exit codes."""

    OK = 0
    JOB_FAILED = 1
    INVALID = 2
    NOT_FOUND = 3
    CONFLICT = 4
    NOT_ALLOWED = 5
    UNREACHABLE = 6
    EXISTS = 7
    BUG = 70
    TIMED_OUT = 124
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS: Final[Mapping[ExitCode, str]] = {
    ExitCode.OK: "Success; with wait, every job completed.",
    ExitCode.JOB_FAILED: "With wait, a job ended without completing.",
    ExitCode.INVALID: "Invalid usage, no API address, or an invalid request.",
    ExitCode.NOT_FOUND: "No such job, share or pool.",
    ExitCode.CONFLICT: "The state of the job or pool does not allow it, or the settings were changed meanwhile.",
    ExitCode.NOT_ALLOWED: "Your identity or the job's role is not allowed.",
    ExitCode.UNREACHABLE: "The queue's API is unreachable.",
    ExitCode.EXISTS: "With submit, a job of this name exists already; nothing was submitted.",
    ExitCode.BUG: "Internal error of trainmaster.",
    ExitCode.TIMED_OUT: "With wait, the timeout expired.",
    ExitCode.INTERRUPTED: "Interrupted with Ctrl-C.",
}
"""Descriptions for the help; 141 (the reader of a pipe has gone) has none."""

# Subclasses come before their base classes.
_CODES: tuple[tuple[type[ApiError], ExitCode], ...] = (
    (Forbidden, ExitCode.NOT_ALLOWED),
    (Refused, ExitCode.INVALID),
    (NotConfigured, ExitCode.INVALID),
    (NotFound, ExitCode.NOT_FOUND),
    (Conflict, ExitCode.CONFLICT),
    (Unreachable, ExitCode.UNREACHABLE),
)
# The API's hints are for all callers; on the command line, one of its commands helps more.
_HINTS = {
    "NameTaken": "Nothing was submitted; `trainmaster submit --resubmit` takes a new name.",
    "JobNotFound": "See `trainmaster ls --all`.",
    "VersionConflict": "Try again.",
    "PoolNotFound": "See `trainmaster pools`.",
}
# Errors whose field is not one of the request: the message says enough.
_WITHOUT_FIELD = frozenset({"JobNotFound", "PoolNotFound", "IllegalTransition", "VersionConflict"})


def exit_code_of(error: ApiError) -> ExitCode:
    """Return the exit code of an error."""
    if error.type == "NameTaken":
        return ExitCode.EXISTS
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.UNREACHABLE)


def error_line(error: ApiError) -> str:
    """Format an error in one line: its type, message, field and hint."""
    field = f" (field {error.field})" if error.field and error.type not in _WITHOUT_FIELD else ""
    hint = _HINTS.get(error.type, error.hint)
    message = error.message.rstrip(".") if hint or field else error.message
    text = f"{error.type}: {message}{field}{'. ' + hint if hint else ''}"
    return " ".join(text.split())


def as_api_error(error: Exception) -> ApiError | None:
    """Return the error as an ApiError; None if only a bug can cause it."""
    if isinstance(error, ApiError):
        return error
    # If botocore was never imported, it cannot have raised the error.
    if "botocore" in sys.modules:
        return _credentials_error(error)
    return None


def _credentials_error(error: Exception) -> ApiError | None:
    from botocore.exceptions import BotoCoreError

    if not isinstance(error, BotoCoreError):
        return None
    return Forbidden(str(error), type=type(error).__name__, hint="Log in again, or select a profile with --profile.")
