"""The schedule ahead: what running and waiting jobs are expected to hold, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Estimate, Plan, Snapshot
from trainmaster.planner.forecast.forecast import EXPECTED, HIGH, LOW, ForecastRequest, range_of
from trainmaster.planner.forecast.simulation import QueueSimulation, Scheduler
from trainmaster.planner.forecast.trace import HeldUnits

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class ExpectedInterval:
    """Units that a job is expected to hold.

    Attributes:
        job: as it is when it begins to hold them.
        units: by pool.
        running: whether it holds them now.
        start: when it begins to; now for those that it holds.
        end: when it releases them, or holds other units.
    """

    job: Job
    units: Units
    running: bool
    start: Estimate
    end: Estimate


def schedule_ahead(  # noqa: PLR0913, PLR0917 -- as `estimate`, and the end
    snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str], until: datetime
) -> tuple[tuple[ExpectedInterval, ...], Plan]:
    """Return the intervals that begin before `until`, and the plan of the next pass.

    Starts and their ranges are those of `forecast.estimate`. A job that is expected to be preempted or shrunk has
    several intervals. A range is that of the interval of the same number in the other simulations.

    Args:
        snapshot: the queue as read.
        now: UTC.
        rng: passed to the planner.
        schedule: the planner.
        wanted: names of the waiting jobs to include.
        until: UTC.
    """
    request = ForecastRequest.of(snapshot, now, rng, schedule, wanted)
    expected = {
        name: begun
        for name, held in request.course(EXPECTED, wanted, until).items()
        if (begun := [each for each in held if each.since < until])
    }
    started, horizon = wanted & expected.keys(), request.horizon
    quick, slow = (request.course(quantile, started, horizon) for quantile in (LOW, HIGH))
    alone = _without_influence(snapshot, now, expected)
    intervals = [
        ExpectedInterval(
            each.job, each.units, name not in wanted and number == 0, *_ranges(each, number, same, soonest)
        )
        for name, held in expected.items()
        for same in [[quick.get(name, []), slow.get(name) or [replace(held[0], since=horizon, until=horizon)]]]
        for number, each in enumerate(held)
        for soonest in [now if request.anytime and name in wanted and number == 0 else each.since]
    ]
    return (*intervals, *alone), request.plan


def expected_ends(snapshot: Snapshot, now: datetime) -> Mapping[str, Estimate]:
    """Return when active jobs release their units if nothing preempts them, by name."""
    low, expected, high = (QueueSimulation.of(snapshot, now, quantile).ends for quantile in (LOW, EXPECTED, HIGH))
    return {name: range_of(low[name], end, high[name]) for name, end in expected.items()}


def _without_influence(
    snapshot: Snapshot, now: datetime, simulated: Mapping[str, object]
) -> tuple[ExpectedInterval, ...]:
    """Return the intervals of active jobs that the simulations left out, as no wanted job depends on them."""
    start, ends = Estimate(now, now, now), expected_ends(snapshot, now)
    others = (job for job in snapshot.active if job.name not in simulated and job.units)
    return tuple(ExpectedInterval(job, job.units, running=True, start=start, end=ends[job.name]) for job in others)


def _ranges(
    held: HeldUnits, number: int, others: Sequence[Sequence[HeldUnits]], soonest: datetime
) -> tuple[Estimate, Estimate]:
    """Return the ranges of start and end.

    Args:
        held: an interval of a job.
        number: its number among those of the job.
        others: the intervals of the job in the two other simulations.
        soonest: the time at or after which it may begin in any case.
    """
    low, high = (each[number] if number < len(each) else held for each in others)
    return range_of(min(low.since, soonest), held.since, high.since), range_of(low.until, held.until, high.until)
