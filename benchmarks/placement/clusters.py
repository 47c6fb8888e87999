"""The article's clusters as pools: a node of C CPUs is a pool of C units, a unit an instance with one vCPU.

A task of k CPUs is a job of k instances that names resources and no pool, so the placement policy chooses. What the
article's nodes have beyond counters, cores that tasks share and speeds that differ, is here too, for settings that
want it; pools know none of it. It must not run anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Pool

MEMORY_GIB_A_CPU = 4
SLOTS = (4, 8, 12, 16)
"""CPUs of the four unequal nodes; larger clusters repeat them."""
SPEEDS = (0.7, 0.9, 1.1, 1.3)
"""What their CPUs do in a second where nodes are unequal in that, too: the strong ones are also the fast ones. The
article does not say how unequal its nodes are. With these, drawing nodes by their size (`resource-pick-kx`) should gain
11.5 % over drawing them equally when one task runs at a time (means of 1/speed); its table 2 has 11.8 %."""
CORES_OF_SLOTS = 0.5
"""Half of what a node declares are hyperthreads (the article's Xeon 4110 has 8 cores and 16 threads; Ray counts
threads): beyond so many, its tasks share."""
GANG_CAPS = (4, 8, 16, 32)
"""Instances of the pools for gangs; larger clusters repeat them."""


class Setting(StrEnum):
    """What a node does to the tasks on it.

    counters: nothing. Instances are a job's alone, as SageMaker's are: a job runs as long as it runs.
    shared: tasks beyond a node's cores slow each other down.
    unequal: shared, and large nodes are faster.
    """

    COUNTERS = "counters"
    SHARED = "shared"
    UNEQUAL = "unequal"


@dataclass(frozen=True, slots=True)
class Machine:
    """What is behind a pool in a setting: cores that its tasks share, and what a core does in a second."""

    cores: float
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Pools, and the machines behind them; no machines where instances are a job's alone."""

    pools: dict[str, Pool]
    machines: dict[str, Machine]

    @property
    def slots(self) -> int:
        """Units of all pools."""
        return sum(pool.cap for pool in self.pools.values())


ONE_CPU = Resources(vcpus=1, memory_gib=MEMORY_GIB_A_CPU)
SMALL = Resources(vcpus=4, memory_gib=16)
LARGE = Resources(vcpus=8, memory_gib=32)
"""Instances of the gangs' two types."""


def cluster(nodes: int, setting: Setting, slots: Sequence[int] = SLOTS) -> Cluster:
    """So many unequal nodes."""
    names = [f"ml.node-{index:03d}" for index in range(nodes)]
    caps = [slots[index % len(slots)] for index in range(nodes)]
    pools = {name: _pool(name, cap, ONE_CPU) for name, cap in zip(names, caps, strict=True)}
    if setting is Setting.COUNTERS:
        return Cluster(pools, {})
    speeds = SPEEDS if setting is Setting.UNEQUAL else (1.0,)
    machines = {
        name: Machine(CORES_OF_SLOTS * cap, speeds[index % len(slots) % len(speeds)])
        for index, (name, cap) in enumerate(zip(names, caps, strict=True))
    }
    return Cluster(pools, machines)


def gang_cluster(nodes: int, *, two_types: bool) -> Cluster:
    """Pools of 4 to 32 instances; of two types half the pools have the larger one, from the smallest to the largest."""
    pools = {}
    for index in range(nodes):
        name, cap = f"ml.node-{index:03d}", GANG_CAPS[index % len(GANG_CAPS)]
        large = (index + index // len(GANG_CAPS)) % 2 == 1
        pools[name] = _pool(name, cap, LARGE if two_types and large else SMALL)
    return Cluster(pools, {})


def _pool(name: str, cap: int, instance: Resources) -> Pool:
    return Pool(name, cap, vcpus=instance.vcpus, memory_gib=instance.memory_gib)
