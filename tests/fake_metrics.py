"""SageMaker and CloudWatch with the metrics of training jobs, as the tests say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError


class FakeMetrics:
    """Both clients: `finals` and `curves` are by training job, curves as minutes since the start and values."""

    def __init__(self, started: datetime) -> None:
        self.started = started
        self.finals: dict[str, dict[str, float]] = {}
        self.curves: dict[str, list[tuple[float, float]]] = {}
        self.described: list[str] = []
        self.queried: list[list[str]] = []
        self.denied = False
        self._lock = threading.Lock()

    def describe_training_job(self, TrainingJobName: str) -> dict[str, Any]:  # noqa: N803 -- boto3's name
        with self._lock:
            self.described.append(TrainingJobName)
        self._check("DescribeTrainingJob")
        if TrainingJobName not in self.finals:
            error = {"Code": "ValidationException", "Message": "Requested resource not found."}
            raise ClientError({"Error": error}, "DescribeTrainingJob")
        values = self.finals[TrainingJobName].items()
        return {"FinalMetricDataList": [{"MetricName": name, "Value": value} for name, value in values]}

    def get_paginator(self, operation: str) -> FakeMetrics:
        assert operation == "get_metric_data"
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        """Answer GetMetricData, newest values first and a page for each query, as CloudWatch may."""
        self._check("GetMetricData")
        self.queried.append([])
        for query in request["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            name = metric["Dimensions"][0]["Value"]
            self.queried[-1].append(name)
            points = sorted(self.curves.get(name, []), reverse=True)
            times = [self.started + timedelta(minutes=minute) for minute, _ in points]
            yield {"MetricDataResults": [{"Id": query["Id"], "Timestamps": times, "Values": [v for _, v in points]}]}

    def _check(self, operation: str) -> None:
        if self.denied:
            error = {"Code": "AccessDeniedException", "Message": "not authorized"}
            raise ClientError({"Error": error}, operation)
