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

from trainmaster.domain.capacity import Pool, Units, total
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Expand, Retire, Snapshot
from trainmaster.domain.policy import Share
from trainmaster.domain.resolving import with_changes
from trainmaster.domain.resources import InstanceType
from trainmaster.domain.warm import counting
from trainmaster.planner.barred import Barred
from trainmaster.planner.rails import Making
from trainmaster.planner.wanted import Option, Wanted, wanted

PER_NODE = 1
"""`cpn` of equation 11 in jobs' instances: SageMaker shares no instance between jobs, so one has room for one."""
NO_TYPE = "no instance type that is known would do"


@dataclass(frozen=True, slots=True)
class Changes:
    """What becomes of the manager's own pools.

    Attributes:
        decisions: pools to make or to make larger, those for infeasible demands first; then pools to remove.
        refused: why no pool is made, by name of the infeasible job; empty where expansion is off.
    """

    decisions: tuple[Expand | Retire, ...] = ()
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


def changes(snapshot: Snapshot, now: datetime) -> Changes:
    """The pools to make, to make larger, and to remove; where expansion is off, only to remove.

    Args:
        snapshot: resolved (`resolving.resolve`).
        now: the time of the pass, UTC.
    """
    leaving = {retire.pool.name: retire for retire in _retired(snapshot, now)}
    while True:
        # What is removed leaves room within the guard rails at once; what is found to be needed after all stays.
        grown = _Growth(with_changes(snapshot, [*leaving.values()]), now)
        if snapshot.policy.expansion.enabled:
            grown.work_out()
        made = tuple(grown.expansions())
        if not (needed := leaving.keys() & {each.pool.name for each in made}):
            return Changes((*made, *leaving.values()), grown.refused)
        leaving = {name: retire for name, retire in leaving.items() if name not in needed}


