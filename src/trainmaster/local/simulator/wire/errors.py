"""What SageMaker answers instead of doing it, with its own codes and texts.

It must not know how an answer travels: `protocol` writes it down.
"""

from __future__ import annotations

BAD_REQUEST = 400


class ApiError(Exception):
    """An error answer of the service.

    Args:
        code: the error code, such as `ResourceLimitExceeded`.
        message: the text that callers see.
        status: the HTTP status; SageMaker answers 400 for everything that the caller could have known.
    """

    def __init__(self, code: str, message: str, status: int = BAD_REQUEST) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def invalid(message: str) -> ApiError:
    """The request means nothing that SageMaker would do."""
    return ApiError("ValidationException", message)


def limit_exceeded(quota: str, limit: int, used: int, delta: int) -> ApiError:
    """The account's limit for an instance type has no room (facts/sagemaker.md 2.1 has the text)."""
    return ApiError(
        "ResourceLimitExceeded",
        f"The account-level service limit '{quota}' is {limit} Instances, with current utilization of {used} "
        f"Instances and a request delta of {delta} Instances. Please use AWS Service Quotas to request an increase "
        "for this quota. If AWS Service Quotas is not available, contact AWS support to request an increase for "
        "this quota.",
    )


def in_use(arn: str) -> ApiError:
    """The name belongs to another training job, whatever became of it."""
    return ApiError(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, and a training job with this name "
        f"already exists ({arn})",
    )


def not_found(code: str) -> ApiError:
    """No training job of that name.

    The model promises `ResourceNotFound`; the service answers `ValidationException`
    (https://github.com/aws/aws-sdk/issues/165), so the simulator can answer either.
    """
    return ApiError(code, "Requested resource not found.")


def throttled() -> ApiError:
    """Too many calls of this operation."""
    return ApiError("ThrottlingException", "Rate exceeded")
