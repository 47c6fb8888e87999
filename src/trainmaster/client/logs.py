"""Reads the log streams of training jobs from CloudWatch Logs.

Source: SageMaker developer guide, "CloudWatch Logs for Amazon SageMaker AI": the group of training jobs, and streams
named `<training job>/algo-<host>-<number>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from trainmaster.client.api.errors import ApiError, Forbidden, Unreachable

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
"""Group of the streams of all training jobs."""
MAX_LINES = 10_000
"""Maximum number of events in one answer (CloudWatch Logs API, GetLogEvents, `limit`)."""
_MAX_EMPTY = 3
"""Empty pages after which a stream is taken to be at its end, though its token still changes."""
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException"})
_HINT = (
    f"Your identity needs logs:DescribeLogStreams and logs:GetLogEvents on {LOG_GROUP}, as in the policy of the "
    "stack's output TrainingJobReaderPolicyArn."
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log stream.

    Attributes:
        at: its time in milliseconds since 1970, UTC.
        stream: name of its stream.
        text: the line.
    """

    at: int
    stream: str
    text: str


class LogReader:
    """Reads each line of a stream once, through a CloudWatch Logs client; methods raise `ApiError`."""

    def __init__(self, client: Any, since: int | None = None) -> None:
        """Keep the client; only lines from `since` on are read, in milliseconds since 1970."""
        self._client = client
        self._bounds: dict[str, Any] = {} if since is None else {"startTime": since}
        self._tokens: dict[str, str] = {}

    def streams(self, training_job: str) -> list[str]:
        """Return the names of a training job's streams; none before its containers write."""
        try:
            return [stream["logStreamName"] for stream in list_streams(self._client, f"{training_job}/")]
        except ClientError as error:
            raise _translated(error) from error

    def unread(self, stream: str) -> Iterator[LogLine]:
        """Yield the lines behind those that were read, oldest first."""
        empty = 0
        while empty < _MAX_EMPTY:
            token = self._tokens.get(stream)
            page = self._page(stream, startFromHead=True, **({"nextToken": token} if token else {}))
            yield from _lines(stream, page)
            if page["nextForwardToken"] == token:
                return
            empty = 0 if page["events"] else empty + 1

    def last(self, stream: str, count: int) -> list[LogLine]:
        """Return the last lines of a stream, oldest first; all of it counts as read then."""
        return _lines(stream, self._page(stream, startFromHead=False, limit=min(count, MAX_LINES)))

    def _page(self, stream: str, **arguments: Any) -> Any:
        """Return a page, and remember where the next one begins."""
        place = {"logGroupName": LOG_GROUP, "logStreamName": stream}
        try:
            page = self._client.get_log_events(**place, **self._bounds, **arguments)
        except ClientError as error:
            raise _translated(error) from error
        self._tokens[stream] = page["nextForwardToken"]
        return page


def list_streams(client: Any, prefix: str) -> list[dict[str, Any]]:
    """Return the streams whose names begin with the prefix, by name; none if the group does not exist yet."""
    pages = client.get_paginator("describe_log_streams").paginate(
        logGroupName=LOG_GROUP, logStreamNamePrefix=prefix, orderBy="LogStreamName"
    )
    try:
        return [stream for page in pages for stream in page["logStreams"]]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return []  # the first container of the account creates the group
        raise


def host_of(stream: str) -> str:
    """Return `algo-1` of `name/algo-1-1700000000`; the host's number is the same in every attempt."""
    return "-".join(stream.partition("/")[2].split("-")[:2])


def _lines(stream: str, page: Any) -> list[LogLine]:
    return [LogLine(event["timestamp"], stream, event["message"]) for event in page["events"]]


def _translated(error: ClientError) -> ApiError:
    code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    if code in _DENIED:
        return Forbidden(message, type=code, hint=_HINT)
    return Unreachable(f"CloudWatch Logs did not answer: {message or code}", type=code)
