"""Reads the instance type from a pod's node selectors and node affinity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path, invalid_field

_LABELS = (
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "sagemaker.amazonaws.com/instance-type",
    "sagemaker.amazonaws.com/compute-type",
)
"""Labels of nodes with their instance type; AWS's examples use all of them."""
_TYPE = re.compile(r"(?:ml\.)?([a-z][a-z0-9-]*\.[a-z0-9-]+)")
_REQUIRED: Path = ("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_PREFERRED: Path = ("preferredDuringSchedulingIgnoredDuringExecution",)
_SEVERAL = "several instance types: set one as ResourceConfig.InstanceType in --with, or pools with --option pools="


def instance_type_of(reader: ManifestReader, pod: Path) -> tuple[str, Path] | None:
    """Return SageMaker's name of the instance type and its path in the manifest; None if the pod names none.

    EC2's names get the prefix `ml.`. Raises Refused for a text that is no instance type.
    """
    found: tuple[str, Path] | None = None
    for path in _selectors(reader, pod):
        value = reader.peek(*path)
        match = _TYPE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            if path[-1] in _LABELS and value not in ("", None):
                raise invalid_field(path, f"is {str(value)[:60]!r}", "Specify an instance type such as ml.p5.48xlarge.")
            continue
        name = f"ml.{match[1]}"
        if found is None or found[0] == name:
            reader.mark_used(*path)
            found = found or (name, path)
        else:
            reader.note(f"another label sets the instance type {found[0]}", *path)
    return found


def _selectors(reader: ManifestReader, pod: Path) -> Iterator[Path]:
    """Iterate over paths of instance types: selectors, then required affinity, then preferred affinity."""
    for label in _LABELS:
        if reader.peek(*pod, "nodeSelector", label) is not None:
            yield (*pod, "nodeSelector", label)
    affinity = (*pod, "affinity", "nodeAffinity")
    for terms, below in (((*affinity, *_REQUIRED), ()), ((*affinity, *_PREFERRED), ("preference",))):
        if not isinstance(reader.peek(*affinity), Mapping):
            return
        for index in range(len(reader.items(*terms))):
            expressions = (*terms, index, *below, "matchExpressions")
            for number in range(len(reader.items(*expressions))):
                yield from _in_values(reader, (*expressions, number))


def _in_values(reader: ManifestReader, path: Path) -> Iterator[Path]:
    """Return the path of the only value of an expression `key In [value]`."""
    if reader.peek(*path, "key") not in _LABELS or reader.peek(*path, "operator") != "In":
        return
    values = reader.items(*path, "values")
    if len(values) != 1:
        reader.note(_SEVERAL, *path)
        return
    for member in ("key", "operator"):
        reader.mark_used(*path, member)
    reader.mark_used(*_weight(path))
    yield (*path, "values", 0)


def _weight(path: Path) -> Path:
    """Return the path of a preference's weight, which has no effect on the only preference."""
    return (*path[: path.index("preference")], "weight") if "preference" in path else (*path, "weight")
