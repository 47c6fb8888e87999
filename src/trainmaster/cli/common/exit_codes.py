"""Exit codes for scripts. The type of an error decides its code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from trainmaster.cli.output.own_words import in_own_words
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
    NOT_WRITTEN = 74
    TIMED_OUT = 124
    COMMAND_NOT_RUN = 126
    COMMAND_NOT_FOUND = 127
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS: Final[Mapping[ExitCode, str]] = {
    ExitCode.OK: "Success; with wait, every job completed.",
    ExitCode.JOB_FAILED: "With wait, a job ended without completing; with doctor, a check found an error.",
    ExitCode.INVALID: "Invalid usage, no API address, or an invalid request.",
    ExitCode.NOT_FOUND: "No such job, share or pool.",
    ExitCode.CONFLICT: "The state of the job or pool does not allow it, or the settings were changed meanwhile.",
    ExitCode.NOT_ALLOWED: "Your identity or the job's role is not allowed.",
    ExitCode.UNREACHABLE: "The queue's API is unreachable.",
    ExitCode.EXISTS: "With submit, a job of this name exists already; nothing was submitted.",
    ExitCode.BUG: "Internal error of trainmaster.",
    ExitCode.NOT_WRITTEN: "A file or the standard output could not be written.",
    ExitCode.TIMED_OUT: "With wait, the timeout expired.",
    ExitCode.COMMAND_NOT_RUN: "With exec, the command cannot be run.",
    ExitCode.COMMAND_NOT_FOUND: "With exec, the command was not found. Otherwise exec has the command's exit code.",
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
_HINTS = {
    "NameTaken": "Nothing was submitted; `trainmaster submit --resubmit` takes a new name.",
    "JobNotFound": "See `trainmaster ls --all`.",
    "VersionConflict": "Try again.",
}
"""The API's hints are for all callers; on the command line, one of its commands helps more."""
_NAMES_FIELD: Final = frozenset({"InvalidRequest", "InvalidFile"})
"""Types of errors whose line opens with the field, unless the message names it."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a device, which name no file."""
_CONFIGURATION: Final = frozenset(
    {"InvalidConfigError", "ConfigParseError", "ConfigNotFound", "InfiniteLoopConfigError"}
)
"""Errors of botocore about the files of the AWS CLI."""


def exit_code_of(error: ApiError) -> ExitCode:
    """Return the exit code of an error."""
    if error.type == "NameTaken":
        return ExitCode.EXISTS
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.UNREACHABLE)


def error_line(error: ApiError, meant: str | None = None) -> str:
    """Format an error in one line, in the words of the command line: its message, the name that is meant, its hint."""
    hint = (f"Did you mean {meant}? " if meant else "") + (_HINTS.get(error.type, error.hint) or "")
    message = error.message.strip().rstrip(".")
    named = error.field is None or error.field.startswith("Tags[") or error.field in message
    where = "" if named or error.type not in _NAMES_FIELD else f"{error.field}: "
    text = " ".join(f"{where}{message}. {hint}".split())
    text = in_own_words(text)
    return text if text.endswith((".", "?", "`")) else f"{text}."


def file_error_line(error: OSError) -> str | None:
    """Format an error of a file or of standard output in one line; None for another, which only a bug can cause."""
    if error.filename is None and error.errno not in _FULL:
        return None
    return f"{'The output' if error.filename is None else error.filename} cannot be written: {error.strerror}."


def as_api_error(error: Exception, profile: str | None = None) -> ApiError | None:
    """Return the error as an ApiError; None if only a bug can cause it. `profile` is the one of the options."""
    if isinstance(error, ApiError):
        return error
    # If botocore was never imported, it cannot have raised the error.
    if "botocore" in sys.modules:
        return _aws_error(error, profile)
    return None


def _aws_error(error: Exception, profile: str | None) -> ApiError | None:
    """Return an error of botocore: about credentials, of an AWS API, or of the way to it."""
    from botocore.exceptions import BotoCoreError, ClientError

    from trainmaster.client.api.core_session import CoreSession
    from trainmaster.client.api.credentials import credentials_error, error_code

    if not isinstance(error, BotoCoreError | ClientError):
        return None
    code = error_code(error)
    if code in _CONFIGURATION:
        hint = "Mend it in ~/.aws/config, or select another profile with --profile."
        return NotConfigured(f"{str(error).rstrip('.')}.", type=code, hint=hint)
    if (known := credentials_error(error, CoreSession(profile_name=profile))) is not None:
        return known
    if code.startswith("AccessDenied") or code in ("UnauthorizedOperation", "Forbidden"):
        return Forbidden(str(error), type=code, hint="Ask for the permission that it names.")
    return Unreachable(f"An AWS service did not answer as expected: {error}", type=code, hint="Check your network.")
