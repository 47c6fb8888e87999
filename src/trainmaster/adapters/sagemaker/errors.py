"""Translates SageMaker's errors where the code alone is ambiguous, as with `ValidationException`."""

from __future__ import annotations

import re

from trainmaster.adapters.aws_errors import AwsError, code_of, message_of, to_domain_error, to_retryable_error
from trainmaster.domain.errors import (
    AccountLimitReached,
    CapacityExhausted,
    NotPermitted,
    RequestRefused,
    ServiceError,
    Throttled,
    Unavailable,
)

_VALIDATION = frozenset({"ValidationException", "ValidationError"})
_IN_USE = frozenset({"ResourceInUse", "ResourceInUseException"})
_MISSING = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
# DescribeTrainingJob's model has ResourceNotFound; the service answers ValidationException with this text.
_MISSING_PATTERN = re.compile(r"requested resource not found|could not find training job", re.IGNORECASE)
_STOPPING_PATTERN = re.compile(r"in status Stopping\b", re.IGNORECASE)
_PATTERNS: tuple[tuple[re.Pattern[str], type[ServiceError]], ...] = (
    (re.compile(r"rate exceeded|too many requests", re.IGNORECASE), Throttled),
    (re.compile(r"CapacityError|insufficient ?capacity|unable to provision", re.IGNORECASE), CapacityExhausted),
    # A new role or a changed trust policy reaches SageMaker only after some seconds.
    (re.compile(r"could not assume role|is not authorized to perform", re.IGNORECASE), NotPermitted),
    (re.compile(r"try again later|temporarily unavailable|internal (server )?error", re.IGNORECASE), Unavailable),
)
_FIGURES = re.compile(
    r"limit '(?P<quota>[^']+)' is (?P<limit>\d+)\D.*?utilization of (?P<in_use>\d+)\D.*?delta of (?P<asked>\d+)",
    re.DOTALL,
)


def create_error(error: AwsError) -> ServiceError:
    """Return the domain's error for a failed CreateTrainingJob.

    `RequestRefused` ends the job, so a refusal that a retry may overcome must map to another class.
    """
    found = to_domain_error(error)
    if code_of(error) in _VALIDATION:
        return _by_message(error, found)
    return _account_limit(str(found)) if code_of(error) == "ResourceLimitExceeded" else found


def call_error(error: AwsError) -> ServiceError:
    """Return `Throttled`, `NotPermitted` or `Unavailable` for a failure of any other call."""
    found = create_error(error)
    return found if isinstance(found, Throttled | NotPermitted) else to_retryable_error(error)


def is_in_use(error: AwsError) -> bool:
    """Return True if a training job of that name exists already."""
    return code_of(error) in _IN_USE


def is_missing(error: AwsError) -> bool:
    """Return True if no training job of that name exists."""
    code = code_of(error)
    return code in _MISSING or (code in _VALIDATION and bool(_MISSING_PATTERN.search(message_of(error))))


def is_stopping(error: AwsError) -> bool:
    """Return True if a stop was refused since the training job is stopping already."""
    return code_of(error) in _VALIDATION and bool(_STOPPING_PATTERN.search(message_of(error)))


def was_retried(error: AwsError) -> bool:
    """Return True if botocore made earlier tries of the call, which may have taken effect."""
    response = getattr(error, "response", None) or {}
    return bool(response.get("ResponseMetadata", {}).get("RetryAttempts"))


def is_refusal(error: AwsError) -> bool:
    """Return True if SageMaker refused the call because of its arguments or the training job's state."""
    return isinstance(create_error(error), RequestRefused)


def _account_limit(message: str) -> AccountLimitReached:
    found = _FIGURES.search(message)
    if found is None:
        return AccountLimitReached(message)
    return AccountLimitReached(message, found["quota"], int(found["limit"]), int(found["in_use"]), int(found["asked"]))


def _by_message(error: AwsError, found: ServiceError) -> ServiceError:
    message = message_of(error)
    kind = next((kind for pattern, kind in _PATTERNS if pattern.search(message)), None)
    return found if kind is None else kind(str(found))
