"""The pool in which a job starts or waits, among its alternatives: spillover (Liu et al. 2022, algorithms 1 and 2).

Pools that the job names come first, in its order; then what is held for it; then what its share prefers; then the
placement policy chooses. Each step takes only pools without a recent capacity shortage, if there are any.
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
    """The units to charge to a start.

    Attributes:
        units: by pool.
        choices: the types from which SageMaker may choose; empty if there is no choice.
        cursors: cursors that moved.
        instead_of: the pool that would have been chosen, and when it last lacked instances.
    """

    units: Units
    choices: tuple[str, ...] = ()
    cursors: Cursors | None = None
    instead_of: tuple[str, datetime] | None = None


@dataclass(slots=True)
class PoolSelector:
    """The pool choices of one plan, one after the other.

    Attributes:
        snapshot: what the pass read.
        rng: for policies that draw.
        shortages: what AWS lately lacked; None to ignore that.
        cursors: positions of the round-robin policies.
    """

    snapshot: Snapshot
    rng: Random
    shortages: CapacityShortages | None = None
    cursors: Cursors = field(default_factory=Cursors)
    _instance_types: dict[str, InstanceType] = field(default_factory=dict)
    _waiting_pools: dict[tuple[str, ...], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Forget weights of pools that are gone, so that a new pool of that name starts over."""
        known, pools = self.snapshot.cursors, self.snapshot.pools
        self.cursors = replace(known, weights={name: at for name, at in known.weights.items() if name in pools})

    def place(self, job: Job, fitting: Sequence[Units], free: Callable[[str], int]) -> Placement:
        """Return what a job starts on, of the alternatives that fit now, in the order of its demand.

        If SageMaker chooses, it gets all alternatives and takes the first with EC2 capacity; until then the caps carry
        all that it may choose (`worst_case`).

        Args:
            job: a waiting job.
            fitting: at least one of its alternatives.
            free: returns the units of a pool that the job could have now.
        """
        if job.demand.queue_selects_pool:
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
        """Return the alternatives, with the one first in which a blocked job waits: chosen as for a start, among all.

        The choice depends on the pools' totals and the request alone, so that it is the same in every pass and for all
        jobs with the same request while no pool lacks instances. It is not stored: a waiting job would move the cursors
        every time.
        """
        if not job.demand.queue_selects_pool or len(possible) == 1:
            return [*possible]
        prefer_available = self.prefer_available(job, possible)
        if job.demand.resources is None:
            return [*prefer_available, *(units for units in possible if units not in prefer_available)]
        by_pool = _by_pool(prefer_available)
        first = by_pool[self._preferred(job, by_pool) or self._waiting_pool(job, by_pool)]
        return [first, *(units for units in possible if units is not first)]

    def prefer_available(self, job: Job, alternatives: Sequence[Units]) -> Sequence[Units]:
        """Return at least one of the alternatives, without those that recently lacked instances if others are left."""
        if self.shortages is None or len(alternatives) == 1:
            return alternatives
        return self.shortages.without_shortage(job, alternatives)

    def weights(self, names: Iterable[str]) -> dict[str, float]:
        """Return W_ini of pools (equation 6), each resource as a fraction of the most that any of these pools has.

        The article gives no units. In GiB, memory would dominate: an `ml.p5.48xlarge` has 2,048 of them beside 192
        vCPUs and 8 GPUs, so the factor of 0.1 would still leave memory ten times the weight of the GPUs.
        """
        has = {name: self._resources(name) for name in names}
        cpus, gpus, gib = (max((row[kind] for row in has.values()), default=0) or 1 for kind in range(3))
        alpha = self.snapshot.policy.cpu_weight
        return {name: initial_weight(cpu / cpus, gpu / gpus, m / gib, alpha) for name, (cpu, gpu, m) in has.items()}

    def _select(self, job: Job, fitting: Sequence[Units], free: Callable[[str], int]) -> Placement:
        """Return the first preferred pool, or else the policy's choice; for named pools, just the first."""
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
        """Return the placement with the first choice among all that fit, unless a draw or a turn decides that."""
        by_pool = _by_pool(fitting)
        policy, first = self.snapshot.policy.placement, self._preferred(job, by_pool)
        if first is None and POLICIES[policy].deterministic:
            first = choose(policy, self._candidates(job, by_pool, free), self.cursors, self.rng).name
        if self.shortages is None or first is None or first in placed.units:
            return placed
        since = self.shortages.since(job, by_pool[first])
        return placed if since is None else replace(placed, instead_of=(first, since))

    def _waiting_pool(self, job: Job, by_pool: dict[str, Units]) -> str:
        """Return where jobs with this request wait, computed once a plan."""
        asks = (job.demand.equivalence_key, *by_pool)
        if asks not in self._waiting_pools:
            contenders = self._candidates(job, by_pool, self._total)
            self._waiting_pools[asks] = choose_queue(
                self.snapshot.policy.placement, contenders, _stable_point(job.demand)
            )
        return self._waiting_pools[asks]

    def _preferred(self, job: Job, among: dict[str, Units]) -> str | None:
        """Return the pool that precedes the policy: named by the job, held for it, or preferred by its share."""
        share, hold = self.snapshot.policy.shares.get(job.share), job.reservation
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
                total=(size := self._size_of(name, asked)) * self._total(name),
                free=size * max(free(name), 0),
                weight=weights.get(name, 0.0),
                surplus=surplus,
                left=free(name) - units[name],
            )
            for (name, units), surplus in zip(by_pool.items(), surpluses, strict=True)
        ]

    def _size_of(self, name: str, asked: Resources) -> int:
        """Return the size of an instance in the unit asked for; 1 for an unknown type, so that it has its part."""
        kind = self._instance_type(name)
        return (kind.accelerators if asked.accelerators else kind.vcpus) or 1

    def _resources(self, name: str) -> tuple[float, float, float]:
        """Return vCPUs, accelerators and GiB of main memory of a whole pool."""
        kind, count = self._instance_type(name), self._total(name)
        return kind.vcpus * count, kind.accelerators * count, kind.memory_gib * count

    def _total(self, name: str) -> int:
        """Return the instances of a pool that external jobs do not hold."""
        return max(self.snapshot.pools[name].cap - self.snapshot.external.get(name, 0), 0)

    def _instance_type(self, name: str) -> InstanceType:
        if name not in self._instance_types:
            self._instance_types[name] = self.snapshot.catalogue.of_pool(self.snapshot.pools[name])
        return self._instance_types[name]


