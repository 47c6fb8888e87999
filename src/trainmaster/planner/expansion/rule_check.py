"""Which waiting jobs would not start in a pool even if it were there: rules of shares, budgets, users and groups.

These are the rules that every plan asks (`PlanState.refusal`), asked before there is a pool; training plans, the
only pools that have windows, are never made. It must not look at what is free, nor make pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.domain.capacity.units import Units
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.times import clock
from trainmaster.planner.expansion.guardrails import ManagedPools
from trainmaster.planner.expansion.unmet_demand import Option, UnmetDemand
from trainmaster.planner.sharing.limits import Limits
from trainmaster.planner.sharing.shares import Shares


@dataclass(slots=True)
class RuleCheck:
    """The working figures: what jobs hold, and what those would take that were let through. Thrown away.

    Attributes:
        snapshot: what the pass read.
        now: the time of the pass, UTC.
    """

    snapshot: Snapshot
    now: datetime
    _limits: Limits = field(init=False)
    _shares: Shares = field(init=False)
    _named_units: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._limits, self._shares = Limits(self.snapshot, self.now), Shares(self.snapshot, self.now)

    def applies_to(self, job: Job) -> bool:
        """Whether there is any rule that could keep the job from starting; there is none for nearly all queues."""
        return self._shares.enabled or job.group is not None or job.retry_at is not None

    def named(self, share: str) -> frozenset[str]:
        """The pools that the bounds of a share name."""
        if share not in self._named_units:
            found = self.snapshot.policy.shares.get(share)
            by_pool = () if found is None else (found.nominal, found.borrows, found.max, found.max_per_user)
            self._named_units[share] = frozenset(name for units in by_pool for name in units)
        return self._named_units[share]

    def violation(self, job: Job, units: Units) -> str:
        """Why the job would not start on these units now if they were there; "" where it would."""
        if job.retry_at is not None and self.backing_off(job):
            return f"the job is tried again only at {clock(job.retry_at)}"
        return self.rule_violation(job, units)

    def rule_violation(self, job: Job, units: Units) -> str:
        """The same but for the time until a job is tried again, which passes by itself."""
        reason = self._limits.refusal(job, units) or self._shares.refusal(job, units)
        return "" if reason is None else reason.message()

    def release(self, job: Job) -> None:
        """Remove what is kept for a job, whose own rules are checked next."""
        self._limits.release(job)
        self._shares.release(job)

    def backing_off(self, job: Job) -> bool:
        """Return True if the job waits for its next attempt."""
        return job.retry_at is not None and job.retry_at > self.now

    def take(self, job: Job, units: Units) -> None:
        """The job would start on these units, and counts against those that come after it."""
        self._limits.take(job, units)
        self._shares.take(job, units)


@dataclass(slots=True)
class ExpansionAdmission:
    """What each waiting job could start with if it were there, given what is held, and what those before it would take.

    Of those before it only jobs of the same demands take something, which are all that may have a pool made. Jobs that
    pools set by people hold take nothing: whether they start now only the plan knows. One of them may still take the
    last of a group, a budget or a bound, and the pool stand empty until another's turn comes or it is retired.

    A pool for a job that some rule keeps from starting there would help nobody, and use up the guard rails.

    Attributes:
        making: the pools, and the guard rails.
        able: the numbers of such options of its demand, by job.
        refused: which rule keeps a job from all of them, by job; only of those that no pool could hold.
    """

    managed: ManagedPools
    able: dict[str, frozenset[int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    _options: dict[int, list[tuple[int, str, int]]] = field(default_factory=dict)

    def run(self, demands: Sequence[UnmetDemand], snapshot: Snapshot, now: datetime) -> None:
        """Look at the jobs of these demands in queue order."""
        asked = {job.name: demand for demand in demands for job in demand.jobs}
        if not asked:
            return
        rule_check = RuleCheck(snapshot, now)
        for job in snapshot.waiting:
            if (demand := asked.get(job.name)) is not None:
                self.able[job.name] = self._able(job, demand, rule_check)

    def eligible_jobs(self, demand: UnmetDemand, number: int) -> list[str]:
        """The jobs that could start with an option, in queue order."""
        return [job.name for job in demand.jobs if number in self.able[job.name]]

    def _able(self, job: Job, demand: UnmetDemand, rule_check: RuleCheck) -> frozenset[int]:
        """The numbers of the options that the job could start with; it takes the first of them."""
        if not rule_check.applies_to(job):
            return frozenset(range(len(demand.options)))
        options, named = self._allowed(demand), rule_check.named(job.share)
        found: dict[tuple[str, int], str] = {}
        refusals = []
        if options and not rule_check.backing_off(job):
            rule_check.release(job)
        for _, pool, count in options:
            # Pools that a share's settings do not name are all alike to its rules, and there are a hundred types.
            key = (pool, count) if pool in named else ("", 0)
            if key not in found:
                found[key] = rule_check.violation(job, {pool: count})
            refusals.append(found[key])
        allowed = [option for option, refusal in zip(options, refusals, strict=True) if not refusal]
        if allowed:
            rule_check.take(job, {allowed[0][1]: allowed[0][2]})
        elif demand.infeasible and refusals:
            self.refused[job.name] = refusals[0]
        return frozenset(number for number, *_ in allowed)

    def _allowed(self, demand: UnmetDemand) -> Sequence[tuple[int, str, int]]:
        """The number of each option whose type the settings allow, with its pool, that there is or would be, and units.

        All options, where the settings allow none of their types: then that is what is told.
        """
        if (key := id(demand)) not in self._options:
            allows = self.managed.rules.allows
            numbered = [*enumerate(demand.options)]
            allowed = [(number, option) for number, option in numbered if allows(option.kind.name)]
            self._options[key] = [
                (number, self._pool(option), option.instances) for number, option in allowed or numbered
            ]
        return self._options[key]

    def _pool(self, option: Option) -> str:
        return option.pool or (self.managed.pool_of(option.kind) or self.managed.new(option.kind)).name
