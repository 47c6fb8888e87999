"""What a container of a manifest asks for, as the queue's `trainmaster:resources`: for jobs that name no type.

It must not know instance types.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from trainmaster.client.hyperpod.yaml_reader import Path, Reader, wrong

_ACCELERATORS = {
    "nvidia.com/gpu": "nvidia",
    "aws.amazon.com/neurondevice": "aws",
    "aws.amazon.com/neuron": "aws",
}
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([A-Za-z]{0,2})")
_FACTORS = {"": Fraction(1), "m": Fraction(1, 1000)} | {
    f"{letter}{two}": Fraction(1024 if two else 1000) ** power
    for power, letters in enumerate(("kK", "M", "G", "T"), start=1)
    for letter in letters
    for two in ("", "i")
}
_GIB = 1024**3


def resources_of(reader: Reader, container: Path) -> str:
    """As the tag says it: limits, else requests; "" where there is nothing of it. Raises Refused for no quantity.

    Accelerators and CPUs are whole, memory has one decimal; both are rounded up.
    """
    members = []
    for name, maker in _ACCELERATORS.items():
        if count := _amount(reader, container, name):
            members += [f"accelerators={math.ceil(count)}", f"accelerator={maker}"]
            break
    if cpus := _amount(reader, container, "cpu"):
        members.append(f"vcpus={math.ceil(cpus)}")
    if memory := _amount(reader, container, "memory"):
        members.append(f"memory_gib={math.ceil(memory * 10 / _GIB) / 10:g}")
    return "+".join(members)


def _amount(reader: Reader, container: Path, name: str) -> Fraction | None:
    found = [_read(reader, (*container, "resources", kind, name)) for kind in ("limits", "requests")]
    return next((amount for amount in found if amount is not None), None)


def _read(reader: Reader, path: Path) -> Fraction | None:
    """A Kubernetes quantity: a number, with a unit or without."""
    value = reader.look(*path)
    if isinstance(value, float):
        value = repr(value)
    if isinstance(value, str):
        reader.honour(*path)
        parts = _QUANTITY.fullmatch(value)
        if parts is None or parts[2] not in _FACTORS:
            raise wrong(path, f"is {value[:60]!r}", "It takes a quantity such as 8, 500m or 768Gi.")
        return Fraction(parts[1]) * _FACTORS[parts[2]]
    whole = reader.take(int, *path)
    return None if whole is None else Fraction(whole)
