"""What DynamoDB's answers mean beyond what all AWS services share, its cancelled transactions above all.

It must not retry or call anything.
"""

from __future__ import annotations

from botocore.exceptions import ClientError

from trainmaster.adapters.aws_errors import AwsError, message_of, to_retryable_error
from trainmaster.adapters.aws_errors import code_of as outer_code_of
from trainmaster.domain.errors import Throttled, TooLarge, TrainmasterError

_GUARD_FAILED = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})
_CONFLICTS = frozenset({"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"})
_THROTTLED = frozenset({"ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "ThrottlingError"})


def is_cancelled(error: ClientError) -> bool:
    """Whether it says that nothing of a transaction happened."""
    return outer_code_of(error) == "TransactionCanceledException"


def failed_guards(error: ClientError) -> frozenset[int]:
    """Which actions of a transaction had a guard that failed, by number."""
    return frozenset(number for number, code in enumerate(_reasons(error)) if code in _GUARD_FAILED)


def is_guard_failure(error: ClientError) -> bool:
    """Whether the guard of a single write failed."""
    return outer_code_of(error) in _GUARD_FAILED


def is_retryable(error: AwsError) -> bool:
    """Whether to ask again at once: two writers met on a row, and botocore does not ask again by itself then.

    Nor does it where a transaction was throttled within.
    """
    code = code_of(error)
    return code in _CONFLICTS or (code in _THROTTLED and code != outer_code_of(error))


def was_retried(error: ClientError) -> bool:
    """Whether botocore had sent the request before, so that an earlier sending may have been carried out."""
    return error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0


def code_of(error: AwsError) -> str:
    """The code to blame: for a cancelled transaction, that of the first action that was."""
    blamed = [code for code in _reasons(error) if code != "None"]
    return blamed[0] if blamed else outer_code_of(error)


def to_domain_error(error: AwsError) -> TrainmasterError:
    """The domain's error; raise it `from` this one."""
    code, text = code_of(error), message_of(error)
    if code in _THROTTLED | _CONFLICTS:
        return Throttled(f"{code}: {text}")
    if code.startswith("Validation") and "size" in text:
        return TooLarge(f"This is more than the table can hold: {text}")
    return to_retryable_error(error)


def _reasons(error: AwsError) -> list[str]:
    reasons = error.response.get("CancellationReasons", []) if isinstance(error, ClientError) else []
    return [reason.get("Code") or "None" for reason in reasons]
