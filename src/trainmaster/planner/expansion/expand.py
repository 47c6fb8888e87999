"""Pools that the manager makes for demands that no pool could ever hold, and removes when nobody uses them any more.

Vertical expansion (Liu et al., Journal of Software 33(3), 2022, section 3.3, algorithm 5, equations 10 to 12).
A node of the article is an instance, and a node type a pool. Pools that people set are never touched. It must not place
jobs: the plan goes on as if the pools had always been there.
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
"""`cpn` of equation 11 in jobs' instances: SageMaker shares no instance between jobs, so one has room for one."""
NO_TYPE_FITS = "no instance type that is known would do"


@dataclass(frozen=True, slots=True)
class ExpansionPlan:
    """What becomes of the manager's own pools.

    Attributes:
        decisions: pools to make or to make larger, those for infeasible demands first; then pools to make smaller, and
            pools to remove.
        refused: why no pool is made, by name of the infeasible job; empty where expansion is off.
    """

    decisions: tuple[PoolDecision, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def target_size(used: int, demand: int, utilisation: float, per_node: int = PER_NODE) -> int:
    """How many instances a pool ought to have (equations 10 to 12).

    Args:
        used: instances in use (`cn`).
        demand: what is wanted in all (`cd`).
        utilisation: the part of the pool that is to be in use (`f`), more than 0, at most 1.
        per_node: how much of the demand one instance meets (`cpn`).
    """
    return max(_ceil(used / utilisation), _ceil(demand / per_node))


def plan_expansion(snapshot: Snapshot, now: datetime) -> ExpansionPlan:
    """The pools to make, to make larger or smaller, and to remove; where expansion is off, only to remove.

    Args:
        snapshot: resolved (`resolving.resolve`).
        now: the time of the pass, UTC.
    """
    leaving = {retire.pool.name: retire for retire in _retired(snapshot, now)}
    while True:
        # What is removed leaves room within the guard rails at once; what is found to be needed after all stays.
        grown = _Expansion(with_changes(snapshot, [*leaving.values()]), now)
        if snapshot.policy.expansion.enabled:
            grown.run()
        made = tuple(grown.expansions())
        if not (needed := leaving.keys() & {each.pool.name for each in made}):
            return ExpansionPlan((*made, *grown.shrinkings(), *leaving.values()), grown.refused)
        leaving = {name: retire for name, retire in leaving.items() if name not in needed}


@dataclass(slots=True)
class _Expansion:
    """What is made, in the making.

    Attributes:
        waiting: instances that those want who wait for a pool, by its name.
        served: who they are.
        vertical, horizontal: types of the pools that are made for infeasible demands, and that are to grow, by name.
        floors: how small pools may become for the sake of others, by name.
        gave: for whom pools have become smaller; nobody, where what they gave just was idle.
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
    gave: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        policy, pools = self.snapshot.policy.expansion, dict(self.snapshot.pools)
        self.managed = ManagedPools(policy, pools, self.snapshot.catalogue)
        self.admission, self.idle = ExpansionAdmission(self.managed), IdleCapacity(self.snapshot, self.now)

    @property
    def refused(self) -> dict[str, str]:
        """Why no pool is made, by name of the infeasible job."""
        return self.admission.refused

    def run(self) -> None:
        """Vertical before horizontal: first something for each infeasible demand, then as many as there is use for."""
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
        # Equation 12 as it stands, also for a pool that has room for some of those who wait, but for no gang.
        for name, kind in [*self.vertical.items(), *self.horizontal.items()]:
            self._fill(kind, self.idle.used.get(name, 0))

    def expansions(self) -> Iterator[Expand]:
        """What has grown, in the order in which it was worked out."""
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
        """What has become smaller, by name."""
        for name, jobs in sorted(self.gave.items()):
            pool, before = self.managed.pools[name], self.managed.before[name]
            if pool.cap < before.cap:
                yield Shrink(pool, tuple(jobs), None if jobs else self.idle.idle_for_long(before))

    def _give_back(self, demands: Sequence[UnmetDemand]) -> None:
        """Pools become as small as equation 12 says where nobody has used the rest for as long as lets a whole one go.

        Args:
            demands: who waits for them.
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
            size = target_size(used, used + awaited.get(pool.name, 0), self.managed.rules.utilisation)
            goal = max(size, self.floors[pool.name])
            # One that nobody uses or waits for goes as a whole, or is kept for a reason.
            if 0 < goal < pool.cap and pool.name not in self.idle.awaited_later and self.idle.idle_for_long(pool):
                self.managed.shrink(pool.name, goal)
                self.gave[pool.name] = []

    def _named_units(self, counted_in: Mapping[str, str]) -> Iterator[Units]:
        """What waiting jobs could start with of the pools that they name themselves, at most; they may this very pass.

        Also those that back off: who names a pool may have nowhere else to go, and nothing would make it larger again.

        Args:
            counted_in: the pool where a job has been counted already, by its name.
        """
        if not (made := {pool.name for pool in self.idle.made}):
            return
        caps, rule_check = caps_of(self.snapshot), RuleCheck(self.snapshot, self.now)
        for job in self.snapshot.waiting:
            ways = [units for units in job.demand.named if not made.isdisjoint(units) and covers(caps, units)]
            if ways:
                rule_check.release(job)
            if most := worst_case(units for units in ways if not rule_check.rule_violation(job, units)):
                yield {name: most[name] for name in made & most.keys() if name != counted_in.get(job.name)}

    def _make_pool_for(self, demand: UnmetDemand) -> None:
        """A pool that can hold one of the demand's jobs, of the first type that rules and guard rails allow.

        Where the guard rails allow none, pools that have more than is used or waited for give of it.
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
                    self.gave.setdefault(name, []).extend(jobs)
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
        """The first of the manager's pools that hold the demand, and who could start there; then who only elsewhere."""
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

    def _fill(self, kind: InstanceType, used: int) -> None:
        pool = self.managed.pool_of(kind)
        if pool is not None:
            goal = target_size(used, used + self.waiting[pool.name], self.managed.rules.utilisation)
            self.managed.enlarge(kind, goal, pool.made_for)


def _retired(snapshot: Snapshot, now: datetime) -> Iterator[Retire]:
    """Pools that the manager made, that nobody has held for long, and that no waiting job could start in.

    One that the settings of a share name stays: people have plans with it, and settings may name no pool that is not
    there. One that jobs wait for which rules keep from starting there goes: it comes back with the day they may.
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
    """Up to the next whole number, but for what dividing floating-point numbers adds."""
    return math.ceil(round(number, 9))
