"""What a container knows of itself: its directories, its training job, its host, its address, its elastic job.

The truth is `input/config/resourceconfig.json` and the variables that the queue adds to the request; what only
SageMaker's training toolkit sets (`SM_HOSTS` and such) is not relied upon, and neither is `/etc/hosts`. It reads and
says; it must not start anything, nor speak to AWS.
"""

from __future__ import annotations

import fcntl
import json
import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from trainmaster.domain.errors import InvalidRequest

OPT_ML = "/opt/ml"
BASE_DIRECTORY = "SM_BASE_DIR"
"""Stands for `/opt/ml` under the simulator, and in SageMaker's own images."""
LOCAL_ADDRESS = "TRAINMASTER_LOCAL_ADDR"
"""An address to use instead of the interface's: several containers on one machine need one each (127.0.0.N)."""
ROUND = "TRAINMASTER_ROUND"
"""What the agent tells the workers that it starts: the round of the world that they are of."""
SIOCGIFADDR = 0x8915
"""Linux: an interface's IPv4 address (netdevice(7))."""
ATTEMPT = re.compile(r"-qstamp-(\d+)(?:-m\d+)?$")
"""The end of a later attempt's name, or of a member's (tags and names: docs/reference/tags.md)."""


class Hook(StrEnum):
    """How the queue resizes this job; `none`: it does not."""

    RESTART = "restart"
    MEMBERS = "members"
    CUSTOM = "custom"
    NONE = "none"


def interface_address(name: str) -> str:
    """The IPv4 address of a network interface. Raises `InvalidRequest` for one that is not there or has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        try:
            answer = fcntl.ioctl(opened, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            known = ", ".join(found for _, found in socket.if_nameindex())
            raise InvalidRequest(
                f"network interface {name} has no IPv4 address ({error})",
                field="network_interface_name",
                hint=f"interfaces here: {known}; or set {LOCAL_ADDRESS}",
            ) from error
    return socket.inet_ntoa(answer[20:24])


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a training job.

    Attributes:
        base: what stands for `/opt/ml`.
        training_job_name: its training job.
        host, hosts: its own name there, and all of them; only within one training job do they tell containers apart.
        address: where others reach it.
    """

    base: Path
    training_job_name: str
    host: str
    hosts: tuple[str, ...]
    address: str

    @classmethod
    def of(cls, environ: Mapping[str, str], address_of: Callable[[str], str] = interface_address) -> Container:
        """This container. Raises `InvalidRequest` naming what is missing or wrong."""
        base = Path(environ.get(BASE_DIRECTORY) or OPT_ML)
        config = _resources(base / "input" / "config" / "resourceconfig.json")
        address = environ.get(LOCAL_ADDRESS) or address_of(config["network_interface_name"])
        return cls(
            base=base,
            training_job_name=required(environ, "TRAINING_JOB_NAME"),
            host=config["current_host"],
            hosts=tuple(config["hosts"]),
            address=address,
        )

    @property
    def failure(self) -> Path:
        """The file whose text becomes the training job's `FailureReason` where it fails."""
        return self.base / "output" / "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJob:
    """What the queue says of the elastic job that a container is of.

    Attributes:
        hook: how it is resized.
        run: the rendezvous; the name of the training job that is its base.
        table: the DynamoDB table of the rendezvous.
        least, most: nodes that a world may have when the job starts; the queue may change them.
    """

    hook: Hook
    run: str = ""
    table: str = ""
    least: int = 1
    most: int = 1

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> ElasticJob:
        """The job in an environment. Raises `InvalidRequest` naming the variable that is missing or wrong."""
        named = environ.get("TRAINMASTER_HOOK") or Hook.NONE
        try:
            hook = Hook(named)
        except ValueError as error:
            known = ", ".join(Hook)
            raise InvalidRequest(f"unknown hook {named}", field="TRAINMASTER_HOOK", hint=f"one of: {known}") from error
        if hook is not Hook.MEMBERS:
            return cls(hook=hook, run=environ.get("TRAINMASTER_RUN", ""), table=environ.get("TRAINMASTER_TABLE", ""))
        return cls(
            hook=hook,
            run=required(environ, "TRAINMASTER_RUN"),
            table=required(environ, "TRAINMASTER_TABLE"),
            least=_count(environ, "TRAINMASTER_MIN"),
            most=_count(environ, "TRAINMASTER_MAX"),
        )


def attempt_of(training_job_name: str) -> int:
    """Which attempt of its job a training job is; the first carries the user's own name."""
    found = ATTEMPT.search(training_job_name)
    return int(found[1]) if found else 1


def required(environ: Mapping[str, str], name: str) -> str:
    """A variable that must be there. Raises `InvalidRequest` naming it."""
    if not environ.get(name):
        raise InvalidRequest(f"{name} is not set", field=name, hint="the queue sets it for elastic jobs")
    return environ[name]


def _count(environ: Mapping[str, str], name: str) -> int:
    text = required(environ, name)
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InvalidRequest(f"{name} is {text!r}, not a number of nodes", field=name)
    return int(text)


def _resources(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text())
        return {name: config[name] for name in ("current_host", "hosts", "network_interface_name")}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InvalidRequest(
            f"{path} does not say what SageMaker's says: {error!r}", field=str(path), hint=f"{BASE_DIRECTORY} moves it"
        ) from error
