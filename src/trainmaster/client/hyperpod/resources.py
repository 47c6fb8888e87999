"""Converts a container's resource requests to the tag `trainmaster:resources`, for jobs without an instance type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path, invalid_field

_ACCELERATORS = {
    "nvidia.com/gpu": "nvidia",
    "aws.amazon.com/neurondevice": "aws",
    "aws.amazon.com/neuron": "aws",
}
_WITH_TYPE = ("vpc.amazonaws.com/efa",)
"""Resources that instances of a type have or lack."""
_UNKNOWN = "the queue does not choose instances by it: set ResourceConfig.InstanceType in --with"
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([A-Za-z]{0,2})")
_FACTORS = {"": Fraction(1), "m": Fraction(1, 1000)} | {
    f"{letter}{binary}": Fraction(1024 if binary else 1000) ** power
    for power, letters in enumerate(("kK", "M", "G", "T"), start=1)
    for letter in letters
    for binary in ("", "i")
}
_GIB = 1024**3


def resources_of(reader: ManifestReader, container: Path) -> str:
    """Return the tag's value from the limits, else the requests; "" if there are none.

    Accelerators and CPUs are whole numbers, memory has one decimal; both are rounded up. Raises Refused for an invalid
    quantity.
    """
    _note_unknown(reader, container)
    members = []
    for name, manufacturer in _ACCELERATORS.items():
        if count := _amount(reader, container, name):
            members += [f"accelerators={math.ceil(count)}", f"accelerator={manufacturer}"]
            break
    if cpus := _amount(reader, container, "cpu"):
        members.append(f"vcpus={math.ceil(cpus)}")
    if memory := _amount(reader, container, "memory"):
        members.append(f"memory_gib={math.ceil(memory * 10 / _GIB) / 10:g}")
    return "+".join(members)


def _note_unknown(reader: ManifestReader, container: Path) -> None:
    """Note accelerators and other resources by which the queue cannot choose instances."""
    for kind in ("limits", "requests"):
        resources = reader.peek(*container, "resources", kind)
        for name in resources if isinstance(resources, Mapping) else ():
            if "/" in name and name not in _ACCELERATORS and name not in _WITH_TYPE:
                reader.note(_UNKNOWN, *container, "resources", kind, name)


def _amount(reader: ManifestReader, container: Path, name: str) -> Fraction | None:
    found = [_read(reader, (*container, "resources", kind, name)) for kind in ("limits", "requests")]
    return next((amount for amount in found if amount is not None), None)


def _read(reader: ManifestReader, path: Path) -> Fraction | None:
    """Read a Kubernetes quantity: a number with an optional unit."""
    value = reader.peek(*path)
    if isinstance(value, float):
        value = repr(value)
    if isinstance(value, str):
        reader.mark_used(*path)
        parts = _QUANTITY.fullmatch(value)
        if parts is None or parts[2] not in _FACTORS:
            raise invalid_field(path, f"is {value[:60]!r}", "Specify a quantity such as 8, 500m or 768Gi.")
        return Fraction(parts[1]) * _FACTORS[parts[2]]
    whole = reader.take(int, *path)
    return None if whole is None else Fraction(whole)
