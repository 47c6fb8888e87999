"""Translates botocore's errors into the domain's `ServiceError`, in one place.

The error code decides, then the HTTP status, then the exception's class if AWS did not answer. Codes with a meaning in
one service only stay in that service's adapter, which calls this module for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from trainmaster.domain.errors import (
    CapacityExhausted,
    NotPermitted,
    RequestRefused,
    ServiceError,
    Throttled,
    Unavailable,
)

AWS_ERRORS = (ClientError, BotoCoreError)
"""All exceptions of a botocore call: AWS refused it, or no readable answer arrived."""
AwsError = ClientError | BotoCoreError

MAX_MESSAGE_LENGTH = 1024
"""Characters, as in SageMaker's `FailureReason`; the reason is stored with its job."""

_THROTTLES = frozenset(
    {
        "BandwidthLimitExceeded",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequests",
        "TooManyRequestsException",
    }
)
_FULL = frozenset({"ResourceLimitExceeded", "ServiceQuotaExceededException", "CapacityError"})
_FORBIDDEN = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
# AWS answers these with 4xx, although the same request may succeed a little later.
_RETRYABLE = frozenset(
    {
        "ConflictException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServerException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
_KINDS: dict[str, type[ServiceError]] = {
    **dict.fromkeys(_THROTTLES, Throttled),
    **dict.fromkeys(_FULL, CapacityExhausted),
    **dict.fromkeys(_FORBIDDEN, NotPermitted),
    **dict.fromkeys(_RETRYABLE, Unavailable),
}
_BY_STATUS: dict[int, type[ServiceError]] = {
    401: NotPermitted,
    403: NotPermitted,
    408: Unavailable,
    409: Unavailable,
    429: Throttled,
}
_SERVER_ERROR = 500


def code_of(error: AwsError) -> str:
    """Return AWS's error code, "" if AWS did not answer."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def message_of(error: AwsError) -> str:
    """Return the message of AWS or botocore without code and operation."""
    message = error.response.get("Error", {}).get("Message") if isinstance(error, ClientError) else None
    return str(message or error)


def to_domain_error(error: AwsError) -> ServiceError:
    """Return the domain's error; raise it `from` this one to keep the cause.

    An unknown error code becomes `RequestRefused`. A missing answer becomes `Unavailable`, the only result that leaves
    open whether the request took effect.
    """
    code = code_of(error)
    text = f"{code}: {message_of(error)}" if code else f"{type(error).__name__}: {error}"
    return _kind(error, code)(text[:MAX_MESSAGE_LENGTH])


def to_retryable_error(error: AwsError) -> ServiceError:
    """Return the domain's error for calls that AWS cannot refuse for their content.

    `Throttled` and `NotPermitted` stay; everything else becomes `Unavailable`.
    """
    found = to_domain_error(error)
    return found if isinstance(found, Throttled | NotPermitted) else Unavailable(str(found))


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise the `passing` error for any botocore error in the block."""
    try:
        yield
    except AWS_ERRORS as error:
        raise to_retryable_error(error) from error


def _kind(error: AwsError, code: str) -> type[ServiceError]:
    if isinstance(error, ClientError):
        return _KINDS.get(code) or _kind_of_status(error)
    if isinstance(error, ParamValidationError):
        return RequestRefused
    missing_credentials = isinstance(error, NoCredentialsError | PartialCredentialsError)
    return NotPermitted if missing_credentials else Unavailable


def _kind_of_status(error: ClientError) -> type[ServiceError]:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return Unavailable if status >= _SERVER_ERROR else _BY_STATUS.get(status, RequestRefused)
