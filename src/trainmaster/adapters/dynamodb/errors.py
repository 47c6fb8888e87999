"""Classifies DynamoDB's errors beyond those that all AWS services share, above all cancelled transactions."""

from __future__ import annotations

from botocore.exceptions import ClientError

from trainmaster.adapters.aws_errors import AwsError, message_of, to_retryable_error
from trainmaster.adapters.aws_errors import code_of as outer_code_of
from trainmaster.domain.errors import Throttled, TooLarge, TrainmasterError

_GUARD_FAILED = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})
_CONFLICTS = frozenset({"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"})
_THROTTLED = frozenset({"ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "ThrottlingError"})


def is_cancelled(error: ClientError) -> bool:
    """Return True if a transaction was cancelled as a whole."""
    return outer_code_of(error) == "TransactionCanceledException"


def failed_guards(error: ClientError) -> frozenset[int]:
    """Return the numbers of the transaction's actions whose guard failed."""
    return frozenset(number for number, code in enumerate(_reasons(error)) if code in _GUARD_FAILED)


def is_guard_failure(error: ClientError) -> bool:
    """Return True if the guard of a single write failed."""
    return outer_code_of(error) in _GUARD_FAILED


def is_retryable(error: AwsError) -> bool:
    """Return True if the call may succeed at once when repeated.

    Two writers met on a row, or a transaction was throttled inside: botocore retries neither.
    """
    code = code_of(error)
    return code in _CONFLICTS or (code in _THROTTLED and code != outer_code_of(error))


def was_retried(error: ClientError) -> bool:
    """Return True if botocore had sent the request before, so that the first one may have taken effect."""
    return error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0


def code_of(error: AwsError) -> str:
    """Return the error's code; for a cancelled transaction, that of its first failed action."""
    blamed = [code for code in _reasons(error) if code != "None"]
    return blamed[0] if blamed else outer_code_of(error)


def to_domain_error(error: AwsError) -> TrainmasterError:
    """Return the domain's error; raise it `from` this one."""
    code, text = code_of(error), message_of(error)
    if code in _THROTTLED | _CONFLICTS:
        return Throttled(f"{code}: {text}")
    if code.startswith("Validation") and "size" in text:
        return TooLarge(f"This is larger than a row of the table can be: {text}")
    return to_retryable_error(error)


def _reasons(error: AwsError) -> list[str]:
    reasons = error.response.get("CancellationReasons", []) if isinstance(error, ClientError) else []
    return [reason.get("Code") or "None" for reason in reasons]
