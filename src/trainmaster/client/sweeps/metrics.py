"""Reads the metrics of trials: final values from SageMaker, curves from CloudWatch, over all attempts of a job.

SageMaker publishes the metrics of a request's MetricDefinitions under the name of the attempt's training job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import ApiError, Forbidden, Unreachable
from trainmaster.client.views.moments import parse_timestamp

if TYPE_CHECKING:
    from trainmaster.client.sweeps.stopping import Curve
    from trainmaster.client.views.types import AttemptView, JobView

_NAMESPACE: Final = "/aws/sagemaker/TrainingJobs"
_DIMENSION: Final = "TrainingJobName"
_PERIOD_SECONDS: Final = 60
_MAX_QUERIES: Final = 500
"""Maximum number of queries in one call (CloudWatch API, GetMetricData)."""
_MISSING: Final = "ValidationException"
"""SageMaker's error code for a training job that it does not have."""
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "UnrecognizedClientException"})


class FinalMetrics:
    """Last values of metrics, through a SageMaker client made at first use; those of ended attempts are read once."""

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._ended: dict[str, Mapping[str, float]] = {}

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def value(self, job: JobView, metric: str) -> float | None:
        """Return the metric of the job's newest attempt that has it; None if none has. Raises ApiError."""
        for attempt in reversed(_started(job)):
            values = self._values(attempt)
            if metric in values:
                return values[metric]
        return None

    def _values(self, attempt: AttemptView) -> Mapping[str, float]:
        name = attempt["trainingJobName"]
        if name in self._ended:
            return self._ended[name]
        try:
            described = self._client.describe_training_job(TrainingJobName=name)
        except Exception as error:
            if _code(error) == _MISSING:
                return {}
            raise _translated(error, "sagemaker:DescribeTrainingJob") from error
        values = {each["MetricName"]: float(each["Value"]) for each in described.get("FinalMetricDataList", [])}
        if attempt["endedAt"]:
            self._ended[name] = values
        return values


class MetricCurves:
    """Curves of a metric over the time at work, through a CloudWatch client; those of ended jobs are read once."""

    def __init__(self, client: Any, metric: str) -> None:
        self._client, self._metric = client, metric
        self._kept: dict[str, Curve] = {}

    def read(self, jobs: Sequence[JobView], now: datetime) -> dict[str, Curve]:
        """Return the curve of each job by its name, empty if it has no values yet. Raises ApiError."""
        wanted = [job for job in jobs if job["jobName"] not in self._kept]
        fresh: dict[str, list[tuple[float, float]]] = {job["jobName"]: [] for job in wanted}
        rows = ((job["jobName"], attempt, worked) for job in wanted for attempt, worked in _with_offsets(job))
        while part := list(islice(rows, _MAX_QUERIES)):
            for name, points in self._points(part, now):
                fresh[name] += points
        curves = {name: sorted(points) for name, points in fresh.items()}
        self._kept |= {job["jobName"]: curves[job["jobName"]] for job in wanted if job["endedAt"]}
        return {job["jobName"]: curves.get(job["jobName"], self._kept.get(job["jobName"], [])) for job in jobs}

    def _points(
        self, part: Sequence[tuple[str, AttemptView, float]], now: datetime
    ) -> Iterator[tuple[str, list[tuple[float, float]]]]:
        """Yield the points of attempts, as seconds at work and values, with the names of their jobs."""
        starts = {
            f"q{index}": parse_timestamp(attempt["startedAt"] or "") for index, (_, attempt, _) in enumerate(part)
        }
        request = {
            "MetricDataQueries": [self._query(f"q{index}", attempt) for index, (_, attempt, _) in enumerate(part)],
            "StartTime": min(starts.values()),
            "EndTime": now,
        }
        try:
            for page in self._client.get_paginator("get_metric_data").paginate(**request):
                for result in page["MetricDataResults"]:
                    name, _, worked = part[int(result["Id"][1:])]
                    times = (_utc(time) - starts[result["Id"]] for time in result["Timestamps"])
                    elapsed = (worked + max(time.total_seconds(), 0.0) for time in times)
                    yield name, list(zip(elapsed, result["Values"], strict=True))
        except Exception as error:
            raise _translated(error, "cloudwatch:GetMetricData") from error

    def _query(self, name: str, attempt: AttemptView) -> dict[str, Any]:
        dimension = {"Name": _DIMENSION, "Value": attempt["trainingJobName"]}
        metric = {"Namespace": _NAMESPACE, "MetricName": self._metric, "Dimensions": [dimension]}
        return {"Id": name, "MetricStat": {"Metric": metric, "Period": _PERIOD_SECONDS, "Stat": "Average"}}


def _started(job: JobView) -> list[AttemptView]:
    return [attempt for attempt in job["attempts"] if attempt["startedAt"]]


def _with_offsets(job: JobView) -> Iterator[tuple[AttemptView, float]]:
    """Yield the attempts that started, with the seconds that earlier ones were at work."""
    earlier = job.get("earlierAttempts")
    worked = earlier["atWorkSeconds"] if earlier else 0.0
    for attempt in _started(job):
        yield attempt, worked
        if attempt["endedAt"]:
            start, end = parse_timestamp(attempt["startedAt"] or ""), parse_timestamp(attempt["endedAt"])
            worked += max((end - start).total_seconds(), 0.0)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _code(error: Exception) -> str:
    response: Mapping[str, Any] = getattr(error, "response", {})
    return str(response.get("Error", {}).get("Code", ""))


def _translated(error: Exception, action: str) -> Exception:
    """Return an error of botocore as an ApiError; others as they are."""
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, ApiError) or not isinstance(error, BotoCoreError | ClientError):
        return error
    code = _code(error)
    if code in _DENIED:
        return Forbidden(str(error), type=code, hint=f"Your identity needs {action} for the metrics of trials.")
    return Unreachable(f"The metrics of trials could not be read: {error}", type=code, hint="Try again later.")
