"""Instance types from EC2, as `ports.InstanceTypes`: SageMaker's `ml.p5.48xlarge` is EC2's `p5.48xlarge`.

EC2 knows neither prices nor which of its types SageMaker offers; the caller names the types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from trainmaster.adapters.aws_errors import translate_errors
from trainmaster.domain.capacity.resources import InstanceType

PREFIX = "ml."
_MAX_VALUES = 200
"""Values of one filter (EC2 user guide, "Filter your resources")."""
_PAGE = 100
_MIB = 1024
_CHIPS = (("GpuInfo", "Gpus"), ("NeuronInfo", "NeuronDevices"), ("InferenceAcceleratorInfo", "Accelerators"))
"""Members of DescribeInstanceTypes with accelerators; the first one present counts: Neuron chips may be in two."""
_GIGABITS = re.compile(r"(?:Up to )?(?:(?P<cards>\d+)x )?(?P<gbps>[\d.]+) Gigabit", re.ASCII)
_CORRECTED: Mapping[str, Mapping[str, Any]] = {
    # EC2 reports 512 GiB for each chip, 8 TiB in all; the page "Amazon EC2 Trn2 instances" has 16 chips with 1.5 TB.
    "ml.trn2.48xlarge": {"accelerator_memory_gib": 1536.0},
}


class Ec2InstanceTypes:
    """EC2's DescribeInstanceTypes (`ec2:DescribeInstanceTypes`).

    Args:
        new_client: makes a boto3 EC2 client; called at each use, which is once a day.
    """

    def __init__(self, new_client: Callable[[], Any]) -> None:
        self._new_client = new_client

    def describe(self, names: Collection[str]) -> Mapping[str, InstanceType]:
        """Return those of the named ML types that EC2 has in this Region; see `ports.InstanceTypes.describe`.

        Filters by family, because EC2 refuses a list with a name that it does not know.
        """
        with translate_errors():
            entries = list(self._pages(sorted({f"{_family(name)}.*" for name in names})))
        types = map(instance_type, entries)
        return {kind.name: kind for kind in types if kind.name in names}

    def _pages(self, patterns: list[str]) -> Iterator[Mapping[str, Any]]:
        client = self._new_client()
        pages = client.get_paginator("describe_instance_types")
        for start in range(0, len(patterns), _MAX_VALUES):
            filters = [{"Name": "instance-type", "Values": patterns[start : start + _MAX_VALUES]}]
            for page in pages.paginate(Filters=filters, PaginationConfig={"PageSize": _PAGE}):
                yield from page["InstanceTypes"]


def instance_type(entry: Mapping[str, Any]) -> InstanceType:
    """Return an entry of DescribeInstanceTypes as the ML type of the same name.

    Memory is EC2's figure, so an A10G has 22.35 GiB although its maker states 24 GB.
    """
    name = PREFIX + entry["InstanceType"]
    network = entry.get("NetworkInfo", {})
    values: dict[str, Any] = {
        "vcpus": entry.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        "memory_gib": _gib(entry.get("MemoryInfo", {}).get("SizeInMiB", 0)),
        "network_gbps": _gigabits(network),
        "efa": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "storage_gb": entry.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        **_accelerators(_chips(entry)),
        **_CORRECTED.get(name, {}),
    }
    return InstanceType(name=name, **values)


def _family(name: str) -> str:
    return name.removeprefix(PREFIX).partition(".")[0]


def _chips(entry: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    listed = (entry[info].get(members, ()) for info, members in _CHIPS if info in entry)
    return next(filter(None, listed), ())


def _accelerators(chips: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return count, maker and total memory of the accelerators; EC2 names no maker for Neuron chips."""
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
    """Return the peak bandwidth in Gbit/s.

    It comes from the text; old types have words such as "High" there, and their network cards are added up instead.
    """
    match = _GIGABITS.fullmatch(network.get("NetworkPerformance", ""))
    if match is not None:
        return int(match["cards"] or 1) * float(match["gbps"])
    return float(sum(card.get("PeakBandwidthInGbps", 0.0) for card in network.get("NetworkCards", ())))


def _gib(mib: float) -> float:
    return round(mib / _MIB, 2)
