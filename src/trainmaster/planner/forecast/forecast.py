"""Estimated starts of waiting jobs: the same planner, run forward over expected run times.

There are three simulations: in the first all jobs are fast for their class, in the second typical, in the third slow.
That all move together makes up for unknowns such as future submissions (docs/explanation/estimated-start.md). No job
runs beyond its limit. Each step is `schedule` and the transitions of the lifecycle. A queue too long for that is
approximated.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.domain.capacity.reported_quotas import quota_bounds, with_quotas
from trainmaster.domain.capacity.resolve import resolve
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Estimate, Plan, Snapshot
from trainmaster.planner.forecast.approximate import ApproximateStart, approximate_starts
from trainmaster.planner.forecast.simulation import QueueSimulation, Scheduler
from trainmaster.planner.forecast.trace import HeldUnits, Trace
from trainmaster.planner.orders import ranking_of
from trainmaster.planner.orders.ranking import Ranking
from trainmaster.planner.reservations.expected_ends import MEDIAN

if TYPE_CHECKING:
    from random import Random

LOW, EXPECTED, HIGH = 0.05, MEDIAN, 0.9
"""Quantiles of run times in the three simulations, chosen by measurements on traces."""
MAX_WORK = 4_000
"""Jobs that the planner may look at in all steps of one simulation, so that a deep queue delays no answer."""
STEP_COST = 10
"""The fixed cost of a step, in jobs."""
MIN_STEPS = 8
"""Steps that the planner must be able to run; otherwise it runs only once."""
HORIZON = timedelta(days=366)
"""The end of every simulation."""
ARRIVALS = 2.0
"""Work that an overloaded pool serves before it starts the last of its jobs, relative to theirs: others pass them."""
PASSED = 0.25
"""Part of the time to drain the queue that a job waits in the slow simulation if later arrivals can pass it.