def _stable_point(demand: Demand) -> float:
    """Return a number from 0 to below 1: equal for equal demands in every process, and far apart for similar ones.

    The high bits of a CRC are alike for texts that differ in one character; Fibonacci hashing spreads its low bits.
    """
    return crc32(f"{demand.lane}*{demand.instances}".encode()) * 2_654_435_769 % 2**32 / 2**32


def _by_pool(alternatives: Sequence[Units]) -> dict[str, Units]:
    """Return the alternatives by pool; alternatives of a job by resources have one pool each."""
    return {next(iter(units)): units for units in alternatives}


def _surpluses(kinds: Sequence[InstanceType], asked: Resources) -> list[tuple[float, ...]]:
    """Return what an instance of each type has beyond the request, the most expensive resource first.

    Among types with equally few spare accelerators, the price decides which has the least of the rest, but only if all
    their prices are known; otherwise a large type without a known price would seem free.
    """
    chips = [(kind.accelerators - asked.accelerators, _accelerator_memory(kind, asked)) for kind in kinds]
    fewest = min(chips)
    priced = all(kind.price for kind, spare in zip(kinds, chips, strict=True) if spare == fewest)
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
    """Return the surplus of accelerator memory; 0 without accelerators."""
    return _surplus_of(kind.accelerator_memory_gib, asked.accelerator_memory_gib) if kind.accelerators else 0.0


def _surplus_of(has: float, asked: float) -> float:
    """Return what is left over; an unknown amount counts as unlimited."""
    return has - asked if has else inf
