"""Lambda functions that change the sizes of jobs, as `ports.ResizeRequester`.

The call waits for the function for a few seconds and returns its answer uninterpreted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ReadTimeoutError

from trainmaster.adapters.aws_errors import AWS_ERRORS, to_retryable_error
from trainmaster.domain.errors import Unavailable

MAX_BYTES = 65_536
"""Size limit of an answer; a usual one has a few words."""


class LambdaResizeRequester:
    """Calls functions (`lambda:InvokeFunction`).

    Args:
        new_client: makes a boto3 Lambda client, called for each request. The client must not retry and should time
            out early, because the manager has one minute for a whole pass.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def request_resize(self, target: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Call the function; see `ports.ResizeRequester.request_resize`.

        After the client's read timeout the function counts as called, and its answer comes later. Raises `Unavailable`
        also if the function fails.
        """
        client, payload = self._new_client(), json.dumps(question).encode()
        try:
            answer = client.invoke(FunctionName=target, InvocationType="RequestResponse", Payload=payload)
            body = answer["Payload"].read(MAX_BYTES)
        except ReadTimeoutError:
            return None
        except AWS_ERRORS as error:
            raise to_retryable_error(error) from error
        if answer.get("FunctionError"):
            raise Unavailable(f"{target} has failed: {answer['FunctionError']}")
        return _object(body)


def _object(body: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object in an answer, None for anything else."""
    try:
        value = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
