"""Metrics of image jobs in embedded metric format, under the names and dimensions of ModelRunner's guide.

CloudWatch does not aggregate over dimensions, so each metric is written twice: with `Operation` alone, as the guide's
alarms expect, and with `Operation` and `ModelName`.
"""

from __future__ import annotations

from collections.abc import Iterable

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from trainmaster.images.service.metrics import ImageJobMetrics

NAMESPACE = "OSML/ModelRunner"
_Figure = tuple[str, MetricUnit, float]


def tell_figures(figures: ImageJobMetrics) -> None:
    """Emit the figures of a pass."""
    _tell(
        ("Invocations", MetricUnit.Count, 1),
        ("Duration", MetricUnit.Milliseconds, figures.milliseconds),
        ("ApproximateNumberOfRequestsBuffered", MetricUnit.Count, figures.buffered),
        ("ApproximateNumberOfRequestsVisible", MetricUnit.Count, figures.visible),
        ("Throttles", MetricUnit.Count, sum(figures.throttles.values())),
        ("Requests", MetricUnit.Count, figures.requests),
        *(("Utilization", MetricUnit.Percent, percent) for percent in figures.utilization.values()),
    )
    for model, percent in figures.utilization.items():
        throttles = ("Throttles", MetricUnit.Count, figures.throttles.get(model, 0))
        _tell(("Utilization", MetricUnit.Percent, percent), throttles, model=model)


def tell_errors(models: Iterable[str], *, decisions: int = 0) -> None:
    """Emit failures by endpoint, zero included, since a rate needs both.

    Args:
        models: the endpoint of each error, as often as it had one.
        decisions: the decisions that include these errors, if no pass counts them: the requests that the intake has
            read. Without them there would be no rate while every image fails.
    """
    failed = tuple(models)
    also = [("Invocations", MetricUnit.Count, decisions)] if decisions else []
    _tell(("Errors", MetricUnit.Count, len(failed)), *also)
    for model in failed:
        _tell(("Errors", MetricUnit.Count, 1), model=model)


def _tell(*figures: _Figure, model: str | None = None) -> None:
    """One line of the log. The service's name would be a third dimension, and the guide's alarms would find nothing."""
    line = EphemeralMetrics(service="", namespace=NAMESPACE)
    line.add_dimension(name="Operation", value="Scheduling")
    if model is not None:
        line.add_dimension(name="ModelName", value=model)
    for name, unit, value in figures:
        line.add_metric(name=name, unit=unit, value=value)
    # Powertools writes a line by itself when a figure has its hundredth value; then nothing may be left.
    if line.metric_set:
        line.flush_metrics()
