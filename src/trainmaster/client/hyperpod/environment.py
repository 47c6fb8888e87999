"""Reads a container's environment variables: values, references to fields, ConfigMaps, and `$(NAME)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.client.hyperpod.expansion import expand, runtime, unresolved
from trainmaster.client.hyperpod.kinds import HYPERPOD, KUBEFLOW, Layout
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path

HOST = "TRAINMASTER_HOST"
"""Variable of the launch script: the name of its own host, such as algo-1."""
ADDRESS = "TRAINMASTER_ADDRESS"
"""Variable of the launch script: the address of its own host."""
_OF_ONE_HOST = {"MASTER_ADDR": "localhost", "PET_MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
                "PET_MASTER_PORT": "29500", "NNODES": "1", "PET_NNODES": "1", "WORLD_SIZE": "1"}  # fmt: skip
"""Values of the operator's variables in a training job of one instance; the others are 0."""
_ADDRESSES = frozenset({"MASTER_ADDR", "PET_MASTER_ADDR", "PET_NODE_RANK", "RANK", "JOB_COMPLETION_INDEX"})
"""Variables whose values in a manifest name hosts of the cluster."""
_INDEXES = {
    "batch.kubernetes.io/job-completion-index": "JOB_COMPLETION_INDEX",
    "training.kubeflow.org/replica-index": "RANK",
}
"""Variables of an operator by the label or annotation with the same value."""
_RUNTIME_FIELDS = {"spec.nodeName": HOST, "status.podIP": ADDRESS, "status.hostIP": ADDRESS}
_MAPPED_FIELD = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_UNREADABLE = "secrets are not copied into requests, where others can read them: let the script read the secret"
_NO_CONFIG_MAP = "the ConfigMap is not in the file: add it as another document, or set a value"


@dataclass(slots=True)
class Environment:
    """Environment variables of a container.

    Attributes:
        values: by name, in order; values can contain references to variables of the container.
        known: values by which `$(NAME)` in commands is expanded.
        unknown: names of variables whose values are not known.
        first_host: the name of the first host.
    """

    values: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    first_host: str = "localhost"


def read_environment(
    reader: ManifestReader,
    layout: Layout,
    companions: Sequence[Mapping[str, Any]],
    base: Mapping[str, Any],
    *,
    is_distributed: bool,
) -> Environment:
    """Return the variables of the job's container.

    Those in `base`, a request's `Environment`, take precedence. In a job of several instances, the operator's variables
    refer to the container.
    """
    found = Environment(first_host=runtime("MASTER_ADDR") if is_distributed else "localhost")
    found.known = (
        {name: runtime(name) for name in layout.variables} if is_distributed else one_host_variables(reader, layout)
    )
    _read_sources(reader, layout, companions, found)
    for index in range(len(reader.items(*layout.container, "env"))):
        path = (*layout.container, "env", index)
        name = reader.take(str, *path, "name")
        if name is None:
            continue
        value = _value(reader, path, layout, companions, found)
        if name in base:
            value = str(base[name])
        if value is None:
            found.unknown.add(name)
        elif name in _ADDRESSES and name in layout.variables:
            reader.note("the container gets the value for the training job's own hosts", *path, "value")
        else:
            found.values[name] = found.known[name] = value
    found.known |= {name: str(value) for name, value in base.items()}
    _add_processes(reader, layout, found)
    return found


def one_host_variables(reader: ManifestReader, layout: Layout) -> dict[str, str]:
    """Return the operator's variables for a training job of one instance."""
    found = {name: _OF_ONE_HOST.get(name, "0") for name in layout.variables}
    processes = str(reader.peek("spec", "nprocPerNode"))
    if "WORLD_SIZE" in found and processes.isdigit():
        found["WORLD_SIZE"] = processes
    return found


def note_unresolved(reader: ManifestReader, text: str, environment: Environment, path: Path) -> None:
    """Note the references in a text to variables that Kubernetes would know."""
    missing = [name for name in unresolved(text, environment.known) if name in environment.unknown]
    if missing:
        reader.note(f"$({missing[0]}) stays as it is: its value is not known", *path)


