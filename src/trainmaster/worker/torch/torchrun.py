"""What torchrun's options and a container's environment make of a node: who it is, and how it behaves.

`--rdzv-conf` takes the names of `settings.Settings` and those that torch's own rendezvous has for the same things. It
must not need torch, nor read the environment itself.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.container.container import Container
from trainmaster.worker.rendezvous.settings import Settings, from_environment
from trainmaster.worker.rendezvous.world import Identity, incarnation

TORCHS_NAMES = {
    "keep_alive_interval": "interval",
    "keep_alive_max_attempt": "attempts",
    "last_call_timeout": "last_call",
}
"""Torch's names of settings; `join_timeout` and `close_timeout` are called the same here."""
IGNORED = frozenset({"timeout", "heartbeat_timeout"})
"""torchrun adds `timeout` to every configuration (`LaunchConfig`), for other backends."""
WHOLE = frozenset({"least", "most", "attempts"})
IDENTITY = frozenset({"job", "host", "slots"})
_BOUNDS = frozenset({"least", "most", "sizes"})


def settings_of(least: int, most: int, configuration: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Bounds from `--nnodes`, everything else from `--rdzv-conf` and, where that says nothing, the environment.

    Raises `InvalidRequest` naming the option.
    """
    given = {TORCHS_NAMES.get(name, name): value for name, value in configuration.items()}
    known = {field.name for field in fields(Settings)} - _BOUNDS
    if unknown := given.keys() - known - IGNORED - IDENTITY:
        names = ", ".join(sorted(known | IDENTITY))
        raise InvalidRequest(f"--rdzv-conf has no {min(unknown)}", field=min(unknown), hint=f"It has {names}.")
    told = dict(environ) | {"TRAINMASTER_MIN": str(least), "TRAINMASTER_MAX": str(most)}
    if "grace" in given:
        told["TRAINMASTER_GRACE"] = str(given["grace"])
    numbers: dict[str, Any] = {name: _number(name, value) for name, value in given.items() if name in known}
    return replace(from_environment(told), **numbers)


def identity_of(
    address: str | None, run: str, configuration: Mapping[str, Any], environ: Mapping[str, str], rng: random.Random
) -> Identity:
    """Who this node is: from `--rdzv-conf job=,host=,slots=`, else what SageMaker says, else the run and the address.

    Raises `InvalidRequest` where no address is given: a host's name is `algo-1` in every training job.
    """
    if not address:
        hint = "In a training job it is the address of the interface that resourceconfig.json names."
        raise InvalidRequest("--local-addr is missing: where the others reach this node", field="local_addr", hint=hint)
    return Identity(
        training_job_name=str(configuration.get("job") or environ.get("TRAINING_JOB_NAME") or run),
        host=str(configuration.get("host") or _host(environ, address)),
        incarnation=incarnation(rng),
        addr=address,
        slots=int(_number("slots", configuration.get("slots") or 1)),
    )


def _host(environ: Mapping[str, str], address: str) -> str:
    """SageMaker's name of this host; outside of SageMaker its address."""
    try:
        return Container.of(environ, address_of=lambda _: address).host
    except InvalidRequest:
        return address


def _number(name: str, value: Any) -> float:
    try:
        return int(value) if name in WHOLE else float(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"--rdzv-conf {name}={value} is no number", field=name) from error
