"""Where a job starts, or waits, of the alternatives that it has: spillover (Liu et al. 2022, algorithms 1 and 2).

What the job names itself goes first, in its order; then what is held for it; then what its share prefers; then the
placement policy chooses: each among the pools that have not lately turned out to lack instances. It must not preempt,
nor know what is free but by asking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING
from zlib import crc32

from trainmaster.domain.capacity.resources import InstanceType, Resources
from trainmaster.domain.capacity.units import Demand, Units, worst_case
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Cursors, Snapshot
from trainmaster.planner.placement.policies import POLICIES, CandidatePool, choose, choose_queue, initial_weight
from trainmaster.planner.placement.shortages import CapacityShortages

if TYPE_CHECKING:
    from random import Random

NOTHING = Resources()


@dataclass(frozen=True, slots=True)
class Placement:
    """The units to charge, the types that SageMaker may choose from (empty: no choice), and cursors that moved.

    `instead_of` is the pool that it would have been, and when that turned out to lack instances.
    """

    units: Units
    choices: tuple[str, ...] = ()
    cursors: Cursors | None = None
    instead_of: tuple[str, datetime] | None = None


@dataclass(slots=True)
class PoolSelector:
    """Places the jobs of one plan, one after the other.

    Attributes:
        snapshot: what the pass read.
        rng: for policies that draw.
        now: the time of the pass, UTC; None where it does not matter what pools have lately turned out to lack.
        cursors: where the policies that go round have got to.
    """

    snapshot: Snapshot
    rng: Random
    now: datetime | None = None
    cursors: Cursors = field(default_factory=Cursors)
    _instance_types: dict[str, InstanceType] = field(default_factory=dict)
    _waiting_pools: dict[tuple[str, ...], str] = field(default_factory=dict)
    _shortages: CapacityShortages | None = None

    def __post_init__(self) -> None:
        """Weights of pools that are gone are forgotten: a new pool of that name begins anew."""
        known, pools = self.snapshot.cursors, self.snapshot.pools
        self.cursors = replace(known, weights={name: at for name, at in known.weights.items() if name in pools})
        self._shortages = None if self.now is None else CapacityShortages(self.snapshot, self.now)

    def place(self, job: Job, fitting: Sequence[Units], free: Callable[[str], int]) -> Placement:
        """What a job starts on, of the alternatives that fit at once, which come in the order of its demand.

        Where SageMaker chooses, it gets all of them, and takes the first with EC2 capacity: until it has chosen, the
        caps carry all that it may choose (`worst_case`).

        Args:
            job: a waiting job.
            fitting: at least one of its alternatives.
            free: units of a pool that the job could have now.
        """
        if job.demand.ours:
            prefer_available = self.prefer_available(job, fitting)
            placed = self._select(job, prefer_available, free)
            return (
                placed
                if len(prefer_available) == len(fitting)
                else self._record_first_choice(placed, job, fitting, free)
            )
        if len(job.demand.alternatives) == 1:
            return Placement(dict(fitting[0]))
        types = {name: pool.instance_type for name, pool in self.snapshot.pools.items()}
        choices = tuple(types.get(name, name) for units in fitting for name in units)
        return Placement(worst_case(fitting), choices)

    def order_for_wait(self, job: Job, possible: Sequence[Units]) -> list[Units]:
        """The alternatives with the one in front in which a blocked job waits: chosen as for a start, among all.

        It is chosen by the pools' totals and by what the job asks for, so that it is the same in every pass and for
        all jobs that ask for the same while no pool turns out to lack instances, and it is not remembered: a job that
        waits would move the cursors each time.
        """
        if not job.demand.ours or len(possible) == 1:
            return [*possible]
        prefer_available = self.prefer_available(job, possible)
        if job.demand.resources is None:
            return [*prefer_available, *(units for units in possible if units not in prefer_available)]
        by_pool = _by_pool(prefer_available)
        first = by_pool[self._preferred(job, by_pool) or self._waiting_pool(job, by_pool)]
        return [first, *(units for units in possible if units is not first)]

    def prefer_available(self, job: Job, alternatives: Sequence[Units]) -> Sequence[Units]:
        """At least one of the alternatives: those that AWS has not lately turned out to lack go before the others."""
        if self._shortages is None or len(alternatives) == 1:
            return alternatives
        return self._shortages.without_shortage(job, alternatives)

    def weights(self, names: Iterable[str]) -> dict[str, float]:
        """W_ini of pools (equation 6), each kind of resource as a part of the most that any of these pools has of it.

        The article gives no units. In GiB, memory would drown all else: a `ml.p5.48xlarge` has 2,048 of them beside 192
        vCPUs and 8 GPUs, so that the factor of 0.1 would still leave it ten times the weight of the GPUs.
        """
        has = {name: self._resources(name) for name in names}
        cpus, gpus, gib = (max((row[kind] for row in has.values()), default=0) or 1 for kind in range(3))
        alpha = self.snapshot.policy.cpu_weight
        return {name: initial_weight(cpu / cpus, gpu / gpus, m / gib, alpha) for name, (cpu, gpu, m) in has.items()}

    def _select(self, job: Job, fitting: Sequence[Units], free: Callable[[str], int]) -> Placement:
        """The first that is preferred, else what the policy chooses; of named ones just the first."""
        if job.demand.resources is None:
            return Placement(dict(fitting[0]))
        by_pool = _by_pool(fitting)
        if (name := self._preferred(job, by_pool)) is not None:
            return Placement(dict(by_pool[name]))
        chosen = choose(self.snapshot.policy.placement, self._candidates(job, by_pool, free), self.cursors, self.rng)
        self.cursors = chosen.cursors or self.cursors
        return Placement(dict(by_pool[chosen.name]), cursors=chosen.cursors)

    def _record_first_choice(
        self, placed: Placement, job: Job, fitting: Sequence[Units], free: Callable[[str], int]
    ) -> Placement:
        """The placement with what it would have been among all that fit, as far as no draw and no turn decides that."""
        by_pool = _by_pool(fitting)
        policy, first = self.snapshot.policy.placement, self._preferred(job, by_pool)
        if first is None and POLICIES[policy].deterministic:
            first = choose(policy, self._candidates(job, by_pool, free), self.cursors, self.rng).name
        if self._shortages is None or first is None or first in placed.units:
            return placed
        since = self._shortages.since(job, by_pool[first])
        return placed if since is None else replace(placed, instead_of=(first, since))

    def _waiting_pool(self, job: Job, by_pool: dict[str, Units]) -> str:
        """Where jobs wait that ask for the same: worked out once in a plan, since a deep queue is full of them."""
        asks = (job.demand.traits, *by_pool)
        if asks not in self._waiting_pools:
            contenders = self._candidates(job, by_pool, self._total)
            self._waiting_pools[asks] = choose_queue(
                self.snapshot.policy.placement, contenders, _stable_point(job.demand)
            )
        return self._waiting_pools[asks]

    def _preferred(self, job: Job, among: dict[str, Units]) -> str | None:
        """The pool that goes before all others: the job's own choice, what was freed for it, its share's preference."""
        share, hold = self.snapshot.policy.shares.get(job.share), job.hold
        listed = (name for units in job.demand.named for name in units)
        held = hold.units if hold is not None else ()
        return next((name for name in (*listed, *held, *(share.prefers if share else ())) if name in among), None)

    def _candidates(self, job: Job, by_pool: dict[str, Units], free: Callable[[str], int]) -> list[CandidatePool]:
        weights = self.weights(by_pool) if POLICIES[self.snapshot.policy.placement].weighted else {}
        asked = job.demand.resources or NOTHING
        surpluses = _surpluses([self._instance_type(name) for name in by_pool], asked)
        return [
            CandidatePool(
                name=name,
                total=(each := self._size_of(name, asked)) * self._total(name),
                free=each * max(free(name), 0),
                weight=weights.get(name, 0.0),
                surplus=surplus,
                left=free(name) - units[name],
            )
            for (name, units), surplus in zip(by_pool.items(), surpluses, strict=True)
        ]

    def _size_of(self, name: str, asked: Resources) -> int:
        """What an instance counts for; of a type of which nothing is known for one, so that it has its part."""
        kind = self._instance_type(name)
        return (kind.accelerators if asked.accelerators else kind.vcpus) or 1

    def _resources(self, name: str) -> tuple[float, float, float]:
        """vCPUs, accelerators and GiB of main memory of a whole pool."""
        kind, count = self._instance_type(name), self._total(name)
        return kind.vcpus * count, kind.accelerators * count, kind.memory_gib * count

    def _total(self, name: str) -> int:
        """Instances of a pool, whoever of the queue holds them."""
        return max(self.snapshot.pools[name].cap - self.snapshot.foreign.get(name, 0), 0)

    def _instance_type(self, name: str) -> InstanceType:
        if name not in self._instance_types:
            self._instance_types[name] = self.snapshot.catalogue.of_pool(self.snapshot.pools[name])
        return self._instance_types[name]


def _stable_point(demand: Demand) -> float:
    """From 0 on, less than 1: the same for equal demands, in every process, and far apart for those that differ little.

    The high bits of a CRC are alike for texts that differ in one character; Fibonacci hashing spreads its low ones.
    """
    return crc32(f"{demand.lane}*{demand.instances}".encode()) * 2_654_435_769 % 2**32 / 2**32


def _by_pool(alternatives: Sequence[Units]) -> dict[str, Units]:
    """Alternatives of a job by resources have one pool each."""
    return {next(iter(units)): units for units in alternatives}


def _surpluses(kinds: Sequence[InstanceType], asked: Resources) -> list[tuple[float, ...]]:
    """What an instance of each kind has beyond what is asked for, the dearest part first.

    Where several have equally few accelerators to spare, the price tells which of them has least of the rest, but only
    where it is known of all of these: else a large one whose price nobody knows would seem to cost nothing.
    """
    chips = [(kind.accelerators - asked.accelerators, _accelerator_memory(kind, asked)) for kind in kinds]
    least = min(chips)
    priced = all(kind.price for kind, spare in zip(kinds, chips, strict=True) if spare == least)
    return [
        (
            *spare,
            kind.price if priced else 0.0,
            _surplus_of(kind.vcpus, asked.vcpus),
            _surplus_of(kind.memory_gib, asked.memory_gib),
        )
        for kind, spare in zip(kinds, chips, strict=True)
    ]


def _accelerator_memory(kind: InstanceType, asked: Resources) -> float:
    """Nobody needs to tell that an instance without accelerators has no memory of any."""
    return _surplus_of(kind.accelerator_memory_gib, asked.accelerator_memory_gib) if kind.accelerators else 0.0


def _surplus_of(has: float, asked: float) -> float:
    """What is left over; what nobody has told is taken to be more than all that is known."""
    return has - asked if has else inf