Jobs that wait less pass most others themselves; on the traces they wait for less than a ninth, the others for half.
"""
MIN_DELAY = timedelta(minutes=1)
MIN_SIMULATED = 200
"""The minimum number of jobs to simulate: jobs behind the wanted ones may pass them."""


def estimate(
    snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, Estimate]:
    """Return estimated starts of wanted jobs; jobs without an estimate are missing.

    The range of a job that does not start before the end of the slow simulation alone reaches to that end.

    Args:
        snapshot: the queue as read.
        now: UTC.
        rng: passed to the planner.
        schedule: the planner.
        wanted: names of waiting jobs.
    """
    request = ForecastRequest.of(snapshot, now, rng, schedule, wanted)
    expected = request.answer(EXPECTED)
    high = dict.fromkeys(expected, request.horizon) | request.answer(HIGH)
    if request.anytime:
        jobs = [job for job in snapshot.waiting if job.name in expected]
        return {job.name: request.at_any_time(job, expected[job.name], high[job.name]) for job in jobs}
    low = request.answer(LOW)
    found = expected.keys() & low.keys()
    return {name: range_of(low[name], expected[name], high[name]) for name in found}


def forecast(
    snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, datetime]:
    """Return starts in the typical simulation alone, to the second, and therefore not as far ahead."""
    return ForecastRequest.of(snapshot, now, rng, schedule, wanted).exactly()


def delays(  # noqa: PLR0913, PLR0917 -- as the planner, and what is asked
    before: Snapshot, after: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
) -> Mapping[str, tuple[datetime, datetime]]:
    """Return wanted jobs that start over a minute later in `after` than in `before`, with both times, in order.

    Both are computed alike and to the second; jobs without such a forecast are left out.
    """
    early, late = (forecast(snapshot, now, rng, schedule, wanted) for snapshot in (before, after))
    found = {name: (early[name], late[name]) for name in early.keys() & late.keys()}
    ordered = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return {name: (one, other) for name, (one, other) in ordered if other - one > MIN_DELAY}


@dataclass(frozen=True, slots=True)
class _Goal:
    """The end of a simulation: the starts of all of these jobs, or this time."""

    wanted: frozenset[str]
    until: datetime


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """A request, and the plan with which all simulations begin."""

    snapshot: Snapshot
    now: datetime
    rng: Random
    schedule: Scheduler
    wanted: frozenset[str]
    plan: Plan
    ranking: Ranking

    @classmethod
    def of(
        cls, snapshot: Snapshot, now: datetime, rng: Random, schedule: Scheduler, wanted: frozenset[str]
    ) -> ForecastRequest:
        """Return the request for wanted jobs; the arguments are those of `estimate`."""
        whole = _without_limit(_with_quotas(resolve(snapshot), now))
        snapshot = _relevant(whole, now, wanted)
        return cls(snapshot, now, rng, schedule, wanted, schedule(snapshot, now, rng), ranking_of(whole, now))

    @property
    def detailed(self) -> bool:
        """True if the planner can run often enough for a detailed simulation."""
        return MIN_STEPS * (len(self.snapshot.active) + len(self.snapshot.waiting) + STEP_COST) <= MAX_WORK

    @property
    def anytime(self) -> bool:
        """True if a waiting job may start at any time: where equals preempt each other, the next end of any may do."""
        return self.snapshot.policy.order.preempts_equals

    def at_any_time(self, job: Job, expected: datetime, high: datetime) -> Estimate:
        """Return the range of a job that can start at any time, and that later arrivals can pass.

        No simulation contains these. They matter if the pools are overloaded, so that the job may be passed until its
        patience ends, and if the job itself passes few others. It may then start only when the pools have served all
        jobs of now, and as much work that came later.
        """
        drain = self.ranking.drain(job)
        overloaded = ARRIVALS * drain > self.snapshot.policy.patience
        if overloaded and high - self.now > PASSED * drain:
            high = max(high, self.now + ARRIVALS * drain)
        return range_of(self.now, expected, high)

    def answer(self, quantile: float) -> dict[str, datetime]:
        """Return starts in the simulation in which jobs run for this quantile of their class."""
        simulation = QueueSimulation.of(self.snapshot, self.now, quantile)
        starts = self._planned(simulation, self._goal)
        return starts if self.wanted <= starts.keys() else self._approximate(simulation) | starts

    def exactly(self) -> dict[str, datetime]:
        """Return starts in the typical simulation without rounding, and without mixing in approximate ones."""
        simulation = QueueSimulation.of(self.snapshot, self.now, EXPECTED, grain=0)
        starts = self._planned(simulation, self._goal)
        return starts if self.detailed else self._approximate(simulation) | starts

    def course(self, quantile: float, wanted: frozenset[str], until: datetime) -> dict[str, list[HeldUnits]]:
        """Return what active and wanted jobs hold in the simulation of `answer`, until a time.

        It ends earlier once all of `wanted` have started: the starts are those of `answer`.
        """
        simulation, trace, goal = QueueSimulation.of(self.snapshot, self.now, quantile), Trace(), _Goal(wanted, until)
        trace.note(simulation)
        starts = self._planned(simulation, goal, trace)
        if not wanted <= starts.keys() and simulation.since <= goal.until:
            for start in self._approximate_starts(simulation, goal).values():
                if start.job.name not in starts:
                    trace.add(HeldUnits(start.job, start.units, start.at, start.until))
        shown = self.wanted.union(job.name for job in self.snapshot.active)
        return {name: held for name, held in trace.finish().items() if name in shown}

    @property
    def horizon(self) -> datetime:
        """The end of every simulation."""
        return self.now + HORIZON

    @property
    def _goal(self) -> _Goal:
        return _Goal(self.wanted, self.horizon)

    def _planned(self, simulation: QueueSimulation, goal: _Goal, trace: Trace | None = None) -> dict[str, datetime]:
        """Return starts for as long as the planner may run."""
        plan, left = self.plan, MAX_WORK if self.detailed else 0
        starts: dict[str, datetime] = {}
        note = trace.note if trace is not None else _note_nothing
        while True:
            left -= simulation.size + STEP_COST
            starts |= {start.job.name: simulation.since for start in plan.starts if start.job.name not in starts}
            simulation.apply(plan)
            note(simulation)
            if (
                left < 0
                or goal.wanted <= starts.keys()
                or not simulation.advance(plan)
                or simulation.since > goal.until
            ):
                return self._only(starts)
            note(simulation)
            plan = self.schedule(simulation.snapshot, simulation.moment, self.rng)

    def _approximate(self, simulation: QueueSimulation) -> dict[str, datetime]:
        """Return approximate starts of the jobs that wait where a simulation stopped."""
        if simulation.since > self.horizon:
            return {}
        return {name: start.at for name, start in self._approximate_starts(simulation, self._goal).items()}

    @staticmethod
    def _approximate_starts(simulation: QueueSimulation, goal: _Goal) -> dict[str, ApproximateStart]:
        ordered = ranking_of(simulation.snapshot, simulation.moment).waiting_in_order()
        return approximate_starts(simulation, ordered, goal.wanted, goal.until)

    def _only(self, starts: Mapping[str, datetime]) -> dict[str, datetime]:
        return {name: at for name, at in starts.items() if name in self.wanted and at <= self.horizon}


def _note_nothing(_: QueueSimulation) -> None:
    """Record nothing: only the starts are asked for."""


def _without_limit(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without a limit on the actions of a pass: another pass follows at once."""
    return replace(snapshot, policy=replace(snapshot.policy, max_actions=sys.maxsize))


