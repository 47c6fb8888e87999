"""The directory and the environment of a training script, as in a SageMaker container.

Each instance has a directory of its own, `SM_BASE_DIR`, which is also mounted as `/opt/ml` where the machine can do
that. Checkpoints are in a directory named after their S3 URI, so that other instances, and the next attempt with the
same URI, find them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from trainmaster.local.simulator.containers.hosts import Host, host_names
from trainmaster.local.simulator.containers.pipes import Pipe
from trainmaster.local.simulator.service.job import TrainingJob

LOCAL_ADDRESS = "TRAINMASTER_LOCAL_ADDR"
"""Address of this container for other containers; on SageMaker, names in `hosts` resolve instead."""
NETWORK_INTERFACE = "lo"
OPT_ML = PurePosixPath("/opt/ml")
AWS_IMAGE_ENVIRONMENT = {"PYTHONUNBUFFERED": "1"}
"""Set by AWS's training images; otherwise Python buffers thousands of lines of output."""
MAX_URI_CHARACTERS = 40
"""Characters of the last part of the URI in the name of the directory."""


@dataclass(frozen=True, slots=True)
class InstanceSlot:
    """The instance of a container, and all instances of its job with their loopback addresses."""

    hosts: tuple[Host, ...]
    addresses: tuple[str, ...]
    host: Host

    @property
    def address(self) -> str:
        """The loopback address of this instance."""
        return self.addresses[self.hosts.index(self.host)]


@dataclass(frozen=True, slots=True)
class Container:
    """One instance: the directory for `/opt/ml`, that of checkpoints, the script's environment, command and pipes."""

    base: Path
    checkpoints: Path
    environment: Mapping[str, str]
    argv: tuple[str, ...] = ()
    pipes: tuple[Pipe, ...] = ()

    @property
    def directory(self) -> Path:
        """The working directory of the script."""
        return self.base / "code"

    @property
    def failure(self) -> Path:
        """The file for its failure message."""
        return self.base / "output" / "failure"

    def channel(self, name: str) -> Path:
        """Return the folder of an input channel."""
        return self.base / "input" / "data" / name


def base_directory(root: Path, job: TrainingJob, slot: InstanceSlot) -> Path:
    """Return the directory of one instance."""
    base = root / "jobs" / job.name
    return base / slot.host.name if len(slot.hosts) > 1 else base


def build_container(root: Path, job: TrainingJob, slot: InstanceSlot, inherited: Mapping[str, str]) -> Container:
    """Create the directory of one instance under `root`; existing files are kept."""
    base = base_directory(root, job, slot)
    for part in ("input/config", "input/data", "model", "output/data", "code"):
        (base / part).mkdir(parents=True, exist_ok=True)
    for channel in _channels(job):
        (base / "input/data" / channel).mkdir(exist_ok=True)
    checkpoints = _link_checkpoints(root, base, job)
    _write_config(base / "input/config", job, slot)
    environment = {
        **AWS_IMAGE_ENVIRONMENT,
        **inherited,
        **job.request.get("Environment", {}),
        **_paths(base, checkpoints, job),
        **_variables(job, slot),
    }
    return Container(base, checkpoints, environment)


def checkpoint_directory(root: Path, uri: str) -> Path:
    """Return the directory of the checkpoints with this URI."""
    uri = uri.rstrip("/")
    shown = re.sub(r"[^A-Za-z0-9.-]", "-", uri.rpartition("/")[2])[:MAX_URI_CHARACTERS].lstrip(".")
    return root / "checkpoints" / f"{shown}-{hashlib.sha256(uri.encode()).hexdigest()[:16]}"


def _link_checkpoints(root: Path, base: Path, job: TrainingJob) -> Path:
    if job.checkpoint_uri is None:
        own = base / "checkpoints"
        own.mkdir(exist_ok=True)
        return own
    kept = checkpoint_directory(root, job.checkpoint_uri)
    kept.mkdir(parents=True, exist_ok=True)
    link = base / _inside(job.request["CheckpointConfig"].get("LocalPath"))
    if not link.is_symlink():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(kept, target_is_directory=True)
    return link


