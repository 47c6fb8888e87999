"""The one translation of what botocore raises into the domain's `ServiceTrouble`.

By error code, by HTTP status where the code says nothing, by class where there was no answer. Codes that mean
something to one service only stay in that service's adapter, which asks here for the rest. It must not retry.
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
    ServiceTrouble,
    Throttled,
    Unavailable,
)

AWS_ERRORS = (ClientError, BotoCoreError)
"""Everything that a call of a botocore client raises: AWS said no, or there was no answer to read."""
AwsError = ClientError | BotoCoreError

MAX_MESSAGE_LENGTH = 1024
"""As long as SageMaker's own `FailureReason`; a reason is stored with its job."""

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
# Answered with 4xx, although the same request may well pass a little later.
_PASSING = frozenset(
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
_KINDS: dict[str, type[ServiceTrouble]] = {
    **dict.fromkeys(_THROTTLES, Throttled),
    **dict.fromkeys(_FULL, CapacityExhausted),
    **dict.fromkeys(_FORBIDDEN, NotPermitted),
    **dict.fromkeys(_PASSING, Unavailable),
}
_BY_STATUS: dict[int, type[ServiceTrouble]] = {
    401: NotPermitted,
    403: NotPermitted,
    408: Unavailable,
    409: Unavailable,
    429: Throttled,
}
_SERVER_ERROR = 500


def code_of(error: AwsError) -> str:
    """AWS's error code; "" where AWS did not answer."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def message_of(error: AwsError) -> str:
    """What AWS, or botocore, said, without code and operation."""
    said = error.response.get("Error", {}).get("Message") if isinstance(error, ClientError) else None
    return str(said or error)


def trouble(error: AwsError) -> ServiceTrouble:
    """The domain's word for it; raise it `from` the error so that the cause is kept.

    A refusal without a known meaning is `RequestRefused`, silence without one `Unavailable`: only that one leaves
    open whether it happened.
    """
    code = code_of(error)
    text = f"{code}: {message_of(error)}" if code else f"{type(error).__name__}: {error}"
    return _kind(error, code)(text[:MAX_MESSAGE_LENGTH])


def passing(error: AwsError) -> ServiceTrouble:
    """The same for calls that have no "no" for an answer: `Throttled`, `NotPermitted`, all else `Unavailable`."""
    found = trouble(error)
    return found if isinstance(found, Throttled | NotPermitted) else Unavailable(str(found))


@contextmanager
def translated() -> Iterator[None]:
    """Around such calls: what botocore raises becomes `passing` of it."""
    try:
        yield
    except AWS_ERRORS as error:
        raise passing(error) from error


def _kind(error: AwsError, code: str) -> type[ServiceTrouble]:
    if isinstance(error, ClientError):
        return _KINDS.get(code) or _kind_of_status(error)
    if isinstance(error, ParamValidationError):
        return RequestRefused
    missing_credentials = isinstance(error, NoCredentialsError | PartialCredentialsError)
    return NotPermitted if missing_credentials else Unavailable


def _kind_of_status(error: ClientError) -> type[ServiceTrouble]:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return Unavailable if status >= _SERVER_ERROR else _BY_STATUS.get(status, RequestRefused)