def _with_quotas(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return the snapshot with caps reduced to reported quotas, which no simulation expects to rise."""
    if not (bounds := quota_bounds(snapshot.pools, snapshot.catalogue, now)):
        return snapshot
    catalogue = replace(snapshot.catalogue, reported={})
    return replace(snapshot, pools=with_quotas(snapshot.pools, bounds), catalogue=catalogue)


def range_of(low: datetime, expected: datetime, high: datetime) -> Estimate:
    """Return the range around the expected start; faster jobs may delay another job's start (Graham's anomalies)."""
    return Estimate(min(low, expected), expected, max(expected, high))


def _relevant(snapshot: Snapshot, now: datetime, wanted: frozenset[str]) -> Snapshot:
    """Return the snapshot without jobs that make little or no difference to the wanted ones."""
    ordered = ranking_of(snapshot, now).waiting_in_order()
    last = max((place for place, job in enumerate(ordered) if job.name in wanted), default=-1)
    near = ordered[: max(last + 1, MIN_SIMULATED)]
    if snapshot.policy.shares:
        return replace(snapshot, waiting=tuple(near))
    touched = _touched((*snapshot.active, *near), wanted)
    return replace(
        snapshot,
        active=tuple(job for job in snapshot.active if not touched.isdisjoint(_ties(job))),
        waiting=tuple(job for job in near if not touched.isdisjoint(_ties(job))),
    )


def _touched(jobs: tuple[Job, ...], wanted: frozenset[str]) -> set[str]:
    """Return pools and groups that matter to the wanted jobs: theirs, and those of jobs that share any with them."""
    touched = {tie for job in jobs if job.name in wanted for tie in _ties(job)}
    linked = {ties for ties in map(_ties, jobs) if len(ties) > 1}
    while grown := {tie for ties in linked if not touched.isdisjoint(ties) for tie in ties} - touched:
        touched |= grown
    return touched


def _ties(job: Job) -> frozenset[str]:
    """Return what a job shares with jobs that it may delay; "" without a pool, since one may be made."""
    group = () if job.group is None else (f"{job.share}/{job.group}",)
    return frozenset((*(job.demand.pools or ("",)), *job.units, *group))
