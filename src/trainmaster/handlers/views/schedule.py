"""Views of the schedule."""

from __future__ import annotations

from trainmaster.handlers.models import schedule as models
from trainmaster.service.explain.timeline import Interval, PoolTimeline, Timeline


def schedule_view(timeline: Timeline) -> models.Schedule:
    """Return the timeline as the API shows it."""
    return models.Schedule(
        at=timeline.at,
        start=timeline.period.since,
        until=timeline.period.until,
        past_from=timeline.past_since,
        more=timeline.more,
        pools=[_pool_view(pool) for pool in timeline.pools],
    )


def _pool_view(found: PoolTimeline) -> models.SchedulePool:
    pool = found.pool
    return models.SchedulePool(
        name=found.name,
        kind=None if pool is None else pool.kind,
        instance_type=None if pool is None else pool.instance_type,
        cap=None if pool is None else pool.cap,
        draining=pool is not None and pool.draining,
        intervals=[_interval_view(interval) for interval in found.intervals],
        left_out=found.left_out,
    )


def _interval_view(interval: Interval) -> models.ScheduleInterval:
    job, start, until = interval.job, interval.since_range, interval.until_range
    return models.ScheduleInterval(
        kind=interval.kind,
        job_name=None if job is None else job.name,
        job_state=None if job is None else job.state,
        share=None if job is None else job.share,
        priority=None if job is None else job.priority,
        units=interval.units,
        attempt=interval.attempt,
        outcome=interval.outcome,
        start=interval.since,
        start_low=None if start is None else start.low,
        start_high=None if start is None else start.high,
        until=interval.until,
        until_low=None if until is None else until.low,
        until_high=None if until is None else until.high,
    )
