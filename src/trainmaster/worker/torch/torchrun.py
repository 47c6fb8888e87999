"""A node's identity and settings from torchrun's options and the container's environment. Does not need torch.

`--rdzv-conf` accepts the names of `settings.Settings`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.container.container import Container
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.world import Identity, new_incarnation

IGNORED_OPTIONS = frozenset({"timeout", "heartbeat_timeout"})
"""torchrun adds `timeout` to every configuration (`LaunchConfig`), for other backends."""
INTEGER_SETTINGS = frozenset({"keep_alive_max_attempt"})
IDENTITY_OPTIONS = frozenset({"job", "host", "slots"})
_BOUND_SETTINGS = frozenset({"min_nodes", "max_nodes", "sizes"})


def make_settings(
    min_nodes: int, max_nodes: int, configuration: Mapping[str, Any], environ: Mapping[str, str]
) -> Settings:
    """Return the settings: bounds from `--nnodes`, the others from `--rdzv-conf`, otherwise from the environment.

    Raises:
        InvalidRequest: an option is unknown or not valid; the error names it.
    """
    names = {field.name for field in fields(Settings)} - _BOUND_SETTINGS
    if unknown := configuration.keys() - names - IGNORED_OPTIONS - IDENTITY_OPTIONS:
        hint = f"valid options: {', '.join(sorted(names | IDENTITY_OPTIONS))}"
        raise InvalidRequest(f"unknown option in --rdzv-conf: {min(unknown)}", field=min(unknown), hint=hint)
    merged = dict(environ) | {"TRAINMASTER_MIN": str(min_nodes), "TRAINMASTER_MAX": str(max_nodes)}
    if "grace" in configuration:
        merged["TRAINMASTER_GRACE"] = str(configuration["grace"])
    numbers: dict[str, Any] = {name: _number(name, value) for name, value in configuration.items() if name in names}
    return replace(Settings.from_environment(merged), **numbers)


def make_identity(
    address: str | None, run: str, configuration: Mapping[str, Any], environ: Mapping[str, str], rng: random.Random
) -> Identity:
    """Return this node's identity: `job`, `host` and `slots` of `--rdzv-conf`, or SageMaker's values, run and address.

    Raises:
        InvalidRequest: no address is given. Host names do not work: every training job has an `algo-1`.
    """
    if not address:
        hint = "in a training job, use the address of the interface that resourceconfig.json names"
        raise InvalidRequest("--local-addr is required: other nodes connect to it", field="local_addr", hint=hint)
    return Identity(
        training_job_name=str(configuration.get("job") or environ.get("TRAINING_JOB_NAME") or run),
        host=str(configuration.get("host") or _host(environ, address)),
        incarnation=new_incarnation(rng),
        addr=address,
        slots=int(_number("slots", configuration.get("slots") or 1)),
    )


def _host(environ: Mapping[str, str], address: str) -> str:
    """Return SageMaker's name of this host, or its address outside SageMaker."""
    try:
        return Container.from_environment(environ, address_of=lambda _: address).host
    except InvalidRequest:
        return address


def _number(name: str, value: Any) -> float:
    try:
        return int(value) if name in INTEGER_SETTINGS else float(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"not a number: --rdzv-conf {name}={value}", field=name) from error
