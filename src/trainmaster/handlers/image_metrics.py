"""The figures of image jobs as embedded metrics, under the names and dimensions of ModelRunner's guide.

CloudWatch adds nothing up over dimensions, so each figure is written with `Operation` alone, which is what the guide's
alarms ask for, and with `Operation` and `ModelName`. Each is a line of its own: `Metrics` would add the dimension
`service`. It must not take figures.
"""

from __future__ import annotations

from collections.abc import Iterable

from aws_lambda_powertools import single_metric
from aws_lambda_powertools.metrics import MetricUnit

from trainmaster.service.images.metrics import Figures

NAMESPACE = "OSML/ModelRunner"
OPERATION = {"Operation": "Scheduling"}


def tell_figures(figures: Figures) -> None:
    """The figures of a pass."""
    _tell("Invocations", MetricUnit.Count, 1)
    _tell("Duration", MetricUnit.Milliseconds, figures.milliseconds)
    _tell("ApproximateNumberOfRequestsBuffered", MetricUnit.Count, figures.buffered)
    _tell("ApproximateNumberOfRequestsVisible", MetricUnit.Count, figures.visible)
    _tell("Throttles", MetricUnit.Count, sum(figures.throttles.values()))
    for model, count in figures.throttles.items():
        _tell("Throttles", MetricUnit.Count, count, model)
    for model, percent in figures.utilization.items():
        _tell("Utilization", MetricUnit.Percent, percent)
        _tell("Utilization", MetricUnit.Percent, percent, model)


def tell_errors(models: Iterable[str]) -> None:
    """Endpoints that could not be described; a pass without one says so too, for a rate needs both."""
    failed = tuple(models)
    _tell("Errors", MetricUnit.Count, len(failed))
    for model in failed:
        _tell("Errors", MetricUnit.Count, 1, model)


def _tell(name: str, unit: MetricUnit, value: float, model: str | None = None) -> None:
    dimensions = OPERATION if model is None else {**OPERATION, "ModelName": model}
    with single_metric(name=name, unit=unit, value=value, namespace=NAMESPACE, default_dimensions=dimensions):
        pass