def with_first_host(text: str, layout: Layout, environment: Environment) -> str:
    """Replace the host name of the pod with rank 0, alone or with a domain, by that of the first host."""
    if layout.first_pod not in text or "MASTER_ADDR" not in layout.variables:
        return text
    name = rf"(?<![\w.-]){re.escape(layout.first_pod)}(?:\.[a-z0-9][a-z0-9.-]*)?(?![\w-])"
    return re.sub(name, lambda _: environment.first_host, text)


def config_map(companions: Sequence[Mapping[str, Any]], name: object) -> Mapping[str, str] | None:
    """Return the texts of a ConfigMap of the same file; None if there is none."""
    for document in companions:
        metadata = document.get("metadata")
        if document.get("kind") == "ConfigMap" and isinstance(metadata, Mapping) and metadata.get("name") == name:
            data = document.get("data")
            return {str(key): str(text) for key, text in data.items()} if isinstance(data, Mapping) else {}
    return None


def _read_sources(
    reader: ManifestReader, layout: Layout, companions: Sequence[Mapping[str, Any]], found: Environment
) -> None:
    """Read `envFrom`."""
    for index in range(len(reader.items(*layout.container, "envFrom"))):
        path = (*layout.container, "envFrom", index)
        data = config_map(companions, reader.peek(*path, "configMapRef", "name"))
        if data is None:
            reader.note(_UNREADABLE if reader.peek(*path, "secretRef") is not None else _NO_CONFIG_MAP, *path)
            continue
        reader.mark_used(*path)
        prefix = reader.peek(*path, "prefix") or ""
        values = {f"{prefix}{name}": text for name, text in data.items()}
        found.values |= values
        found.known |= values


def _value(
    reader: ManifestReader,
    path: Path,
    layout: Layout,
    companions: Sequence[Mapping[str, Any]],
    found: Environment,
) -> str | None:
    """Return a variable's value; None if it is not known."""
    if reader.peek(*path, "valueFrom") is None:
        text = reader.take(str, *path, "value") or ""
        note_unresolved(reader, text, found, (*path, "value"))
        return expand(with_first_host(text, layout, found), found.known)
    value = _referenced_value(reader, (*path, "valueFrom"), layout, companions, found.known)
    if value is not None:
        reader.mark_used(*path, "valueFrom")
    return value


def _referenced_value(
    reader: ManifestReader,
    path: Path,
    layout: Layout,
    companions: Sequence[Mapping[str, Any]],
    known: Mapping[str, str],
) -> str | None:
    if reader.peek(*path, "secretKeyRef") is not None:
        reader.note(_UNREADABLE, *path)
        return None
    reference = reader.peek(*path, "configMapKeyRef")
    if isinstance(reference, Mapping):
        found = (config_map(companions, reference.get("name")) or {}).get(str(reference.get("key")))
        if found is None:
            reader.note(_NO_CONFIG_MAP, *path)
        return found
    name = str(reader.peek(*path, "fieldRef", "fieldPath"))
    if name == "metadata.namespace":
        return str(reader.peek("metadata", "namespace") or "default")
    if name == "metadata.name":
        return f"{runtime('TRAINING_JOB_NAME')}-{runtime(HOST)}"
    if name in _RUNTIME_FIELDS:
        return runtime(_RUNTIME_FIELDS[name])
    mapped = _MAPPED_FIELD.fullmatch(name)
    if mapped is None:
        return None
    value = reader.peek(*layout.templates[0], "metadata", mapped[1], mapped[2])
    return known.get(_INDEXES.get(mapped[2], "")) if value is None else str(value)


def _add_processes(reader: ManifestReader, layout: Layout, found: Environment) -> None:
    """Pass `nprocPerNode` to torchrun."""
    if layout.kind not in (HYPERPOD, KUBEFLOW):
        return
    processes = reader.peek("spec", "nprocPerNode")
    if processes is not None:
        kind = int if isinstance(processes, int) else str
        found.values.setdefault("PET_NPROC_PER_NODE", str(reader.take(kind, "spec", "nprocPerNode")))
