"""What an instance of an ML type has, and what a job may ask of one instead of naming a type.

Values, and the one rule among them: whether a type covers a demand. It must not know pools.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One ML instance type, all of it per instance; 0 or "" where that is not known.

    Attributes:
        name: as SageMaker has it, such as `ml.p5.48xlarge`.
        vcpus: virtual CPUs.
        memory_gib: main memory, GiB.
        accelerators: GPUs or AWS's own accelerator chips.
        accelerator: who makes them, in small letters: `nvidia`, `aws`, `amd`, `habana`; "" where there are none.
        accelerator_memory_gib: memory of all accelerators together, GiB.
        network_gbps: network bandwidth at best, Gbit/s.
        efa: network interfaces that are Elastic Fabric Adapters.
        price: US dollars an hour on demand.
        storage_gb: local storage (EC2's instance store), GB; SageMaker gives such instances no volume of EBS.
    """

    name: str
    vcpus: int = 0
    memory_gib: float = 0.0
    accelerators: int = 0
    accelerator: str = ""
    accelerator_memory_gib: float = 0.0
    network_gbps: float = 0.0
    efa: int = 0
    price: float = 0.0
    storage_gb: int = 0

    def has_all_of(self, other: InstanceType) -> bool:
        """Whether it has as much as the other of all that a job may ask for; accelerators count for their own maker."""
        return (
            self.accelerators >= other.accelerators
            and (not other.accelerators or self.accelerator == other.accelerator)
            and self.accelerator_memory_gib >= other.accelerator_memory_gib
            and self.vcpus >= other.vcpus
            and self.memory_gib >= other.memory_gib
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job asks of each of its instances (tag `trainmaster:resources`); 0 or "" where it does not mind.

    Attributes: as those of `InstanceType`; the instance must have at least as much.
    """

    accelerators: int = 0
    accelerator_memory_gib: float = 0.0
    vcpus: int = 0
    memory_gib: float = 0.0
    accelerator: str = ""

    def covered_by(self, kind: InstanceType) -> bool:
        """Whether an instance of that type has all that is asked for.

        A demand for accelerators of no maker in particular is met by any; one for none is met by every type, so that
        a small job may fill an idle large instance.
        """
        return (
            kind.accelerators >= self.accelerators
            and kind.accelerator_memory_gib >= self.accelerator_memory_gib
            and kind.vcpus >= self.vcpus
            and kind.memory_gib >= self.memory_gib
            and (not self.accelerator or (kind.accelerators > 0 and kind.accelerator == self.accelerator))
        )

    def __str__(self) -> str:
        """The demand as its tag has it, members in their order, those that it does not mind left out."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        return ",".join(f"{name}={value if isinstance(value, str) else f'{value:g}'}" for name, value in given if value)