def _inside(local_path: str | None) -> PurePosixPath:
    """Return the request's path relative to `/opt/ml`; the default for a path outside of it."""
    default = PurePosixPath("checkpoints")
    path = PurePosixPath(local_path or OPT_ML / default)
    if ".." in path.parts or not path.is_relative_to(OPT_ML) or path == OPT_ML:
        return default
    below = path.relative_to(OPT_ML)
    return default if below.parts[0] in ("input", "model", "output", "code") else below


def _write_config(directory: Path, job: TrainingJob, slot: InstanceSlot) -> None:
    (directory / "hyperparameters.json").write_text(json.dumps(_hyperparameters(job)))
    (directory / "resourceconfig.json").write_text(json.dumps(_resources(slot)))
    (directory / "inputdataconfig.json").write_text(json.dumps(_inputs(job)))


def _paths(base: Path, checkpoints: Path, job: TrainingJob) -> dict[str, str]:
    paths = {
        "SM_BASE_DIR": base,
        "SM_INPUT_DIR": base / "input",
        "SM_INPUT_CONFIG_DIR": base / "input/config",
        "SM_MODEL_DIR": base / "model",
        "SM_OUTPUT_DIR": base / "output",
        "SM_OUTPUT_DATA_DIR": base / "output/data",
        "SM_CHECKPOINT_DIR": checkpoints,
        **{f"SM_CHANNEL_{variable_name(name)}": base / "input/data" / name for name in _channels(job)},
    }
    return {name: str(path) for name, path in paths.items()}


def _variables(job: TrainingJob, slot: InstanceSlot) -> dict[str, str]:
    parameters = _hyperparameters(job)
    return {
        **{f"SM_HP_{variable_name(name)}": value for name, value in parameters.items()},
        "SM_HPS": json.dumps(parameters),
        "SM_CHANNELS": json.dumps(_channels(job)),
        "SM_RESOURCE_CONFIG": json.dumps(_resources(slot)),
        "SM_CURRENT_HOST": slot.host.name,
        "SM_HOSTS": json.dumps(host_names(slot.hosts)),
        "SM_NETWORK_INTERFACE_NAME": NETWORK_INTERFACE,
        "SM_NUM_CPUS": str(os.cpu_count() or 1),
        "SM_NUM_GPUS": "0",
        "SM_CURRENT_INSTANCE_TYPE": slot.host.instance_type,
        "TRAINING_JOB_NAME": job.name,
        "TRAINING_JOB_ARN": job.arn,
        LOCAL_ADDRESS: slot.address,
    }


def _hyperparameters(job: TrainingJob) -> dict[str, str]:
    return dict(job.request.get("HyperParameters", {}))


def _channels(job: TrainingJob) -> list[str]:
    return [channel["ChannelName"] for channel in job.request.get("InputDataConfig", [])]


def input_mode(job: TrainingJob, channel: Mapping[str, Any]) -> str:
    """Return the mode of a channel: File, FastFile or Pipe."""
    mode: str = channel.get("InputMode") or job.request["AlgorithmSpecification"]["TrainingInputMode"]
    return mode


def _inputs(job: TrainingJob) -> dict[str, Any]:
    return {
        channel["ChannelName"]: {
            "TrainingInputMode": input_mode(job, channel),
            **({"ContentType": channel["ContentType"]} if channel.get("ContentType") else {}),
            "S3DistributionType": channel["DataSource"].get("S3DataSource", {}).get("S3DataDistributionType", "None"),
            "RecordWrapperType": channel.get("RecordWrapperType", "None"),
        }
        for channel in job.request.get("InputDataConfig", [])
    }


def _resources(slot: InstanceSlot) -> dict[str, Any]:
    groups = {host.group: host.instance_type for host in slot.hosts}
    return {
        "current_host": slot.host.name,
        "current_instance_type": slot.host.instance_type,
        "current_group_name": slot.host.group,
        "hosts": host_names(slot.hosts),
        "instance_groups": [
            {
                "instance_group_name": group,
                "instance_type": instance_type,
                "hosts": host_names([host for host in slot.hosts if host.group == group]),
            }
            for group, instance_type in groups.items()
        ],
        "network_interface_name": NETWORK_INTERFACE,
    }


def variable_name(name: str) -> str:
    """Return a name as part of a variable's."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())
