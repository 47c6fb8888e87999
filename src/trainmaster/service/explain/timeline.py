"""The queue on one axis of time, by pool: past attempts, running jobs until their expected ends, and planned starts.

The planned part is the forecast that explains waiting jobs (`explain`), so its starts are their estimated starts.
Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.capacity.warm_pools import counting
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.jobs.attempt import Attempt, Outcome
from trainmaster.domain.jobs.job import ENDED, Job, JobState, held_for
from trainmaster.domain.jobs.listing import Filter, newest_of_each
from trainmaster.domain.jobs.past_intervals import past_sizes, present_since
from trainmaster.domain.plan import Estimate, Plan, Snapshot
from trainmaster.planner.forecast.schedule_ahead import ExpectedInterval, schedule_ahead
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.schedule import schedule
from trainmaster.service.change import ApiContext
from trainmaster.service.context import pass_rng
from trainmaster.service.explain.explain import with_known_position

BEFORE, AFTER = timedelta(hours=24), timedelta(hours=48)
"""The period around the present that is shown by default."""
MAX_SPAN = timedelta(days=31)
"""The longest period of one request."""
MAX_PAST_JOBS = 500
"""Ended jobs, and as many held ones, that one request reads at most."""
MAX_INTERVALS = 4_000
"""Intervals of one response, shared among its pools."""
MIN_OF_A_POOL = 20


class IntervalKind(StrEnum):
    """Kinds of intervals.

    past: an attempt held units, or a size of an elastic one. running: an attempt holds them, until its expected end.
    planned: a job is expected to. reserved: the scheduler keeps them for a blocked job from the time at which it
    expects them to be free. held: they were freed for a job, which starts there soon. warm: a warm pool keeps them.
    external: training jobs from outside the queue hold them. closed: a training plan's capacity is not usable.
    """

    PAST = "past"
    RUNNING = "running"
    PLANNED = "planned"
    RESERVED = "reserved"
    HELD = "held"
    WARM = "warm"
    EXTERNAL = "external"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Units of one pool for a while.

    Attributes:
        job: the job that holds them, or will; None for none.
        since: when it begins; `since_range` is None for a time that is known.
        until: when it ends; None if that is unknown. `until_range` is None for a time that is known.
        attempt: number of the attempt; None for what has not started.
        outcome: of a past attempt.
    """

    kind: IntervalKind
    units: int
    since: datetime
    until: datetime | None
    job: Job | None = None
    since_range: Estimate | None = None
    until_range: Estimate | None = None
    attempt: int | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class PoolTimeline:
    """The intervals of a pool in the order of time.

    Attributes:
        pool: None if it does not exist now.
        left_out: intervals beyond the limit, those furthest from the present.
    """

    name: str
    pool: Pool | None
    intervals: tuple[Interval, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """The period that is asked for."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Timeline:
    """The queue in a period.

    Attributes:
        at: the present.
        past_since: the time from which past attempts are complete; later than the period's beginning if many jobs have
            ended in it.
        more: whether further jobs wait, without planned intervals, since unread jobs may come before them.
    """

    at: datetime
    period: Period
    past_since: datetime
    more: bool
    pools: tuple[PoolTimeline, ...]


def period_of(since: datetime | None, until: datetime | None, now: datetime) -> Period:
    """Return the period that a caller asks for. Raises `InvalidRequest` if it is empty or too long."""
    start = since or (now if until is None else min(now, until)) - BEFORE
    end = until or max(now, start) + AFTER
    if start >= end:
        raise InvalidRequest("`from` is not before `to`.", field="to", hint="Choose an earlier `from` or a later `to`.")
    if end - start > MAX_SPAN:
        raise InvalidRequest(f"A period has at most {MAX_SPAN.days} days.", field="from", hint="Ask for less.")
    return Period(start, end)


def read_timeline(  # noqa: PLR0913 -- the parameters of the query
    context: ApiContext,
    caller: Caller,
    since: datetime | None,
    until: datetime | None,
    *,
    pool: str | None,
    limit: int,
) -> Timeline:
    """Return the timeline of a period.

    Reads a snapshot, and the jobs that ended in the period or are held.

    Args:
        context: the dependencies.
        caller: the caller.
        since: UTC; None for a day ago.
        until: UTC; None for two days ahead.
        pool: the only pool to return; None for all.
        limit: intervals of a pool, at most.

    Raises `InvalidRequest`, `AccessDenied`.
    """
    context.require(caller, Action.READ)
    now = context.clock.now()
    period = period_of(since, until, now)
    snapshot = context.store.read_snapshot()
    past_jobs, past_since = _past_jobs(context, period, now)
    found = _Intervals()
    found.add_past(newest_of_each((*snapshot.active, *snapshot.waiting, *past_jobs)))
    more = found.add_expected(snapshot, now, period)
    found.add_capacity(snapshot, now)
    return Timeline(now, period, past_since, more, found.by_pool(snapshot.pools, period, now, pool, limit))


def _past_jobs(context: ApiContext, period: Period, now: datetime) -> tuple[tuple[Job, ...], datetime]:
    """Return ended and held jobs that may have run in the period, and the time from which no attempt is missing."""
    if period.since >= now:
        return (), period.since
    ended = context.store.list_jobs(Filter(states=ENDED, ended_since=period.since), limit=MAX_PAST_JOBS)
    held = context.store.list_jobs(Filter(states=frozenset({JobState.HELD})), limit=MAX_PAST_JOBS)
    last = ended.jobs[-1].ended_at if ended.cursor is not None and ended.jobs else None
    return (*ended.jobs, *held.jobs), period.since if last is None else max(last, period.since)


@dataclass(slots=True)
class _Intervals:
    """Collects intervals by pool."""

    pools: dict[str, list[Interval]] = field(default_factory=dict)

    def add(self, pool: str, interval: Interval) -> None:
        """Add an interval with units."""
        if interval.units > 0:
            self.pools.setdefault(pool, []).append(interval)

    def add_past(self, jobs: Iterable[Job]) -> None:
        """Add the ended attempts of these jobs, and the earlier sizes of running ones."""
        for job in jobs:
            for attempt in job.attempts:
                for size in past_sizes(job, attempt):
                    for pool, units in size.units.items():
                        self.add(pool, _past(job, attempt, units, size.since, size.until))

    def add_expected(self, snapshot: Snapshot, now: datetime, period: Period) -> bool:
        """Add running jobs, planned starts, reservations and holds; return whether waiting jobs were left out."""
        queue = resolve(snapshot)
        wanted = with_known_position(queue, now)
        until = max(period.until, now)
        expected, plan = schedule_ahead(queue, now, pass_rng(snapshot), schedule, wanted, until)
        for interval in expected:
            for pool, units in interval.units.items():
                self.add(pool, _running(interval, units) if interval.running else _planned(interval, units))
        self._add_kept(queue, now, plan)
        return bool(snapshot.cut_lanes) or len(wanted) < len(queue.waiting)

    def _add_kept(self, queue: Snapshot, now: datetime, plan: Plan) -> None:
        waiting, ends = {job.name: job for job in queue.waiting}, ExpectedEnds(queue, now)
        for job in waiting.values():
            for pool, units in (held_for(job, now) or {}).items():
                until = None if job.reservation is None else job.reservation.until
                self.add(pool, Interval(kind=IntervalKind.HELD, units=units, since=now, until=until, job=job))
        for reserved in plan.reservations:
            if reserved.at is None:
                continue
            blocked, since = waiting[reserved.job], reserved.at
            end = since + ends.run_time(blocked)
            for pool, units in reserved.units.items():
                self.add(pool, Interval(kind=IntervalKind.RESERVED, units=units, since=since, until=end, job=blocked))

    def add_capacity(self, snapshot: Snapshot, now: datetime) -> None:
        """Add units that no job of the queue can use."""
        for pool, units in snapshot.external.items():
            self.add(pool, Interval(kind=IntervalKind.EXTERNAL, units=units, since=now, until=None))
        for warm in counting(snapshot.warm, snapshot.active):
            for pool, units in warm.units.items():
                self.add(pool, Interval(kind=IntervalKind.WARM, units=units, since=now, until=warm.until))
        for each in snapshot.pools.values():
            for closed in _closed(each, now):
                self.add(each.name, closed)

    def by_pool(
        self, pools: Mapping[str, Pool], period: Period, now: datetime, only: str | None, limit: int
    ) -> tuple[PoolTimeline, ...]:
        """Return the intervals within the period, pool by pool in the order of their names."""
        shown = {name: _within(self.pools.get(name, ()), period) for name in sorted({*pools, *self.pools})}
        shown = {
            name: found for name, found in shown.items() if (found or name in pools) and (only is None or name == only)
        }
        busy = sum(1 for found in shown.values() if found)
        room = min(limit, max(MAX_INTERVALS // max(busy, 1), MIN_OF_A_POOL))
        return tuple(_pool_timeline(name, pools.get(name), found, now, room) for name, found in shown.items())


def _past(job: Job, attempt: Attempt, units: int, since: datetime, until: datetime) -> Interval:
    outcome = Outcome.RESIZED if until != attempt.ended_at else attempt.outcome
    return Interval(
        kind=IntervalKind.PAST,
        units=units,
        since=since,
        until=until,
        job=job,
        attempt=attempt.number,
        outcome=outcome,
    )


def _running(interval: ExpectedInterval, units: int) -> Interval:
    attempt = interval.job.attempt
    return Interval(
        kind=IntervalKind.RUNNING,
        units=units,
        since=interval.start.expected if attempt is None else present_since(attempt),
        until=interval.end.expected,
        job=interval.job,
        until_range=interval.end,
        attempt=None if attempt is None else attempt.number,
    )


def _planned(interval: ExpectedInterval, units: int) -> Interval:
    return Interval(
        kind=IntervalKind.PLANNED,
        units=units,
        since=interval.start.expected,
        until=interval.end.expected,
        job=interval.job,
        since_range=interval.start,
        until_range=interval.end,
    )


def _closed(pool: Pool, now: datetime) -> Iterator[Interval]:
    """Yield when the capacity of a training plan is not usable, from now on."""
    if pool.kind is not Kind.TRAINING_PLAN:
        return
    if pool.starts_at is not None and now < pool.starts_at:
        yield Interval(kind=IntervalKind.CLOSED, units=pool.cap, since=now, until=pool.starts_at)
    if pool.reclaimed_at is not None:
        yield Interval(kind=IntervalKind.CLOSED, units=pool.cap, since=pool.reclaimed_at, until=None)


def _within(intervals: Iterable[Interval], period: Period) -> list[Interval]:
    return [
        each for each in intervals if each.since < period.until and (each.until is None or each.until > period.since)
    ]


def _pool_timeline(name: str, pool: Pool | None, found: list[Interval], now: datetime, room: int) -> PoolTimeline:
    nearest = sorted(found, key=lambda each: _distance(each, now))[:room]
    order = sorted(nearest, key=lambda each: (each.since, "" if each.job is None else each.job.name, each.kind))
    return PoolTimeline(name, pool, tuple(order), len(found) - len(nearest))


def _distance(interval: Interval, now: datetime) -> timedelta:
    """Return the time between the present and an interval; none for one that contains it."""
    if interval.since > now:
        return interval.since - now
    return max(now - (interval.until or now), timedelta(0))
