"""Makes the log streams of a job's attempts read as one: attempt 2 goes on where attempt 1 ended.

Both SDKs read CloudWatch streams whose names begin with the job's name, and the first attempt's do. A later attempt's
begin with its own, so a reader would wait for ever at the first attempt's end. Calls on training-job streams of jobs
with later attempts are answered here; it must not touch any other, nor ask the queue: it uses what Describe learned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError

from trainmaster.client.sdk.job_cache import KnownJobs, attempt_names
from trainmaster.client.sdk.response_codec import Answer, answer, request_of

if TYPE_CHECKING:
    import weakref

    import boto3
    from botocore.hooks import BaseEventHooks
    from botocore.model import OperationModel

_GROUP = "/aws/sagemaker/TrainingJobs"
_EVENTS = tuple(f"before-call.cloudwatch-logs.{operation}" for operation in ("DescribeLogStreams", "GetLogEvents"))
_MARK = "trainmaster"


class _Route(Protocol):
    enabled: bool
    known: KnownJobs


class AttemptLogs:
    """Answers DescribeLogStreams and GetLogEvents for jobs with more attempts than one."""

    def __init__(self, route: _Route, session: weakref.ref[boto3.session.Session]) -> None:
        self._route = route
        self._session = session
        self._readers: dict[str, Any] = {}

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events; again is the same as once."""
        for event in _EVENTS:
            handler: Any = self.before  # the stubs do not know that a handler may answer
            events.register(event, handler, unique_id=self._id_of(event))

    def detach(self, events: BaseEventHooks) -> None:
        """Take the handlers away again."""
        for event in _EVENTS:
            events.unregister(event, unique_id=self._id_of(event))

    def _id_of(self, event: str) -> str:
        return f"trainmaster:{id(self)}:{event}"

    def before(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any], **_: object
    ) -> Answer | None:
        """The `before-call` handler: None passes the call through."""
        request = request_of(params)
        session = self._session()
        if not self._route.enabled or session is None or request.get("logGroupName") != _GROUP:
            return None
        reader = self._reader(session, context["client_region"])
        if model.name == "GetLogEvents":
            return self._events(model, request, reader)
        return self._streams(model, request, reader)

    def _streams(self, model: OperationModel, request: dict[str, Any], reader: Any) -> Answer | None:
        """One stream a host: the first attempt's that has one; the later ones are read through it."""
        names = self._attempts_of(request.get("logStreamNamePrefix", ""))
        if names is None:
            return None
        by_host: dict[str, dict[str, Any]] = {}
        for stream in (stream for name in names for stream in _list_streams(reader, f"{name}/")):
            by_host.setdefault(_host_of(stream["logStreamName"]), stream)
        return answer(model, {"logStreams": [by_host[host] for host in sorted(by_host)]})

    def _events(self, model: OperationModel, request: dict[str, Any], reader: Any) -> Answer | None:
        """A page of the stream or, past its end, of the next attempt's stream of the same host."""
        stream, token = _position(request)
        if not request.get("startFromHead") or self._attempts_of(stream) is None:
            return None
        page = _page(reader, request, stream, token)
        while not page["events"] and (following := self._next_with_events(reader, request, stream)):
            stream, page = following
        if stream != request["logStreamName"]:
            page["nextForwardToken"] = f"{_MARK}|{stream}|{page['nextForwardToken']}"
        return answer(model, {key: value for key, value in page.items() if key != "ResponseMetadata"})

    def _next_with_events(self, reader: Any, request: dict[str, Any], stream: str) -> tuple[str, dict[str, Any]] | None:
        """The first later attempt's stream that has events: an earlier one may still receive its last lines."""
        names = self._attempts_of(stream) or []
        own = stream.partition("/")[0]
        # One that the queue does not list any more came before all that it lists.
        for name in names[names.index(own) + 1 :] if own in names else names:
            for found in _list_streams(reader, f"{name}/{_host_of(stream)}-"):
                page = _page(reader, request, found["logStreamName"], None)
                if page["events"]:
                    return found["logStreamName"], page
        return None

    def _attempts_of(self, stream_or_prefix: str) -> list[str] | None:
        """The attempts of the job that the stream belongs to, oldest first; None where there is nothing to join."""
        name, slash, _ = stream_or_prefix.partition("/")
        job = self._route.known.remembered(name) if slash else None
        names = attempt_names(job) if job else []
        return names if len(names) > 1 else None

    def _reader(self, session: boto3.session.Session, region: str) -> Any:
        """A logs client of the same session that is not routed, to ask CloudWatch itself."""
        if region not in self._readers:
            client: Any = session.client("logs", region_name=region)
            self.detach(client.meta.events)
            self._readers[region] = client
        return self._readers[region]


def _list_streams(reader: Any, prefix: str) -> list[dict[str, Any]]:
    pages = reader.get_paginator("describe_log_streams").paginate(
        logGroupName=_GROUP, logStreamNamePrefix=prefix, orderBy="LogStreamName"
    )
    try:
        return [stream for page in pages for stream in page["logStreams"]]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return []  # the group is made when the first container of the account writes
        raise


def _page(reader: Any, request: dict[str, Any], stream: str, token: str | None) -> dict[str, Any]:
    asked = {key: value for key, value in request.items() if key not in ("logStreamName", "nextToken")}
    if token:
        asked["nextToken"] = token
    page: dict[str, Any] = reader.get_log_events(logStreamName=stream, **asked)
    return page


def _position(request: dict[str, Any]) -> tuple[str, str | None]:
    """The stream that is being read and CloudWatch's own token in it."""
    mark, _, rest = request.get("nextToken", "").partition("|")
    if mark == _MARK:
        stream, _, token = rest.partition("|")
        return stream, token
    return request["logStreamName"], request.get("nextToken")


def _host_of(stream: str) -> str:
    """`algo-1` of `name/algo-1-1700000000`: the host's number is the same in every attempt."""
    return "-".join(stream.partition("/")[2].split("-")[:2])
