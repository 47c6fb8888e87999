"""What EC2 says of instance types, as `ports.InstanceTypes`: SageMaker's `ml.p5.48xlarge` is EC2's `p5.48xlarge`.

EC2 knows neither prices nor which of its types SageMaker has: the caller names those that he wants. It must not keep
anything, nor decide which answer counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translated
from trainmaster.domain.capacity.resources import InstanceType

PREFIX = "ml."
_MAX_VALUES = 200
"""Values of one filter (EC2 user guide, "Filter your resources")."""
_PAGE = 100
_MIB = 1024
_CHIPS = (("GpuInfo", "Gpus"), ("NeuronInfo", "NeuronDevices"), ("InferenceAcceleratorInfo", "Accelerators"))
"""Where DescribeInstanceTypes has accelerators; the first that an answer has counts: Neuron chips may be in two."""
_GIGABITS = re.compile(r"(?:Up to )?(?:(?P<cards>\d+)x )?(?P<each>[\d.]+) Gigabit", re.ASCII)
_CORRECTED: Mapping[str, Mapping[str, Any]] = {
    # It tells 512 GiB a chip, 8 TiB in all; the page "Amazon EC2 Trn2 instances" 16 chips with 1.5 TB.
    "ml.trn2.48xlarge": {"accelerator_memory_gib": 1536.0},
}


class Ec2InstanceTypes:
    """EC2's DescribeInstanceTypes (`ec2:DescribeInstanceTypes`).

    Args:
        new_client: makes a boto3 EC2 client; called when somebody first asks, since that is once a day.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def describe(self, names: Collection[str]) -> Mapping[str, InstanceType]:
        """Those of the named ML types that EC2 has in this Region; see `ports.InstanceTypes.describe`.

        Asked by family, because EC2 refuses a list in which it does not know every name.
        """
        with translated():
            said = list(self._pages(sorted({f"{_family(name)}.*" for name in names})))
        kinds = (instance_type(each) for each in said)
        return {kind.name: kind for kind in kinds if kind.name in names}

    def _pages(self, patterns: list[str]) -> Iterator[Mapping[str, Any]]:
        client = self._new_client()
        pages = client.get_paginator("describe_instance_types")
        for start in range(0, len(patterns), _MAX_VALUES):
            filters = [{"Name": "instance-type", "Values": patterns[start : start + _MAX_VALUES]}]
            for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": _PAGE}):
                yield from page["InstanceTypes"]


def instance_type(said: Mapping[str, Any]) -> InstanceType:
    """One entry of DescribeInstanceTypes as the ML type of the same name.

    Memory is as EC2 tells it, so that an A10G has 22.35 GiB although its maker says 24 GB.
    """
    name = PREFIX + said["InstanceType"]
    network = said.get("NetworkInfo", {})
    known: dict[str, Any] = {
        "vcpus": said.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        "memory_gib": _gib(said.get("MemoryInfo", {}).get("SizeInMiB", 0)),
        "network_gbps": _gigabits(network),
        "efa": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "storage_gb": said.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        **_accelerators(_chips(said)),
        **_CORRECTED.get(name, {}),
    }
    return InstanceType(name=name, **known)


def _family(name: str) -> str:
    return name.removeprefix(PREFIX).partition(".")[0]


def _chips(said: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    listed = (said[info].get(members, ()) for info, members in _CHIPS if info in said)
    return next((each for each in listed if each), ())


def _accelerators(chips: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many, whose, and their memory together; Neuron chips come without a maker."""
    found = list(chips)
    if not found:
        return {}
    return {
        "accelerators": sum(chip["Count"] for chip in found),
        "accelerator": found[0].get("Manufacturer", "aws").lower(),
        "accelerator_memory_gib": _gib(
            sum(chip["Count"] * chip.get("MemoryInfo", {}).get("SizeInMiB", 0) for chip in found)
        ),
    }


def _gigabits(network: Mapping[str, Any]) -> float:
    """Bandwidth at best: what EC2's words say, of old types with words such as "High" what their cards do together."""
    told = _GIGABITS.fullmatch(network.get("NetworkPerformance", ""))
    if told is not None:
        return int(told["cards"] or 1) * float(told["each"])
    return float(sum(card.get("PeakBandwidthInGbps", 0.0) for card in network.get("NetworkCards", ())))


def _gib(mib: float) -> float:
    return round(mib / _MIB, 2)
