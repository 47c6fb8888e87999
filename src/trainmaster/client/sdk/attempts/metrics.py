"""Joins the metrics of a job's attempts into one curve, for `TrainingJobAnalytics` of both SDKs.

SageMaker publishes metrics under the name of the attempt, and the SDKs ask for those of the job's name, from the start
of the newest attempt. The handlers answer GetMetricStatistics for jobs with several attempts, from what Describe has
fetched; all other calls pass through.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSResponse
from botocore.utils import parse_to_aware_datetime

from trainmaster.client.sdk.attempts.joining import join, joining
from trainmaster.client.views.moments import parse_timestamp

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterator, Mapping

    import boto3
    from botocore.hooks import BaseEventHooks

    from trainmaster.client.sdk.attempts.logs import RouteOfViews
    from trainmaster.client.sdk.response_codec import BotoResponse
    from trainmaster.client.views.types import AttemptView, JobDetailView

NAMESPACE = "/aws/sagemaker/TrainingJobs"
_DIMENSION = "TrainingJobName"
_OPERATION = "cloudwatch.GetMetricStatistics"
_REQUEST = "trainmaster_metrics"
_MARGIN = timedelta(minutes=1)
"""The SDKs ask for a minute more than the job took, since CloudWatch cuts off the seconds."""


class AttemptMetrics:
    """Handlers of GetMetricStatistics for jobs with several attempts."""

    def __init__(self, route: RouteOfViews, session: weakref.ref[boto3.session.Session]) -> None:
        self._route = route
        self._session = session

    def attach(self, events: BaseEventHooks) -> None:
        """Register on a session's or a client's events; idempotent."""
        for event, handler in self._handlers():
            events.register(event, handler, unique_id=f"trainmaster:{id(self)}:{event}")

    def detach(self, events: BaseEventHooks) -> None:
        """Unregister the handlers."""
        for event, _ in self._handlers():
            events.unregister(event, unique_id=f"trainmaster:{id(self)}:{event}")

    def _handlers(self) -> list[tuple[str, Any]]:
        return [(f"before-parameter-build.{_OPERATION}", self.keep), (f"before-call.{_OPERATION}", self.before)]

    def keep(self, params: dict[str, Any], context: dict[str, Any], **_: object) -> None:
        """Keep the request of a job's metrics: a serialized one depends on the protocol of botocore's version."""
        if self._route.enabled and not joining() and params.get("Namespace") == NAMESPACE:
            context[_REQUEST] = params

    def before(self, context: dict[str, Any], **_: object) -> BotoResponse | None:
        """Handle a `before-call` event; return None to pass the call through."""
        request = context.get(_REQUEST)
        session = self._session()
        job = self._job_of(request) if request else None
        if request is None or job is None or session is None:
            return None
        with join():
            reader: Any = session.client("cloudwatch", region_name=context["client_region"])
            answers = [reader.get_metric_statistics(**each) for each in _requests(request, job)]
        # Where two attempts have a value for one period, the later one's is the job's.
        points = {point["Timestamp"]: point for answer in answers for point in answer["Datapoints"]}
        return AWSResponse("", 200, {}, None), {**answers[-1], "Datapoints": list(points.values())}  # type: ignore[arg-type]

    def _job_of(self, request: Mapping[str, Any]) -> JobDetailView | None:
        """Return the job whose metrics a request is for, if it has several attempts; None otherwise."""
        names = [each["Value"] for each in request.get("Dimensions", []) if each["Name"] == _DIMENSION]
        job = self._route.newest_view(names[0]) if names else None
        return job if job is not None and job["jobName"] == names[0] and len(_started(job)) > 1 else None


def _requests(request: Mapping[str, Any], job: JobDetailView) -> Iterator[dict[str, Any]]:
    """Yield a request for each attempt, oldest first.

    The whole job is asked for by a period that begins with the newest attempt, as Describe tells. Each attempt then has
    its own time, so that a wait of days between two does not exceed CloudWatch's limit of points.
    """
    attempts = _started(job)
    created, started = (parse_timestamp(attempts[-1][time] or "") for time in ("createdAt", "startedAt"))
    of_newest = created <= parse_to_aware_datetime(request["StartTime"]) < started + _MARGIN
    others = [each for each in request["Dimensions"] if each["Name"] != _DIMENSION]
    for attempt in attempts:
        own = {**request, "Dimensions": [*others, {"Name": _DIMENSION, "Value": attempt["trainingJobName"]}]}
        yield own | (_times(attempt) if of_newest and attempt is not attempts[-1] else {})


def _started(job: JobDetailView) -> list[AttemptView]:
    return [attempt for attempt in job["attempts"] if attempt["startedAt"]]


def _times(attempt: AttemptView) -> dict[str, datetime]:
    start = parse_timestamp(attempt["startedAt"] or "")
    end = parse_timestamp(attempt["endedAt"]) if attempt["endedAt"] else start
    return {"StartTime": start, "EndTime": end + _MARGIN}
