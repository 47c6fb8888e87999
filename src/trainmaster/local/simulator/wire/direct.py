"""A SageMaker client that calls the simulator without serialization; errors are botocore's.

It is for callers with many calls, such as replays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from trainmaster.local.simulator.wire.errors import ApiError

Response = dict[str, Any]


class DirectClient:
    """The training operations that a launcher uses, named as in boto3.

    Args:
        call: carries out an operation. Raises `ApiError`.
    """

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Response]) -> None:
        self._carry_out = call

    def create_training_job(self, **members: Any) -> Response:
        """Call CreateTrainingJob."""
        return self._call("CreateTrainingJob", members)

    def describe_training_job(self, **members: Any) -> Response:
        """Call DescribeTrainingJob."""
        return self._call("DescribeTrainingJob", members)

    def describe_training_plan(self, **members: Any) -> Response:
        """Call DescribeTrainingPlan."""
        return self._call("DescribeTrainingPlan", members)

    def list_training_jobs(self, **members: Any) -> Response:
        """Call ListTrainingJobs."""
        return self._call("ListTrainingJobs", members)

    def stop_training_job(self, **members: Any) -> Response:
        """Call StopTrainingJob."""
        return self._call("StopTrainingJob", members)

    def update_training_job(self, **members: Any) -> Response:
        """Call UpdateTrainingJob."""
        return self._call("UpdateTrainingJob", members)

    def list_tags(self, **members: Any) -> Response:
        """Call ListTags."""
        return self._call("ListTags", members)

    def _call(self, operation: str, members: Mapping[str, Any]) -> Response:
        try:
            return self._carry_out(operation, members)
        except ApiError as error:
            response: Any = {
                "Error": {"Code": error.code, "Message": error.message},
                "ResponseMetadata": {"HTTPStatusCode": error.status},
            }
            raise ClientError(response, operation) from error
