"""Which waiting jobs would not start in a pool even if it were there: rules of shares, budgets, users and groups.

These are the rules that every plan asks (`figures.Figures.refusal`), asked before there is a pool; training plans, the
only pools that have windows, are never made. It must not look at what is free, nor make pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity import Units
from trainmaster.domain.clock import clock
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.planner.limits import Limits
from trainmaster.planner.rails import Making
from trainmaster.planner.share import Shares
from trainmaster.planner.wanted import Option, Wanted


@dataclass(slots=True)
class Barred:
    """The working figures: what jobs hold, and what those would take that were let through. Thrown away.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _limits: Limits = field(init=False)
    _shares: Shares = field(init=False)

    def __post_init__(self) -> None:
        self._limits, self._shares = Limits(self.snapshot, self.now), Shares(self.snapshot, self.now)

    def concerns(self, job: Job) -> bool:
        """Whether there is any rule that could keep the job from starting; there is none for nearly all queues."""
        return self._shares.in_play or job.group is not None or job.retry_at is not None

    def why_not(self, job: Job, units: Units) -> str:
        """Why the job would not start on these units now if they were there; "" where it would."""
        if job.retry_at is not None and job.retry_at > self.now:
            return f"the job is tried again only at {clock(job.retry_at)}"
        return self.by_rule(job, units)

    def by_rule(self, job: Job, units: Units) -> str:
        """The same but for the time until a job is tried again, which passes by itself."""
        self._shares.drop(job)
        reason = self._limits.refusal(job, units) or self._shares.refusal(job, units)
        return "" if reason is None else reason.words()

    def take(self, job: Job, units: Units) -> None:
        """The job would start on these units, and counts against those that come after it."""
        self._limits.take(job, units)
        self._shares.take(job, units)


@dataclass(slots=True)
class Admission:
    """What each waiting job could start with if it were there, given what those before it in the queue would take.

    A pool for a job that some rule keeps from starting there would help nobody, and use up the guard rails.

    Attributes:
        making: the pools, and the guard rails.
        able: the numbers of such options of its demand, by job.
        refused: which rule keeps a job from all of them, by job; only of those that no pool could hold.
    """

    making: Making
    able: dict[str, frozenset[int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def work_out(self, demands: Sequence[Wanted], snapshot: Snapshot, now: datetime) -> None:
        """Look at the jobs of these demands in queue order."""
        asked = {job.name: demand for demand in demands for job in demand.jobs}
        if not asked:
            return
        barred = Barred(snapshot, now)
        for job in snapshot.waiting:
            if (demand := asked.get(job.name)) is not None:
                self.able[job.name] = self._able(job, demand, barred)

    def who(self, demand: Wanted, number: int) -> list[str]:
        """The jobs that could start with an option, in queue order."""
        return [job.name for job in demand.jobs if number in self.able[job.name]]

    def _able(self, job: Job, demand: Wanted, barred: Barred) -> frozenset[int]:
        """The numbers of the options that the job could start with; it takes the first of them."""
        if not barred.concerns(job):
            return frozenset(range(len(demand.options)))
        refusals = self._refusals(job, demand, barred)
        open_ = [number for number, refusal in refusals.items() if not refusal]
        if open_:
            barred.take(job, self._units(demand.options[open_[0]]))
        elif demand.infeasible and refusals:
            self.refused[job.name] = next(iter(refusals.values()))
        return frozenset(open_)

    def _refusals(self, job: Job, demand: Wanted, barred: Barred) -> dict[int, str]:
        """Why the job would not start with an option, by its number; "" where it would.

        Only of options whose type the settings allow, unless they allow none: then that is what is told.
        """
        allowed = self.making.rules.allows
        numbers = [number for number, option in enumerate(demand.options) if allowed(option.kind.name)]
        return {
            number: barred.why_not(job, self._units(demand.options[number]))
            for number in numbers or range(len(demand.options))
        }

    def _units(self, option: Option) -> Units:
        """What a job takes with an option, of the pool that there is or would be."""
        name = option.pool or (self.making.pool_of(option.kind) or self.making.new(option.kind)).name
        return {name: option.instances}
