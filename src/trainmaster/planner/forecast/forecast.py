"""When waiting jobs will start: the same planner, run forward over the run times that history expects.

Three courses: in the first all jobs are quick for their kind, in the second usual, in the third slow; that they are so
together makes up for what nobody knows, such as who will come (docs/explanation/estimated-start.md). Nothing runs
beyond its limit. A queue too long for that is told roughly. It must not use any rule of its own while the planner is
asked: each step is `schedule` and the life cycle's own transitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Plan, Snapshot
from trainmaster.planner.forecast.approximate import approximate_starts
from trainmaster.planner.forecast.simulation import QueueSimulation, Scheduler
from trainmaster.planner.orders import ranking_of
from trainmaster.planner.reservations.expected_ends import MEDIAN

if TYPE_CHECKING:
    from random import Random

LOW, EXPECTED, HIGH = 0.05, MEDIAN, 0.9
"""How long jobs run in the three courses, as a fraction of their kind that runs no longer. Measured on traces."""
MAX_WORK = 4_000
"""Jobs that the planner looks at in all steps of one course, so that an answer never waits for a deep queue."""
STEP_COST = 10
"""What a step costs besides, in jobs."""
MIN_STEPS = 8
"""Where the planner could not be asked this often, it is not asked beyond the first time."""
HORIZON = timedelta(days=366)
"""Nothing is foreseen beyond."""
MIN_DELAY = timedelta(minutes=1)
NEAR = 200
"""Jobs behind the wanted ones that are looked at in any case: they may pass."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a job is expected to start, and between which times it probably will."""

    low: datetime
    expected: datetime
    high: datetime


def estimate(
    snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, Estimate]:
    """Estimated starts of wanted jobs; one that is missing cannot be foreseen.

    Args:
        snapshot: the queue as read.
        now: UTC.
        rng: handed to the planner.
        schedule: the planner.
        wanted: names of waiting jobs.
    """
    question = _ForecastRequest.of(snapshot, now, rng, schedule, wanted)
    low, expected, high = (question.answer(quantile) for quantile in (LOW, EXPECTED, HIGH))
    found = expected.keys() & low.keys() & high.keys()
    return {name: _ordered(low[name], expected[name], high[name]) for name in found}


def forecast(
    snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, datetime]:
    """Starts in the usual course alone, told to the second; so not as far."""
    return _ForecastRequest.of(snapshot, now, rng, schedule, wanted).exactly()


def delays(  # noqa: PLR0913, PLR0917 -- as the planner, and what is asked
    before: Snapshot, after: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, tuple[datetime, datetime]]:
    """Wanted jobs that would start over a minute later in one snapshot than in another: when in each, first ones first.

    Both are told in the same way and to the second, so what cannot be foreseen like that is left out.
    """
    early, late = (forecast(snapshot, now, rng, schedule, wanted) for snapshot in (before, after))
    found = {name: (early[name], late[name]) for name in early.keys() & late.keys()}
    ordered = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return {name: (one, other) for name, (one, other) in ordered if other - one > MIN_DELAY}


@dataclass(frozen=True, slots=True)
class _ForecastRequest:
    """What is asked, and the plan that all courses begin with."""

    snapshot: Snapshot
    now: datetime
    rng: Random
    schedule: Scheduler
    wanted: frozenset[str]
    plan: Plan

    @classmethod
    def of(
        cls, snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
    ) -> _ForecastRequest:
        snapshot = _relevant(resolve(snapshot), now, wanted)
        return cls(snapshot, now, rng, schedule, wanted, schedule(snapshot, now, rng))

    @property
    def detailed(self) -> bool:
        """Whether the planner can be asked often enough for that to be worth while."""
        return MIN_STEPS * (len(self.snapshot.active) + len(self.snapshot.waiting) + STEP_COST) <= MAX_WORK

    def answer(self, quantile: float) -> dict[str, datetime]:
        """Starts in the course in which jobs run as long as this fraction of their kind at most do."""
        simulation = QueueSimulation.of(self.snapshot, self.now, quantile)
        starts = self._planned(simulation)
        return starts if self.wanted <= starts.keys() else self._approximate(simulation) | starts

    def exactly(self) -> dict[str, datetime]:
        """Starts in the usual course, nothing told together, and nothing told roughly that was begun otherwise."""
        simulation = QueueSimulation.of(self.snapshot, self.now, EXPECTED, grain=0)
        starts = self._planned(simulation)
        return starts if self.detailed else self._approximate(simulation) | starts

    def _planned(self, simulation: QueueSimulation) -> dict[str, datetime]:
        """Starts as far as the planner is asked."""
        plan, left = self.plan, MAX_WORK if self.detailed else 0
        starts: dict[str, datetime] = {}
        while True:
            left -= simulation.size + STEP_COST
            starts |= {start.job.name: simulation.since for start in plan.starts if start.job.name not in starts}
            simulation.apply(plan)
            if (
                left < 0
                or self.wanted <= starts.keys()
                or not simulation.advance(plan)
                or self._beyond_horizon(simulation.since)
            ):
                return self._only(starts)
            plan = self.schedule(simulation.snapshot, simulation.moment, self.rng)

    def _approximate(self, simulation: QueueSimulation) -> dict[str, datetime]:
        """Starts of those that wait in what has become of a course, by a rule of thumb."""
        if self._beyond_horizon(simulation.since):
            return {}
        ordered = ranking_of(simulation.snapshot, simulation.moment).in_order(simulation.snapshot.waiting)
        return approximate_starts(simulation, ordered, self.wanted, self.now + HORIZON)

    def _beyond_horizon(self, moment: datetime) -> bool:
        return moment > self.now + HORIZON

    def _only(self, starts: Mapping[str, datetime]) -> dict[str, datetime]:
        return {name: at for name, at in starts.items() if name in self.wanted and not self._beyond_horizon(at)}


def _ordered(low: datetime, expected: datetime, high: datetime) -> Estimate:
    """Quicker jobs may make another start later (Graham's anomalies); the range has the usual course in it."""
    return Estimate(min(low, expected), expected, max(expected, high))


def _relevant(snapshot: Snapshot, now: datetime, wanted: frozenset[str]) -> Snapshot:
    """The snapshot without jobs that cannot make a difference to the wanted ones, or hardly."""
    ordered = ranking_of(snapshot, now).in_order(snapshot.waiting)
    last = max((place for place, job in enumerate(ordered) if job.name in wanted), default=-1)
    near = ordered[: max(last + 1, NEAR)]
    if snapshot.policy.shares:
        return replace(snapshot, waiting=tuple(near))
    touched = _touched((*snapshot.active, *near), wanted)
    return replace(
        snapshot,
        active=tuple(job for job in snapshot.active if not touched.isdisjoint(_ties(job))),
        waiting=tuple(job for job in near if not touched.isdisjoint(_ties(job))),
    )


def _touched(jobs: tuple[Job, ...], wanted: frozenset[str]) -> set[str]:
    """Pools and groups that matter to the wanted jobs: theirs, and those of jobs that these share any with."""
    touched = {tie for job in jobs if job.name in wanted for tie in _ties(job)}
    linked = {ties for ties in map(_ties, jobs) if len(ties) > 1}
    while grown := {tie for ties in linked if not touched.isdisjoint(ties) for tie in ties} - touched:
        touched |= grown
    return touched


def _ties(job: Job) -> frozenset[str]:
    """What a job has in common with those that it may get in the way of; without a pool, that one may be made."""
    group = () if job.group is None else (f"{job.share}/{job.group}",)
    return frozenset((*(job.demand.pools or ("",)), *job.units, *group))
