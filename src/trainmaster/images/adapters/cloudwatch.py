"""CloudWatch's `ConcurrentRequestsPerModel` of SageMaker endpoints; implements `images.ports.Concurrency`.

Each container of an instance-backed variant publishes every ten seconds its number of requests, including queued ones,
into AWS/SageMaker by EndpointName and VariantName; no unit, valid statistics Min and Max (SageMaker developer guide,
"SageMaker AI endpoint invocation metrics", "Define a scaling policy"). Serverless variants publish none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.images.domain.capacity import METRIC_WINDOW

MAX_ASKED = 500
"""Metrics per call (CloudWatch API, GetMetricData, `MetricDataQueries`)."""
_MINUTE = timedelta(minutes=1)
_LATE = 1
"""The last minute may not be published yet; any other that is missing had no requests."""


class CloudWatchConcurrency:
    """Reads all metrics in one call.

    Args:
        client_of: a CloudWatch client under a role, the queue's own for None; raises as `min_requests` does if the role
            cannot be assumed.
    """

    def __init__(self, client_of: Callable[[str | None], Any]) -> None:
        self._client_of = client_of

    def min_requests(
        self, asked: Collection[tuple[str, str]], now: datetime, *, role: str | None = None
    ) -> Mapping[tuple[str, str], float]:
        """Return the minimum per instance, of at most `MAX_ASKED` variants; see `images.ports.Concurrency`."""
        by_id = {f"m{number}": each for number, each in enumerate(list(asked)[:MAX_ASKED])}
        if not by_id:
            return {}
        client = self._client_of(role)
        ends = now.replace(second=0, microsecond=0)
        with translate_errors():
            answer = client.get_metric_data(
                MetricDataQueries=[{"Id": number, "MetricStat": _metric(*each)} for number, each in by_id.items()],
                StartTime=ends - METRIC_WINDOW,
                EndTime=ends,
            )
        found = {by_id[each["Id"]]: each["Values"] for each in answer["MetricDataResults"] if each["Id"] in by_id}
        enough = METRIC_WINDOW // _MINUTE - _LATE
        return {each: min(values) for each, values in found.items() if len(values) >= enough}


def _metric(key: str, variant: str) -> dict[str, Any]:
    # Names have no colon; a prefix before one is the account of the role (`endpoint.key_of`).
    named = {"EndpointName": key.rpartition(":")[2], "VariantName": variant}
    return {
        "Metric": {
            "Namespace": "AWS/SageMaker",
            "MetricName": "ConcurrentRequestsPerModel",
            "Dimensions": [{"Name": name, "Value": value} for name, value in named.items()],
        },
        "Period": int(_MINUTE.total_seconds()),
        "Stat": "Minimum",
    }
