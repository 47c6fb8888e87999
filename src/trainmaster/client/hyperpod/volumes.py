"""Prepares the directories that a container mounts: ConfigMaps of the file, channels of the request, empty ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmaster.client.hyperpod.environment import config_map
from trainmaster.client.hyperpod.kinds import Layout
from trainmaster.client.hyperpod.yaml_reader import ManifestReader, Path
from trainmaster.domain.requests.fields import entries

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path in the container
_NO_COMMAND = "the image's own entry point starts before it could be prepared: set `command`"


@dataclass(slots=True)
class Mounts:
    """Directories that the launch script prepares.

    Attributes:
        directories: empty directories.
        links: path in the container by channel.
        files: text by path in the container.
    """

    directories: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def read_mounts(
    reader: ManifestReader,
    layout: Layout,
    companions: Sequence[Mapping[str, Any]],
    base: Mapping[str, Any],
    *,
    has_command: bool,
) -> Mounts:
    """Return the container's mounts, and note those that a training job cannot have."""
    mounts = Mounts()
    channels = {str(channel.get("ChannelName")) for channel in entries(base, "InputDataConfig")}
    volumes = {
        volume.get("name"): (*layout.pod, "volumes", index)
        for index, volume in enumerate(reader.items(*layout.pod, "volumes"))
        if isinstance(volume, Mapping)
    }
    for index in range(len(reader.items(*layout.container, "volumeMounts"))):
        mount = (*layout.container, "volumeMounts", index)
        path = reader.peek(*mount, "mountPath")
        volume = volumes.get(reader.peek(*mount, "name"))
        if not isinstance(path, str):
            continue
        if volume is None:
            reader.note("there is no volume of this name", *mount)
        elif path.rstrip("/") == _SHARED_MEMORY:
            _mark(reader, mount, volume)  # every training job has shared memory of its own
        elif has_command:
            _mount(reader, mount, volume, companions, channels, mounts)
        else:
            reader.note(_NO_COMMAND, *mount)
    return mounts


def _mount(  # noqa: PLR0913, PLR0917 - one parameter per source
    reader: ManifestReader,
    mount: Path,
    volume: Path,
    companions: Sequence[Mapping[str, Any]],
    channels: set[str],
    mounts: Mounts,
) -> None:
    path: str = reader.peek(*mount, "mountPath")
    name = reader.peek(*volume, "configMap", "name")
    claim = str(reader.peek(*volume, "persistentVolumeClaim", "claimName") or reader.peek(*volume, "name"))
    channel = next((each for each in (claim, str(reader.peek(*volume, "name"))) if each in channels), None)
    if channel is not None and channel not in mounts.links:
        mounts.links[channel] = path
        _mark(reader, mount, volume)
    elif (data := config_map(companions, name)) is not None:
        mounts.files |= _config_files(reader, mount, volume, data)
        _mark(reader, mount, volume)
    elif "emptyDir" in (reader.peek(*volume) or {}):
        mounts.directories.append(path)
        _mark(reader, mount, volume)
    elif reader.peek(*volume, "hostPath") is not None:
        mounts.directories.append(path)
        reader.note("there are no files of a node: the directory is empty", *mount)
    else:
        reader.note(_reason(reader, volume, claim, path), *mount)


def _reason(reader: ManifestReader, volume: Path, claim: str, path: str) -> str:
    if reader.peek(*volume, "secret") is not None:
        return "secrets are not copied into requests: let the script read the secret"
    if reader.peek(*volume, "configMap") is not None:
        return "the ConfigMap is not in the file: add it as another document"
    return (
        f"a training job has no volume {claim}: to have its data at {path}, name a channel of InputDataConfig in "
        f"--with {claim!r} (S3, FSx for Lustre or EFS)"
    )


def _config_files(reader: ManifestReader, mount: Path, volume: Path, data: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a mounted ConfigMap; `items` selects and renames keys, `subPath` mounts one file."""
    path = str(reader.peek(*mount, "mountPath")).rstrip("/")
    items = reader.peek(*volume, "configMap", "items")
    if isinstance(items, list):
        chosen = [item for item in items if isinstance(item, Mapping) and item.get("key") in data]
        data = {str(item.get("path")): data[item["key"]] for item in chosen}
    part = reader.peek(*mount, "subPath")
    if isinstance(part, str):
        return {path: data[part]} if part in data else {}
    return {f"{path}/{name}": text for name, text in data.items()}


def _mark(reader: ManifestReader, mount: Path, volume: Path) -> None:
    reader.mark_used(*mount)
    reader.mark_used(*volume)
