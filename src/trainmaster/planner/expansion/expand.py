"""Pools that the manager makes for demands that no pool could ever hold, and removes when they are no longer used.

Vertical expansion (Liu et al., Journal of Software 33(3), 2022, section 3.3, algorithm 5, equations 10 to 12). A node
of the article is an instance, and a node type a pool. Configured pools are never changed. The rest of the
plan treats new pools like configured ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.domain.capacity.resolve import with_changes
from trainmaster.domain.capacity.resources import InstanceType
from trainmaster.domain.capacity.units import Pool, Units, covers, total, worst_case
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Expand, PoolDecision, Retire, Shrink, Snapshot
from trainmaster.planner.expansion.guardrails import ManagedPools
from trainmaster.planner.expansion.idle import IdleCapacity
from trainmaster.planner.expansion.rule_check import ExpansionAdmission, RuleCheck
from trainmaster.planner.expansion.unmet_demand import Option, UnmetDemand, caps_of, unmet_demands

PER_NODE = 1
"""`cpn` of equation 11: SageMaker shares no instance between jobs, so an instance has room for one job's instance."""
NO_TYPE_FITS = "no known instance type satisfies the request"


@dataclass(frozen=True, slots=True)
class ExpansionPlan:
    """The changes to the manager's pools.

    Attributes:
        decisions: pools to make or enlarge, those for infeasible demands first; then pools to shrink, and pools to
            remove.
        refused: why no pool is made, by name of the infeasible job; empty if expansion is off.
    """

    decisions: tuple[PoolDecision, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def target_size(used: int, demand: int, utilization: float, per_node: int = PER_NODE) -> int:
    """Return how many instances a pool should have (equations 10 to 12).

    Args:
        used: instances in use (`cn`).
        demand: instances wanted in all (`cd`).
        utilization: the fraction of the pool that should be in use (`f`), above 0 and at most 1.
        per_node: how much of the demand one instance meets (`cpn`).
    """
    return max(_ceil(used / utilization), _ceil(demand / per_node))


def plan_expansion(snapshot: Snapshot, now: datetime) -> ExpansionPlan:
    """Return the pools to make, resize and remove; if expansion is off, only those to remove.

    Args:
        snapshot: resolved (`resolve.resolve`).
        now: the time of the pass, UTC.
    """
    leaving = {retire.pool.name: retire for retire in _retired(snapshot, now)}
    while True:
        # Removed pools leave room within the guardrails at once; pools that turn out to be needed stay.
        grown = _Expansion(with_changes(snapshot, [*leaving.values()]), now)
        if snapshot.policy.expansion.enabled:
            grown.run()
        made = tuple(grown.expansions())
        if not (needed := leaving.keys() & {expand.pool.name for expand in made}):
            return ExpansionPlan((*made, *grown.shrinkings(), *leaving.values()), grown.refused)
        leaving = {name: retire for name, retire in leaving.items() if name not in needed}


@dataclass(slots=True)
class _Expansion:
    """One computation of the expansion.

    Attributes:
        waiting: instances wanted by jobs that wait for a pool, by its name.
        served: names of these jobs, by pool.
        vertical: types of the pools that are made for infeasible demands, by pool.
        horizontal: types of the pools that grow, by pool.
        floors: how small pools may become for the sake of others, by name.
        gave_for: names of the jobs for which pools became smaller; empty for a pool that was just idle.
    """

    snapshot: Snapshot
    now: datetime
    managed: ManagedPools = field(init=False)
    admission: ExpansionAdmission = field(init=False)
    idle: IdleCapacity = field(init=False)
    waiting: dict[str, int] = field(default_factory=dict)
    served: dict[str, list[str]] = field(default_factory=dict)
    vertical: dict[str, InstanceType] = field(default_factory=dict)
    horizontal: dict[str, InstanceType] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    gave_for: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        policy, pools = self.snapshot.policy.expansion, dict(self.snapshot.pools)
        self.managed = ManagedPools(policy, pools, self.snapshot.catalogue)
        self.admission, self.idle = ExpansionAdmission(self.managed), IdleCapacity(self.snapshot, self.now)

    @property
    def refused(self) -> dict[str, str]:
        """The reason why no pool is made, by name of the infeasible job."""
        return self.admission.refused

    def run(self) -> None:
        """Provide for infeasible demands first (vertical), then grow pools as far as there is use (horizontal)."""
        demands = unmet_demands(self.snapshot)
        self.admission.run(demands, self.snapshot, self.now)
        self._give_back([demand for demand in demands if not demand.infeasible])
        for demand in demands:
            if demand.infeasible:
                self._make_pool_for(demand)
        for demand in demands:
            for pool, option, jobs in [] if demand.infeasible else self._serving_pools(demand):
                if pool.name not in self.vertical:
                    self.horizontal[pool.name] = option.kind
                self._serve(pool, option.instances, jobs)
        # Equation 12 as it stands, also for a pool with room for some waiting jobs, but for no gang.
        for name, kind in [*self.vertical.items(), *self.horizontal.items()]:
            self._grow_to_target(kind, self.idle.used.get(name, 0))

    def expansions(self) -> Iterator[Expand]:
        """Yield the pools that grew, in the order in which they were computed."""
        order = {**self.vertical, **self.horizontal}
        place = {job.name: number for number, job in enumerate(self.snapshot.waiting)} if order else {}
        for name, kind in order.items():
            pool, before = self.managed.pools[name], self.managed.before.get(name)
            more = pool.cap - (0 if before is None else before.cap)
            if more > 0:
                price = self.snapshot.catalogue.of_pool(pool).price or kind.price
                jobs = tuple(sorted(self.served[name], key=place.__getitem__))
                yield Expand(replace(pool, made_at=self.now), jobs, round(more * price, 4))

    def shrinkings(self) -> Iterator[Shrink]:
        """Yield the pools that became smaller, by name."""
        for name, jobs in sorted(self.gave_for.items()):
            pool, before = self.managed.pools[name], self.managed.before[name]
            if pool.cap < before.cap:
                yield Shrink(pool, tuple(jobs), None if jobs else self.idle.idle_for_long(before))

    def _give_back(self, demands: Sequence[UnmetDemand]) -> None:
        """Shrink pools to equation 12 if the rest has been idle for as long as a whole pool is before it is removed.

        Args:
            demands: demands of the jobs that wait for the pools.
        """
        counted_in: dict[str, str] = {}
        requested: list[Units] = []
        for demand in demands:
            for pool, option, jobs in self._serving_pools(demand):
                counted_in.update(dict.fromkeys(jobs, pool.name))
                requested.append({pool.name: option.instances * len(jobs)})
        awaited = total([*requested, *self._named_units(counted_in)])
        self.floors = self.idle.floors(awaited)
        for pool in self.idle.made:
            used = self.idle.used.get(pool.name, 0)
            size = target_size(used, used + awaited.get(pool.name, 0), self.managed.rules.utilization)
            goal = max(size, self.floors[pool.name])
            # A pool that is neither used nor waited for is removed as a whole, or is kept for a reason.
            if 0 < goal < pool.cap and pool.name not in self.idle.awaited_later and self.idle.idle_for_long(pool):
                self.managed.shrink(pool.name, goal)
                self.gave_for[pool.name] = []

    def _named_units(self, counted_in: Mapping[str, str]) -> Iterator[Units]:
        """Yield the most that waiting jobs could start with, even in this pass, of the made pools that they name.

        Jobs that back off count too: a job that names a pool may have nowhere else to go, and nothing would enlarge the
        pool again.

        Args:
            counted_in: the pool where a job is counted already, by its name.
        """
        if not (made := {pool.name for pool in self.idle.made}):
            return
        caps, rule_check = caps_of(self.snapshot), RuleCheck(self.snapshot, self.now)
        for job in self.snapshot.waiting:
            options = [units for units in job.demand.named if not made.isdisjoint(units) and covers(caps, units)]
            if options:
                rule_check.release(job)
            if bound := worst_case(units for units in options if not rule_check.rule_violation(job, units)):
                yield {name: bound[name] for name in made & bound.keys() if name != counted_in.get(job.name)}

    def _make_pool_for(self, demand: UnmetDemand) -> None:
        """Make a pool that can hold one of the demand's jobs, of the first type that rules and guardrails allow.

        If the guardrails allow none, other made pools give instances that are neither used nor waited for.
        """
        numbered = enumerate(demand.options)
        options = [
            (option, jobs) for number, option in numbered if (jobs := self.admission.eligible_jobs(demand, number))
        ]
        refusals = []
        for option, jobs in options:
            if not (refusal := self.managed.refusal(option.kind, option.instances, option.pool)):
                self._make(demand, option, jobs)
                return
            refusals.append((self.managed.rules.allows(option.kind.name), refusal))
        for option, jobs in options:
            if giving := self.managed.make_room(option.kind, option.instances, option.pool, self.floors):
                for name in giving:
                    self.gave_for.setdefault(name, []).extend(jobs)
                self._make(demand, option, jobs)
                return
        refusal_words = next(
            (refusal for allowed, refusal in refusals if allowed), refusals[0][1] if refusals else NO_TYPE_FITS
        )
        for job in demand.jobs:
            self.refused.setdefault(job.name, refusal_words)

    def _make(self, demand: UnmetDemand, option: Option, jobs: Sequence[str]) -> None:
        pool = self.managed.enlarge(option.kind, option.instances, demand.words)
        self.vertical[pool.name] = option.kind
        self.floors.pop(pool.name, None)
        self._serve(pool, option.instances, jobs)

    def _serving_pools(self, demand: UnmetDemand) -> Iterator[tuple[Pool, Option, list[str]]]:
        """Yield the first made pool that holds the demand, with the jobs that could start there; then others."""
        left = {job.name for job in demand.jobs}
        for number, option in enumerate(demand.options):
            pool = self.managed.pool_of(option.kind)
            if pool is None or option.instances > pool.cap or pool.draining:
                continue
            if jobs := [name for name in self.admission.eligible_jobs(demand, number) if name in left]:
                left.difference_update(jobs)
                yield pool, option, jobs

    def _serve(self, pool: Pool, instances: int, jobs: Sequence[str]) -> None:
        self.waiting[pool.name] = self.waiting.get(pool.name, 0) + instances * len(jobs)
        self.served.setdefault(pool.name, []).extend(jobs)

    def _grow_to_target(self, kind: InstanceType, used: int) -> None:
        pool = self.managed.pool_of(kind)
        if pool is not None:
            goal = target_size(used, used + self.waiting[pool.name], self.managed.rules.utilization)
            self.managed.enlarge(kind, goal, pool.made_for)


def _retired(snapshot: Snapshot, now: datetime) -> Iterator[Retire]:
    """Yield made pools that have been unused for long, and that no waiting job could start in.

    A pool that the settings of a share name stays, since settings may only name existing pools. A pool goes if rules
    keep all jobs that wait for it from starting there; it comes back when they may.
    """
    idle = IdleCapacity(snapshot, now)
    idle_since = {
        pool.name: since
        for pool in idle.made
        if not idle.used.get(pool.name) and (since := idle.idle_for_long(pool)) is not None
    }
    if not idle_since:
        return
    rule_check = RuleCheck(snapshot, now)
    for name, since in idle_since.items():
        named = ((job, units) for job in snapshot.waiting for units in job.demand.alternatives if name in units)
        if all(_refused(job, units, rule_check) for job, units in named):
            yield Retire(snapshot.pools[name], since)


def _refused(job: Job, units: Units, rule_check: RuleCheck) -> bool:
    """Return True if a rule keeps the job from these units; nothing is kept for the job from then on."""
    rule_check.release(job)
    return bool(rule_check.rule_violation(job, units))


def _ceil(number: float) -> int:
    """Round up to the next whole number, ignoring errors of floating-point division."""
    return math.ceil(round(number, 9))