@dataclass(slots=True)
class _Growth:
    """What is made, in the making. `able`: what each job could start with, by name, as numbers of options."""

    snapshot: Snapshot
    now: datetime
    refused: dict[str, str] = field(default_factory=dict)
    making: Making = field(init=False)
    able: dict[str, frozenset[int]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    served: dict[str, list[str]] = field(default_factory=dict)
    vertical: dict[str, InstanceType] = field(default_factory=dict)
    horizontal: dict[str, InstanceType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        policy, pools = self.snapshot.policy.expansion, dict(self.snapshot.pools)
        self.making = Making(policy, pools, self.snapshot.catalogue)

    def work_out(self) -> None:
        """Vertical before horizontal: first something for each infeasible demand, then as many as there is use for."""
        demands = wanted(self.snapshot)
        self._let_through(demands)
        for demand in demands:
            if demand.infeasible:
                self._provide(demand)
        for demand in demands:
            if not demand.infeasible:
                self._lean(demand)
        used = _in_use(self.snapshot)
        # Equation 12 as it stands, also for a pool that has room for some of those who wait, but for no gang.
        for name, kind in [*self.vertical.items(), *self.horizontal.items()]:
            self._fill(kind, used.get(name, 0))

    def expansions(self) -> Iterator[Expand]:
        """What has grown, in the order in which it was worked out."""
        order = {**self.vertical, **self.horizontal}
        place = {job.name: number for number, job in enumerate(self.snapshot.waiting)} if order else {}
        for name, kind in order.items():
            pool, before = self.making.pools[name], self.making.before.get(name)
            more = pool.cap - (0 if before is None else before.cap)
            if more > 0:
                price = self.snapshot.catalogue.of_pool(pool).price or kind.price
                jobs = tuple(sorted(self.served[name], key=place.__getitem__))
                yield Expand(replace(pool, made_at=self.now), jobs, round(more * price, 4))

    def _let_through(self, demands: Sequence[Wanted]) -> None:
        """Find out in queue order what each job could start with, given what those before it would take.

        A pool for a job that some rule keeps from starting there would help nobody, and use up the guard rails.
        """
        asked = {job.name: demand for demand in demands for job in demand.jobs}
        if not asked:
            return
        barred = Barred(self.snapshot, self.now)
        for job in self.snapshot.waiting:
            if (demand := asked.get(job.name)) is not None:
                self.able[job.name] = self._able(job, demand, barred)

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

    def _who(self, demand: Wanted, number: int) -> list[str]:
        """The jobs that could start with an option."""
        return [job.name for job in demand.jobs if number in self.able[job.name]]

    def _provide(self, demand: Wanted) -> None:
        """A pool that can hold one of the demand's jobs, of the first type that rules and guard rails allow."""
        refusals = []
        for number, option in enumerate(demand.options):
            if not (jobs := self._who(demand, number)):
                continue
            refusal = self.making.refusal(option.kind, option.instances, option.pool)
            if not refusal:
                pool = self.making.enlarge(option.kind, option.instances, demand.words)
                self.vertical[pool.name] = option.kind
                self._serve(pool, option.instances, jobs)
                return
            refusals.append((self.making.rules.allows(option.kind.name), refusal))
        told = next((refusal for allowed, refusal in refusals if allowed), refusals[0][1] if refusals else NO_TYPE)
        self.refused = dict.fromkeys((job.name for job in demand.jobs), told) | self.refused

    def _lean(self, demand: Wanted) -> None:
        """The jobs wait for the first of the manager's pools that holds them, and that they could start in."""
        left = {job.name for job in demand.jobs}
        for number, option in enumerate(demand.options):
            pool = self.making.pool_of(option.kind)
            if pool is None or option.instances > pool.cap or pool.draining:
                continue
            if jobs := [name for name in self._who(demand, number) if name in left]:
                if pool.name not in self.vertical:
                    self.horizontal[pool.name] = option.kind
                self._serve(pool, option.instances, jobs)
                left.difference_update(jobs)

    def _serve(self, pool: Pool, instances: int, jobs: Sequence[str]) -> None:
        self.waiting[pool.name] = self.waiting.get(pool.name, 0) + instances * len(jobs)
        self.served.setdefault(pool.name, []).extend(jobs)

    def _fill(self, kind: InstanceType, used: int) -> None:
        pool = self.making.pool_of(kind)
        if pool is not None:
            goal = target_size(used, used + self.waiting[pool.name], self.making.rules.utilisation)
            self.making.enlarge(kind, goal, pool.made_for)


def _in_use(snapshot: Snapshot) -> dict[str, int]:
    """Instances that jobs and warm pools hold, by pool."""
    warm = counting(snapshot.warm, snapshot.active)
    return total([*(job.units for job in snapshot.active), *(pool.units for pool in warm)])


def _retired(snapshot: Snapshot, now: datetime) -> Iterator[Retire]:
    """Pools that the manager made, that nobody has held for long, and that no waiting job could start in.

    One that the settings of a share name stays: people have plans with it, and settings may name no pool that is not
    there. One that jobs wait for which rules keep from starting there goes: it comes back with the day they may.
    """
    used = _in_use(snapshot)
    claimed = {name for share in snapshot.policy.shares.values() for name in _names_in(share)}
    idle = {
        pool.name: since
        for _, pool in sorted(snapshot.pools.items())
        if pool.made_for and not used.get(pool.name) and pool.name not in claimed
        if (since := _idle_since(pool, snapshot)) is not None and since + snapshot.policy.expansion.retire_after <= now
    }
    if not idle:
        return
    barred = Barred(snapshot, now)
    for name, since in idle.items():
        named = ((job, units) for job in snapshot.waiting for units in job.demand.alternatives if name in units)
        if all(barred.by_rule(job, units) for job, units in named):
            yield Retire(snapshot.pools[name], since)


def _names_in(share: Share) -> tuple[str, ...]:
    """The pools that the settings of a share name."""
    return (*share.nominal, *share.lends, *share.borrows, *share.most, *share.most_per_user, *share.prefers)


def _idle_since(pool: Pool, snapshot: Snapshot) -> datetime | None:
    """Since when nobody has held any of it, as far as is known."""
    times: Sequence[datetime | None] = (pool.made_at, snapshot.records.released.get(pool.name))
    return max((time for time in times if time is not None), default=None)


def _ceil(number: float) -> int:
    """Up to the next whole number, but for what dividing floating-point numbers adds."""
    return math.ceil(round(number, 9))
