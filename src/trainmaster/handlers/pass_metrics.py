"""Emit the metrics of a pass: for alarms, as log lines for queries, and on request as series by pool and by share."""

from __future__ import annotations

from dataclasses import asdict

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from trainmaster.service.metrics.pass_metrics import PassMetrics

NAMESPACE = "Trainmaster"
_Value = tuple[str, MetricUnit, float]


def add_pass_metrics(metrics: Metrics, figures: PassMetrics) -> None:
    """Add the metrics that alarms watch.

    None is written while no job waits and no share has a budget: a metric that is not written costs nothing.
    """
    if figures.oldest_wait is not None:
        metrics.add_metric(name="OldestWait", unit=MetricUnit.Seconds, value=figures.oldest_wait)
        metrics.add_metric(name="IdleUnits", unit=MetricUnit.Count, value=figures.idle_units)
    if figures.budget_used is not None:
        metrics.add_metric(name="BudgetUsed", unit=MetricUnit.Percent, value=figures.budget_used)


def log_pass_metrics(logger: Logger, figures: PassMetrics) -> None:
    """Log a line for each pool and each share, which the queries of the dashboard read."""
    for pool in figures.pools:
        logger.info("pool", extra=asdict(pool))
    for share in figures.shares:
        logger.info("share", extra=asdict(share))


def emit_series(queue: str, figures: PassMetrics) -> None:
    """Emit series for each pool and each share; CloudWatch charges for each."""
    for pool in figures.pools:
        _emit(
            {"queue": queue, "pool": pool.pool},
            ("Used", MetricUnit.Count, pool.used),
            ("Free", MetricUnit.Count, pool.free),
            ("Idle", MetricUnit.Count, pool.idle),
            ("Waiting", MetricUnit.Count, pool.waiting),
        )
    for share in figures.shares:
        _emit(
            {"queue": queue, "share": share.share},
            ("Accelerators", MetricUnit.Count, share.accelerators),
            ("Waiting", MetricUnit.Count, share.waiting),
            ("OldestWait", MetricUnit.Seconds, share.oldest_wait),
        )


def _emit(dimensions: dict[str, str], *values: _Value) -> None:
    """Write one line of embedded metrics. The service's name would be a further dimension."""
    line = EphemeralMetrics(service="", namespace=NAMESPACE)
    for name, value in dimensions.items():
        line.add_dimension(name=name, value=value)
    for name, unit, amount in values:
        line.add_metric(name=name, unit=unit, value=amount)
    line.flush_metrics()
