"""Rules that would keep waiting jobs from starting in a pool if it existed: of shares, budgets, users and groups.

Every plan checks these rules (`JobView.refusal`); here they are checked before there is a pool. Made pools are never
training plans, so time windows do not matter.
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
    """Units that jobs hold, and that jobs which passed the check would take.

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
        """Return True if any rule could keep the job from starting; for nearly all queues there is none."""
        return self._shares.enabled or job.group is not None or job.retry_at is not None

    def named(self, share: str) -> frozenset[str]:
        """Return the pools that the limits of a share name."""
        if share not in self._named_units:
            found = self.snapshot.policy.shares.get(share)
            by_pool = () if found is None else (found.nominal, found.borrows, found.max, found.max_per_user)
            self._named_units[share] = frozenset(name for units in by_pool for name in units)
        return self._named_units[share]

    def violation(self, job: Job, units: Units) -> str:
        """Return why the job would not start on these units now if they existed; "" if it would."""
        if job.retry_at is not None and self.backing_off(job):
            return f"the next attempt of the job is at {clock(job.retry_at)}"
        return self.rule_violation(job, units)

    def rule_violation(self, job: Job, units: Units) -> str:
        """Return the same without the time until the next attempt, which passes by itself."""
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
        """Count units on which a job would start against the jobs after it."""
        self._limits.take(job, units)
        self._shares.take(job, units)


@dataclass(slots=True)
class ExpansionAdmission:
    """The options with which each waiting job could start, given what is held and what jobs before it would take.

    Only jobs of the same demands take units, since only for them a pool may be made. Jobs that configured pools hold
    take none: only the plan knows whether they start now. One of them may still take the last of a group, a budget or a
    limit, and the pool then stays empty until another job's turn comes or it is removed.

    A pool for a job that a rule keeps from starting there would be useless, and use up the guardrails.

    Attributes:
        managed: the pools, and the guardrails.
        able: the numbers of the options with which the job could start, by job.
        refused: the rule that keeps a job from all options, by job; only for jobs that no pool could hold.
    """

    managed: ManagedPools
    able: dict[str, frozenset[int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    _options: dict[int, list[tuple[int, str, int]]] = field(default_factory=dict)

    def run(self, demands: Sequence[UnmetDemand], snapshot: Snapshot, now: datetime) -> None:
        """Check the jobs of these demands in queue order."""
        asked = {job.name: demand for demand in demands for job in demand.jobs}
        if not asked:
            return
        rule_check = RuleCheck(snapshot, now)
        for job in snapshot.waiting:
            if (demand := asked.get(job.name)) is not None:
                self.able[job.name] = self._able(job, demand, rule_check)

    def eligible_jobs(self, demand: UnmetDemand, number: int) -> list[str]:
        """Return the jobs that could start with an option, in queue order."""
        return [job.name for job in demand.jobs if number in self.able[job.name]]

    def _able(self, job: Job, demand: UnmetDemand, rule_check: RuleCheck) -> frozenset[int]:
        """Return the numbers of the options with which the job could start; it takes the first of them."""
        if not rule_check.applies_to(job):
            return frozenset(range(len(demand.options)))
        options, named = self._allowed(demand), rule_check.named(job.share)
        found: dict[tuple[str, int], str] = {}
        refusals = []
        if options and not rule_check.backing_off(job):
            rule_check.release(job)
        for _, pool, count in options:
            # Rules treat all pools alike that a share's settings do not name, and there are a hundred types.
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
        """Return number, pool and units of each option whose type the settings allow.

        All options if the settings allow none of their types: then that is the reason to report.
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
