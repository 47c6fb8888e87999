"""Views of usage reports."""

from __future__ import annotations

from trainmaster.domain.percentile import percentile
from trainmaster.domain.shares.usage_totals import UsageTotals
from trainmaster.handlers.models import usage as models
from trainmaster.service.explain.usage import UsageReport

_DIGITS = 6
"""Decimal places of hours and dollars, so that sums of many parts stay exact to a cent."""


def usage_view(report: UsageReport) -> models.Usage:
    """Return a part of a report as the API shows it."""
    return models.Usage(
        at=report.at,
        start=report.span.since,
        until=report.span.until,
        by=report.by,
        jobs_read=report.jobs_read,
        total=_group_view(None, report.total),
        groups=[_group_view(name, totals) for name, totals in report.groups.items()],
        next_cursor=report.cursor,
    )


def _group_view(name: str | None, totals: UsageTotals) -> models.UsageGroup:
    waits = sorted(totals.waits)
    return models.UsageGroup(
        name=name,
        jobs=totals.jobs,
        submitted=totals.submitted,
        started=totals.started,
        completed=totals.completed,
        failed=totals.failed,
        stopped=totals.stopped,
        cancelled=totals.cancelled,
        instance_hours=_hours(totals.instance_seconds),
        accelerator_hours=_hours(totals.accelerator_seconds),
        dollars=round(totals.dollars, _DIGITS),
        unpriced_instance_hours=_hours(totals.unpriced_instance_seconds),
        preemptions=totals.preemptions,
        lost_instance_hours=_hours(totals.lost_instance_seconds),
        lost_accelerator_hours=_hours(totals.lost_accelerator_seconds),
        unlisted_attempts=totals.unlisted_attempts,
        waits=waits,
        wait_p50_seconds=percentile(waits, 0.5),
        wait_p95_seconds=percentile(waits, 0.95),
    )


def _hours(seconds: float) -> float:
    return round(seconds / 3600, _DIGITS)
