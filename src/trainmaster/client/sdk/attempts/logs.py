"""Joins the log streams of a job's attempts, so that attempt 2 continues where attempt 1 ended.

Both SDKs read CloudWatch streams whose names begin with the job's name, as the first attempt's do. Later attempts have
other names, so a reader would wait forever at the end of the first attempt's stream. The handlers answer calls for
training-job streams of jobs with several attempts, from what Describe has fetched; all other calls pass through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from trainmaster.client.logs import LOG_GROUP, host_of, list_streams
from trainmaster.client.sdk.attempts.joining import join, joining
from trainmaster.client.sdk.job_cache import attempt_names
from trainmaster.client.sdk.response_codec import BotoResponse, make_response, request_of

if TYPE_CHECKING:
    import weakref

    import boto3
    from botocore.hooks import BaseEventHooks
    from botocore.model import OperationModel

    from trainmaster.client.views.types import JobDetailView

_EVENTS = tuple(f"before-call.cloudwatch-logs.{operation}" for operation in ("DescribeLogStreams", "GetLogEvents"))
_MARKER = "trainmaster"


class RouteOfViews(Protocol):
    """The part of a route that its handlers for attempts need."""

    enabled: bool

    def newest_view(self, name: str) -> JobDetailView | None:
        """Return the newest view of the job of this name or with an attempt of this name; see `Route`."""
        ...


class AttemptLogs:
    """Handlers of DescribeLogStreams and GetLogEvents for jobs with several attempts."""

    def __init__(self, route: RouteOfViews, session: weakref.ref[boto3.session.Session]) -> None:
        self._route = route
        self._session = session
        self._readers: dict[str, Any] = {}

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events; idempotent."""
        for event in _EVENTS:
            handler: Any = self.before  # the stubs do not allow a handler to return a response
            events.register(event, handler, unique_id=self._id_of(event))

    def detach(self, events: BaseEventHooks) -> None:
        """Unregister the handlers."""
        for event in _EVENTS:
            events.unregister(event, unique_id=self._id_of(event))

    def _id_of(self, event: str) -> str:
        return f"trainmaster:{id(self)}:{event}"

    def before(
        self, model: OperationModel, params: dict[str, Any], context: dict[str, Any], **_: object
    ) -> BotoResponse | None:
        """Handle a `before-call` event; return None to pass the call through."""
        request = request_of(params)
        session = self._session()
        joins = self._route.enabled and not joining() and request.get("logGroupName") == LOG_GROUP
        if not joins or session is None:
            return None
        with join():
            reader = self._reader(session, context["client_region"])
            if model.name == "GetLogEvents":
                return self._events(model, request, reader)
            return self._streams(model, request, reader)

    def _streams(self, model: OperationModel, request: dict[str, Any], reader: Any) -> BotoResponse | None:
        """Return one stream per host, of the first attempt that has one; later attempts are read through it."""
        names = self._attempts_of(request.get("logStreamNamePrefix", ""))
        if names is None:
            return None
        by_host: dict[str, dict[str, Any]] = {}
        for stream in (stream for name in names for stream in list_streams(reader, f"{name}/")):
            by_host.setdefault(host_of(stream["logStreamName"]), stream)
        return make_response(model, {"logStreams": [by_host[host] for host in sorted(by_host)]})

    def _events(self, model: OperationModel, request: dict[str, Any], reader: Any) -> BotoResponse | None:
        """Return a page of the stream or, past its end, of the next attempt's stream on the same host."""
        stream, token = _position(request)
        if not request.get("startFromHead") or self._attempts_of(stream) is None:
            return None
        page = _page(reader, request, stream, token)
        while not page["events"] and (following := self._next_with_events(reader, request, stream)):
            stream, page = following
        if stream != request["logStreamName"]:
            page["nextForwardToken"] = f"{_MARKER}|{stream}|{page['nextForwardToken']}"
        return make_response(model, {key: value for key, value in page.items() if key != "ResponseMetadata"})

    def _next_with_events(self, reader: Any, request: dict[str, Any], stream: str) -> tuple[str, dict[str, Any]] | None:
        """Return the first later stream with events: an earlier one may still receive its last lines."""
        names = self._attempts_of(stream) or []
        own = stream.partition("/")[0]
        # An attempt that the queue no longer lists came before all listed ones.
        for name in names[names.index(own) + 1 :] if own in names else names:
            for found in list_streams(reader, f"{name}/{host_of(stream)}-"):
                page = _page(reader, request, found["logStreamName"], None)
                if page["events"]:
                    return found["logStreamName"], page
        return None

    def _attempts_of(self, stream_or_prefix: str) -> list[str] | None:
        """Return the attempts of the stream's job, oldest first; None if there is nothing to join."""
        name, slash, _ = stream_or_prefix.partition("/")
        job = self._route.newest_view(name) if slash else None
        names = attempt_names(job) if job else []
        return names if len(names) > 1 else None

    def _reader(self, session: boto3.session.Session, region: str) -> Any:
        """Return a logs client of the same session, to call CloudWatch itself."""
        if region not in self._readers:
            self._readers[region] = session.client("logs", region_name=region)
        return self._readers[region]


def _page(reader: Any, request: dict[str, Any], stream: str, token: str | None) -> dict[str, Any]:
    arguments = {key: value for key, value in request.items() if key not in ("logStreamName", "nextToken")}
    if token:
        arguments["nextToken"] = token
    page: dict[str, Any] = reader.get_log_events(logStreamName=stream, **arguments)
    return page


def _position(request: dict[str, Any]) -> tuple[str, str | None]:
    """Return the stream being read and CloudWatch's own token in it."""
    prefix, _, rest = request.get("nextToken", "").partition("|")
    if prefix == _MARKER:
        stream, _, token = rest.partition("|")
        return stream, token
    return request["logStreamName"], request.get("nextToken")
