"""SageMaker's errors, with its codes and messages."""

from __future__ import annotations

BAD_REQUEST = 400


class ApiError(Exception):
    """An error response of the service.

    Args:
        code: error code, such as `ResourceLimitExceeded`.
        message: message for the caller.
        status: HTTP status; SageMaker returns 400 for all client errors.
    """

    def __init__(self, code: str, message: str, status: int = BAD_REQUEST) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def invalid(message: str) -> ApiError:
    """Return the error for an invalid request."""
    return ApiError("ValidationException", message)


def limit_exceeded(quota: str, limit: int, used: int, delta: int) -> ApiError:
    """Return the error for a quota without room.

    The text is the service's (https://github.com/gabehollombe-aws/jupyter-notebooks/issues/1).
    """
    return ApiError(
        "ResourceLimitExceeded",
        f"The account-level service limit '{quota}' is {limit} Instances, with current utilization of {used} "
        f"Instances and a request delta of {delta} Instances. Please use AWS Service Quotas to request an increase "
        "for this quota. If AWS Service Quotas is not available, contact AWS support to request an increase for "
        "this quota.",
    )


def in_use(arn: str) -> ApiError:
    """Return the error for a name that a training job has used."""
    return ApiError(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, and a training job with this name "
        f"already exists ({arn})",
    )


def not_found(code: str) -> ApiError:
    """Return the error for a training job that does not exist.

    The service model has `ResourceNotFound`; the service returns `ValidationException` (https://github.com/aws/aws-
    sdk/issues/165), so the simulator has both.
    """
    return ApiError(code, "Requested resource not found.")


def throttled() -> ApiError:
    """Return the error for too many calls of an operation."""
    return ApiError("ThrottlingException", "Rate exceeded")
