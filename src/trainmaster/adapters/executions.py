"""Executions of AWS's orchestrators: the caller that an execution acts as, and the errors of answering one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from trainmaster.adapters.aws_errors import AWS_ERRORS, code_of, message_of, to_retryable_error
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import ExecutionGone

_ROLE = re.compile(r"arn:(aws[a-z-]*):iam::([0-9]{12}):role/(?:.*/)?([^/]+)")


def name_of_role(role: str) -> str | None:
    """Return the name in the ARN of a role, without its path; None if it is no ARN of a role."""
    found = _ROLE.fullmatch(role)
    return found and found[3]


def caller_of(role: str, session: str) -> Caller | None:
    """Return the caller that a role is in a session; None if it is no ARN of a role."""
    found = _ROLE.fullmatch(role)
    return found and Caller(f"arn:{found[1]}:sts::{found[2]}:assumed-role/{found[3]}/{session}")


@contextmanager
def translated(gone: Collection[str]) -> Iterator[None]:
    """Raise `ExecutionGone` for the error codes in `gone`, and the domain's errors for others."""
    try:
        yield
    except AWS_ERRORS as error:
        if code_of(error) in gone:
            raise ExecutionGone(f"{code_of(error)}: {message_of(error)}") from error
        raise to_retryable_error(error) from error
