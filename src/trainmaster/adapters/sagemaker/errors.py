"""What SageMaker's errors mean where the code alone does not tell: `ValidationException` says many things.

It must not be used for another service.
"""

from __future__ import annotations

import re

from trainmaster.adapters.aws_errors import AwsError, code_of, message_of, passing, trouble
from trainmaster.domain.errors import (
    CapacityExhausted,
    NotPermitted,
    RequestRefused,
    ServiceTrouble,
    Throttled,
    Unavailable,
)

_VALIDATION = frozenset({"ValidationException", "ValidationError"})
_IN_USE = frozenset({"ResourceInUse", "ResourceInUseException"})
_MISSING = frozenset({"ResourceNotFound", "ResourceNotFoundException"})
# DescribeTrainingJob's model promises ResourceNotFound; the service answers ValidationException with these words.
_MISSING_WORDS = re.compile(r"requested resource not found|could not find training job", re.IGNORECASE)
_WORDS: tuple[tuple[re.Pattern[str], type[ServiceTrouble]], ...] = (
    (re.compile(r"rate exceeded|too many requests", re.IGNORECASE), Throttled),
    (re.compile(r"CapacityError|insufficient ?capacity|unable to provision", re.IGNORECASE), CapacityExhausted),
    # IAM tells SageMaker of a new role, or of a mended trust policy, only after some seconds.
    (re.compile(r"could not assume role|is not authorized to perform", re.IGNORECASE), NotPermitted),
    (re.compile(r"try again later|temporarily unavailable|internal (server )?error", re.IGNORECASE), Unavailable),
)
_FIGURES = re.compile(
    r"limit '(?P<quota>[^']+)' is (?P<limit>\d+)\D.*?utilization of (?P<in_use>\d+)\D.*?delta of (?P<asked>\d+)",
    re.DOTALL,
)


class AccountLimitReached(CapacityExhausted):
    """`ResourceLimitExceeded`, with the figures of its text where it has them.

    Attributes:
        quota: the limit's name, such as `ml.p5.48xlarge for training job usage`; None where the text has none.
        limit: instances that the account may use.
        in_use: instances that it uses now.
        asked: instances that the request would have added.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _FIGURES.search(message)
        self.quota = found["quota"] if found else None
        self.limit = int(found["limit"]) if found else None
        self.in_use = int(found["in_use"]) if found else None
        self.asked = int(found["asked"]) if found else None


def create_trouble(error: AwsError) -> ServiceTrouble:
    """What a failed CreateTrainingJob means.

    `RequestRefused` ends the job, so a refusal that another try may not meet must not become one.
    """
    found = trouble(error)
    if code_of(error) in _VALIDATION:
        return _by_words(error, found)
    return AccountLimitReached(str(found)) if code_of(error) == "ResourceLimitExceeded" else found


def other_trouble(error: AwsError) -> ServiceTrouble:
    """What a failure of any other call means: `Throttled`, `NotPermitted` or `Unavailable`."""
    found = create_trouble(error)
    return found if isinstance(found, Throttled | NotPermitted) else passing(error)


def is_in_use(error: AwsError) -> bool:
    """Whether a training job of that name is there already."""
    return code_of(error) in _IN_USE


def is_missing(error: AwsError) -> bool:
    """Whether there is no training job of that name."""
    code = code_of(error)
    return code in _MISSING or (code in _VALIDATION and bool(_MISSING_WORDS.search(message_of(error))))


def is_refusal(error: AwsError) -> bool:
    """Whether SageMaker refused the call for the state that the training job is in, or for its arguments."""
    return isinstance(create_trouble(error), RequestRefused)


def _by_words(error: AwsError, found: ServiceTrouble) -> ServiceTrouble:
    said = message_of(error)
    kind = next((kind for words, kind in _WORDS if words.search(said)), None)
    return found if kind is None else kind(str(found))
