"""Sum what jobs used in a period: instance hours, dollars, waits, preemptions and lost work.

A job contributes parts, each of which belongs to pools, so that the same parts make the sums of pools, shares and
users. Instances count from the decision to start an attempt until its end, as shares are charged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple

from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.units import Kind, Pool, Units, is_service_pool
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ACTIVE, Job, JobState
from trainmaster.domain.jobs.past_intervals import PastSize, lost_seconds, past_sizes, present_since


class Span(NamedTuple):
    """A period, from its beginning until just before its end."""

    since: datetime
    until: datetime

    def has(self, at: datetime | None) -> bool:
        """Return whether a time lies in the period."""
        return at is not None and self.since <= at < self.until

    def seconds_of(self, size: PastSize) -> float:
        """Return for how many seconds of the period a size was held."""
        return max((min(size.until, self.until) - max(size.since, self.since)).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Sums over jobs; service requests count in no hours.

    Attributes:
        jobs: those that held units.
        submitted, started, completed, failed, stopped, cancelled: those of which this happened; started: first.
        instance_seconds: of the instances that attempts held.
        accelerator_seconds: the same times the accelerators of an instance.
        dollars: by the prices of pools and types.
        unpriced_instance_seconds: the part of `instance_seconds` without a known price.
        preemptions: attempts that ended by one.
        lost_instance_seconds: work of those attempts since their newest known checkpoints.
        lost_accelerator_seconds: the same times the accelerators of an instance.
        unlisted_attempts: attempts before the end of the period that their jobs no longer list; their hours are
            missing.
        waits: seconds from the entry of a job to its first start.
    """

    jobs: int = 0
    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    stopped: int = 0
    cancelled: int = 0
    instance_seconds: float = 0.0
    accelerator_seconds: float = 0.0
    dollars: float = 0.0
    unpriced_instance_seconds: float = 0.0
    preemptions: int = 0
    lost_instance_seconds: float = 0.0
    lost_accelerator_seconds: float = 0.0
    unlisted_attempts: int = 0
    waits: tuple[float, ...] = ()

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True)
class Rates:
    """Accelerators and prices of instances: those of pools, and those of types for pools that are gone."""

    pools: Mapping[str, Pool]
    catalogue: Catalogue

    def accelerators(self, pool: str) -> int:
        """Return the accelerators of an instance; 0 if none are known."""
        if pool in self.pools:
            return self.catalogue.of_pool(self.pools[pool]).accelerators
        known = self.catalogue.type_of(pool)
        return 0 if known is None else known.accelerators

    def price(self, pool: str) -> float:
        """Return the dollars of an instance-hour: the pool's own price, or the type's if it is on demand; 0 if unknown.

        A pool that is gone is taken for one on demand, named after its type.
        """
        known = self.pools.get(pool)
        if known is not None and (known.price or known.kind is not Kind.ON_DEMAND):
            return known.price
        kind = self.catalogue.type_of(pool if known is None else known.instance_type)
        return 0.0 if kind is None else kind.price


class Part(NamedTuple):
    """Contribution of a job, and the pools to which it belongs."""

    pools: Collection[str]
    totals: UsageTotals


def parts_of(job: Job, span: Span, rates: Rates, now: datetime) -> Iterator[Part]:
    """Yield what a job contributes to a period."""
    held = [size for size in _sizes(job, now) if span.seconds_of(size) > 0]
    for size in held:
        for pool, count in size.units.items():
            yield Part((pool,), _hours(pool, count, span.seconds_of(size), rates))
    if held:
        yield Part({pool for size in held for pool in size.units}, UsageTotals(jobs=1))
    yield from _events(job, span)
    for attempt in job.attempts:
        if attempt.outcome is Outcome.PREEMPTED and span.has(attempt.ended_at):
            yield Part(attempt.units, UsageTotals(preemptions=1))
            lost = lost_seconds(job, attempt)
            for pool, count in attempt.units.items():
                yield Part((pool,), _lost(pool, count, lost, rates))


def _sizes(job: Job, now: datetime) -> Iterator[PastSize]:
    """Yield all that the listed attempts have held, until now."""
    for attempt in job.attempts:
        yield from past_sizes(job, attempt)
    if job.state in ACTIVE and job.attempt is not None and job.attempt.ended_at is None:
        yield PastSize(job.attempt.units, present_since(job.attempt), now)


def _events(job: Job, span: Span) -> Iterator[Part]:
    """Yield the counts of what happened to the job: submitted, started, ended."""
    first: Units = job.attempts[0].units if job.attempts else {}
    began = job.attempt_totals.began_at or (job.attempts[0].created_at if job.attempts else None)
    if span.has(job.entry_time):
        yield Part(first, UsageTotals(submitted=1))
    if began is not None and span.has(began):
        yield Part(first, UsageTotals(started=1, waits=(max((began - job.entry_time).total_seconds(), 0.0),)))
    if began is not None and began < span.until and job.attempt_totals.count:
        yield Part((), UsageTotals(unlisted_attempts=job.attempt_totals.count))
    if job.state in _ENDED and span.has(job.ended_at):
        last: Units = job.attempts[-1].units if job.attempts else {}
        yield Part(last, _ENDED[job.state])


_ENDED = {
    JobState.COMPLETED: UsageTotals(completed=1),
    JobState.FAILED: UsageTotals(failed=1),
    JobState.STOPPED: UsageTotals(stopped=1),
    JobState.CANCELLED: UsageTotals(cancelled=1),
}


def _hours(pool: str, count: int, seconds: float, rates: Rates) -> UsageTotals:
    if is_service_pool(pool):
        return UsageTotals()
    held, price = count * seconds, rates.price(pool)
    return UsageTotals(
        instance_seconds=held,
        accelerator_seconds=held * rates.accelerators(pool),
        dollars=held / 3600 * price,
        unpriced_instance_seconds=0.0 if price else held,
    )


def _lost(pool: str, count: int, seconds: float, rates: Rates) -> UsageTotals:
    if is_service_pool(pool):
        return UsageTotals()
    lost = count * seconds
    return UsageTotals(lost_instance_seconds=lost, lost_accelerator_seconds=lost * rates.accelerators(pool))
