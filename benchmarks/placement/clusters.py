"""The article's clusters as pools: a node of C CPUs is a pool of C units, a unit an instance with one vCPU.

A task of k CPUs is a job of k instances that names resources and no pool, so the placement policy chooses. Some
settings have machines behind the pools, whose tasks share cores and whose speeds differ; pools do not know them.
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
"""Speeds of CPUs of unequal nodes: large nodes are also fast. The article does not state how unequal its nodes are.
With these, drawing nodes by their size (`resource-pick-kx`) should gain 11.5 % over drawing them equally when one
task runs at a time (means of 1/speed); its table 2 has 11.8 %."""
CORES_OF_SLOTS = 0.5
"""Half of a node's declared CPUs are hyperthreads (the article's Xeon 4110 has 8 cores and 16 threads; Ray counts
threads): tasks beyond the cores share them."""
GANG_CAPS = (4, 8, 16, 32)
"""Instances of the pools for gangs; larger clusters repeat them."""


class Setting(StrEnum):
    """The effect of a node on its tasks.

    counters: none. A job has its instances to itself, as in SageMaker. shared: tasks beyond a node's cores slow each
    other down. unequal: shared, and large nodes are faster.
    """

    COUNTERS = "counters"
    SHARED = "shared"
    UNEQUAL = "unequal"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine behind a pool: cores that its tasks share, and the speed of a core."""

    cores: float
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Pools, and the machines behind them; none if jobs have their instances to themselves."""

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
    """Return a cluster of unequal nodes."""
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
    """Return pools of 4 to 32 instances; with two types, half of the pools of each size have the larger one."""
    pools = {}
    for index in range(nodes):
        name, cap = f"ml.node-{index:03d}", GANG_CAPS[index % len(GANG_CAPS)]
        large = (index + index // len(GANG_CAPS)) % 2 == 1
        pools[name] = _pool(name, cap, LARGE if two_types and large else SMALL)
    return Cluster(pools, {})


def _pool(name: str, cap: int, instance: Resources) -> Pool:
    return Pool(name, cap, vcpus=instance.vcpus, memory_gib=instance.memory_gib)
