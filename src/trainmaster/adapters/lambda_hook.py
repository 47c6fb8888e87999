"""Lambda functions that change the sizes of jobs, as `ports.ResizeRequester`.

A function is called and waited for, a few seconds; what it returns is its answer, as far as it has one. It must not
read what the answer says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ReadTimeoutError

from trainmaster.adapters.aws_errors import AWS_ERRORS, passing
from trainmaster.domain.errors import Unavailable

MAX_BYTES = 65_536
"""Of an answer; one is a few words."""


class LambdaResizeRequester:
    """Calls functions (`lambda:InvokeFunction`).

    Args:
        new_client: makes a boto3 Lambda client, which must not try again and should give up early, since the manager
            has a minute for everything; called when somebody is first asked.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def request_resize(self, target: str, question: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Call the function; see `ports.ResizeRequester.ask`.

        One that takes longer than the client waits has been asked, and answers later. Raises `Unavailable` where the
        function has failed, too.
        """
        client, payload = self._new_client(), json.dumps(question).encode()
        try:
            answer = client.invoke(FunctionName=target, InvocationType="RequestResponse", Payload=payload)
            said = answer["Payload"].read(MAX_BYTES)
        except ReadTimeoutError:
            return None
        except AWS_ERRORS as error:
            raise passing(error) from error
        if answer.get("FunctionError"):
            raise Unavailable(f"{target} has failed: {answer['FunctionError']}")
        return _object(said)


def _object(said: bytes) -> Mapping[str, Any] | None:
    """A returned JSON object; None for anything else, such as nothing."""
    try:
        value = json.loads(said or b"null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
