"""Resources of instance types, and demands by resources."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """An ML instance type; values are per instance, 0 or "" if unknown.

    Attributes:
        name: SageMaker's name, such as `ml.p5.48xlarge`.
        vcpus: virtual CPUs.
        memory_gib: main memory, GiB.
        accelerators: GPUs or AWS's own accelerator chips.
        accelerator: their maker in lower case: `nvidia`, `aws`, `amd`, `habana`; "" if there are none.
        accelerator_memory_gib: memory of all accelerators together, GiB.
        network_gbps: maximum network bandwidth, Gbit/s.
        efa: number of Elastic Fabric Adapters.
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
        """Return whether it has at least the other's resources; accelerators compare only within a maker."""
        return (
            self.accelerators >= other.accelerators
            and (not other.accelerators or self.accelerator == other.accelerator)
            and self.accelerator_memory_gib >= other.accelerator_memory_gib
            and self.vcpus >= other.vcpus
            and self.memory_gib >= other.memory_gib
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Minimum resources of each instance of a job (tag `trainmaster:resources`); 0 or "" for no requirement.

    Attributes: as those of `InstanceType`; the instance must have at least as much.
    """

    accelerators: int = 0
    accelerator_memory_gib: float = 0.0
    vcpus: int = 0
    memory_gib: float = 0.0
    accelerator: str = ""

    def covered_by(self, kind: InstanceType) -> bool:
        """Return whether an instance of that type has these resources.

        A demand without a maker accepts accelerators of any; a demand without accelerators accepts every type.
        """
        return (
            kind.accelerators >= self.accelerators
            and kind.accelerator_memory_gib >= self.accelerator_memory_gib
            and kind.vcpus >= self.vcpus
            and kind.memory_gib >= self.memory_gib
            and (not self.accelerator or (kind.accelerators > 0 and kind.accelerator == self.accelerator))
        )

    def __str__(self) -> str:
        """Return the demand in the format of its tag."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self))
        return ",".join(f"{name}={value if isinstance(value, str) else f'{value:g}'}" for name, value in given if value)
