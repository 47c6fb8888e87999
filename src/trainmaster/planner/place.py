"""Where a job starts, or waits, of the alternatives that it has: spillover (Liu et al. 2022, algorithms 1 and 2).

What the job names itself goes first, in its order; then what its share prefers; then the placement policy chooses.
It must not preempt, nor know what is free but by asking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainmaster.domain.capacity import Units, worst_case
from trainmaster.domain.job import Job
from trainmaster.domain.plan import Cursors, Snapshot
from trainmaster.domain.resources import InstanceType, Resources
from trainmaster.planner.placement import Chosen, Node, choose

if TYPE_CHECKING:
    from random import Random

NOTHING = Resources()


@dataclass(frozen=True, slots=True)
class Placement:
    """The units to charge, the types that SageMaker may choose from (empty: no choice), and cursors that moved."""

    units: Units
    choices: tuple[str, ...] = ()
    cursors: Cursors | None = None


@dataclass(slots=True)
class Placer:
    """Places the jobs of one plan, one after the other."""

    snapshot: Snapshot
    rng: Random
    cursors: Cursors = field(default_factory=Cursors)

    def __post_init__(self) -> None:
        self.cursors = self.snapshot.cursors

    def place(self, job: Job, fitting: Sequence[Units], free: Callable[[str], int]) -> Placement:
        """What a job starts on, of the alternatives that fit at once, which come in the order of its demand.

        Where SageMaker chooses, it gets all of them, and takes the first with EC2 capacity: until it has chosen, the
        caps carry all that it may choose (`worst_case`).

        Args:
            job: a waiting job.
            fitting: at least one of its alternatives.
            free: units of a pool that the job could have now.
        """
        if job.demand.ours or len(job.demand.alternatives) == 1:
            units, chosen = self._chosen(job, fitting, free)
            if chosen is not None and chosen.cursors is not None:
                self.cursors = chosen.cursors
                return Placement(dict(units), cursors=chosen.cursors)
            return Placement(dict(units))
        types = {name: pool.instance_type for name, pool in self.snapshot.pools.items()}
        choices = tuple(types.get(name, name) for units in fitting for name in units)
        return Placement(worst_case(fitting), choices)

    def queue(self, job: Job, possible: Sequence[Units], free: Callable[[str], int]) -> list[Units]:
        """The alternatives with the one in front in which a blocked job waits: chosen as for a start, among all.

        What is chosen so is not remembered: a job that waits would move the cursors with every pass.
        """
        units, _ = self._chosen(job, possible, free)
        return [units, *(each for each in possible if each is not units)]

    def _chosen(self, job: Job, among: Sequence[Units], free: Callable[[str], int]) -> tuple[Units, Chosen | None]:
        """The first that is preferred, else what the policy chooses."""
        if job.demand.resources is None or len(among) == 1:
            return among[0], None
        by_pool = {next(iter(units)): units for units in among}
        listed = (name for units in job.demand.alternatives[: job.demand.listed] for name in units)
        share = self.snapshot.policy.shares.get(job.share)
        for name in (*listed, *(share.prefers if share is not None else ())):
            if name in by_pool:
                return by_pool[name], None
        nodes = [self._node(job, name, units[name], free(name)) for name, units in sorted(by_pool.items())]
        chosen = choose(self.snapshot.policy.placement, nodes, self.cursors, self.rng)
        return by_pool[chosen.name], chosen

    def _node(self, job: Job, name: str, count: int, free: int) -> Node:
        asked, pools, catalogue = job.demand.resources or NOTHING, self.snapshot.pools, self.snapshot.catalogue
        kind, pool = catalogue.of_pool(pools[name]), pools[name]
        each = kind.accelerators if asked.accelerators else kind.vcpus
        return Node(
            name=name,
            total=each * (pool.cap - self.snapshot.foreign.get(name, 0)),
            free=each * max(free, 0),
            surplus=_surplus(kind, asked),
            left=free - count,
        )


def _surplus(kind: InstanceType, asked: Resources) -> tuple[float, ...]:
    """What an instance has beyond what is asked for, the dearest kind first."""
    return (
        kind.accelerators - asked.accelerators,
        kind.accelerator_memory_gib - asked.accelerator_memory_gib,
        kind.price,
        kind.vcpus - asked.vcpus,
        kind.memory_gib - asked.memory_gib,
    )
