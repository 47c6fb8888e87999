"""A container's directories, training job, host, address and elastic job.

The sources are `input/config/resourceconfig.json` and the variables that the queue adds to the request. Variables of
SageMaker's training toolkit (such as `SM_HOSTS`) and `/etc/hosts` are not used.
"""

from __future__ import annotations

import fcntl
import json
import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import InvalidRequest

OPT_ML = "/opt/ml"
BASE_DIRECTORY = "SM_BASE_DIR"
"""Replaces `/opt/ml` under the simulator and in SageMaker's own images."""
LOCAL_ADDRESS = "TRAINMASTER_LOCAL_ADDR"
"""Replaces the interface's address; several containers on one machine need one each (127.0.0.N)."""
ROUND = "TRAINMASTER_ROUND"
"""Variable by which the agent gives the round of the world to its workers."""
SIOCGIFADDR = 0x8915
"""Linux request for the IPv4 address of an interface (netdevice(7))."""
ATTEMPT = re.compile(r"-qstamp-(\d+)(?:-m\d+)?$")
"""End of the name of a later attempt or of a member (docs/reference/tags.md)."""


class Hook(StrEnum):
    """Method by which the queue resizes the job; `none` if it does not."""

    RESTART = "restart"
    MEMBERS = "members"
    CUSTOM = "custom"
    NONE = "none"


def interface_address(name: str) -> str:
    """Return the IPv4 address of a network interface.

    Raises:
        InvalidRequest: the interface does not exist, or has no address.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        try:
            response = fcntl.ioctl(opened, SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            available = ", ".join(interface for _, interface in socket.if_nameindex())
            raise InvalidRequest(
                f"network interface {name} has no IPv4 address ({error})",
                field="network_interface_name",
                hint=f"available interfaces: {available}; or set {LOCAL_ADDRESS}",
            ) from error
    return socket.inet_ntoa(response[20:24])


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a training job.

    Attributes:
        base: directory that takes the place of `/opt/ml`.
        training_job_name: its training job.
        host, hosts: its name and those of all containers of the training job; not unique beyond it.
        address: address at which other nodes reach it.
        interface: network interface between the containers; empty if it does not exist, or another address is used.
    """

    base: Path
    training_job_name: str
    host: str
    hosts: tuple[str, ...]
    address: str
    interface: str = ""

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str], address_of: Callable[[str], str] = interface_address
    ) -> Container:
        """Return this container.

        Raises:
            InvalidRequest: a value is missing or not valid; the error names it.
        """
        base = base_of(environ)
        config = _read_resource_config(base / "input" / "config" / "resourceconfig.json")
        interface, given = config["network_interface_name"], environ.get(LOCAL_ADDRESS)
        exists = any(name == interface for _, name in socket.if_nameindex())
        return cls(
            base=base,
            training_job_name=require(environ, "TRAINING_JOB_NAME"),
            host=config["current_host"],
            hosts=tuple(config["hosts"]),
            address=given or address_of(interface),
            interface=interface if exists and not given else "",
        )

    @property
    def failure_file(self) -> Path:
        """File whose text becomes the training job's `FailureReason`."""
        return failure_file_in(self.base)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticJob:
    """The elastic job of a container.

    Attributes:
        hook: method by which it is resized.
        run: name of the rendezvous, which is that of the base training job.
        table: DynamoDB table of the rendezvous.
        min_nodes, max_nodes: bounds of a world when the job starts; the queue can change them.
    """

    hook: Hook
    run: str = ""
    table: str = ""
    min_nodes: int = 1
    max_nodes: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ElasticJob:
        """Return the job in an environment.

        Raises:
            InvalidRequest: a variable is missing or not valid; the error names it.
        """
        name = environ.get("TRAINMASTER_HOOK") or Hook.NONE
        try:
            hook = Hook(name)
        except ValueError as error:
            known = ", ".join(Hook)
            raise InvalidRequest(f"unknown hook {name}", field="TRAINMASTER_HOOK", hint=f"one of: {known}") from error
        if hook is not Hook.MEMBERS:
            return cls(
                hook=hook, run=environ.get("TRAINMASTER_RUN", ""), table=environ.get("TRAINMASTER_RENDEZVOUS_TABLE", "")
            )
        return cls(
            hook=hook,
            run=require(environ, "TRAINMASTER_RUN"),
            table=require(environ, "TRAINMASTER_RENDEZVOUS_TABLE"),
            min_nodes=_count(environ, "TRAINMASTER_MIN"),
            max_nodes=_count(environ, "TRAINMASTER_MAX"),
        )


def attempt_number(training_job_name: str) -> int:
    """Return the attempt of its job that a training job is; the first has the name that the user chose."""
    match = ATTEMPT.search(training_job_name)
    return int(match[1]) if match else 1


def base_of(environ: Mapping[str, str]) -> Path:
    """Return the directory that takes the place of `/opt/ml`."""
    return Path(environ.get(BASE_DIRECTORY) or OPT_ML)


def failure_file_in(base: Path) -> Path:
    """Return the file below a base directory whose text becomes the training job's `FailureReason`."""
    return base / "output" / "failure"


def hosts_of(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the name of this host, and those of all hosts of the training job; empty outside of a container."""
    try:
        config = _read_resource_config(base_of(environ) / "input" / "config" / "resourceconfig.json")
    except InvalidRequest:
        return "", ()
    return config["current_host"], tuple(config["hosts"])


def require(environ: Mapping[str, str], name: str) -> str:
    """Return the value of a variable.

    Raises:
        InvalidRequest: it is not set.
    """
    if not environ.get(name):
        raise InvalidRequest(f"{name} is not set", field=name, hint="the queue sets it for elastic jobs")
    return environ[name]


def _count(environ: Mapping[str, str], name: str) -> int:
    text = require(environ, name)
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InvalidRequest(f"{name} is {text!r}; it must be a positive integer", field=name)
    return int(text)


def _read_resource_config(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text())
        return {name: config[name] for name in ("current_host", "hosts", "network_interface_name")}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InvalidRequest(
            f"{path} is not a valid resource configuration: {error!r}",
            field=str(path),
            hint=f"set {BASE_DIRECTORY} to use another base directory",
        ) from error
