"""Reads the environment once, into frozen Settings, and makes the adapters; nobody else does either.

It must not decide anything, nor be imported by the layers that it puts together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from trainmaster.domain.capacity import Pool
from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.plan import Policy
from trainmaster.service.change import Desk
from trainmaster.service.door import Door
from trainmaster.service.launch import Hands

PREFIX = "TRAINMASTER_"


@dataclass(frozen=True, slots=True)
class Settings:
    """A deployment's settings; each is the environment variable of the same name in capitals, after `TRAINMASTER_`.

    Attributes:
        queue: the queue's name, which tags every attempt.
        table: the DynamoDB table.
        wake_queue_url: the SQS FIFO queue that feeds the manager.
        dead_letter_queue_url: where messages go that cannot be handled.
        pools: the deployment's pools, as `ml.p5.48xlarge=2,ml.g5.2xlarge=8`.
        allowed_roles: role ARN patterns that the queue may pass, separated by commas.
        role_mapping: JSON object, caller ARN pattern to list of role ARN patterns.
        check_pass_role: whether IAM is asked if the caller may pass the role.
        allow_non_preemptible: whether `trainmaster:preemptible=false` is honoured.
        hold_seconds: how long freed capacity is kept for the job that it was freed for.
    """

    queue: str
    table: str
    wake_queue_url: str = ""
    dead_letter_queue_url: str = ""
    pools: str = ""
    allowed_roles: tuple[str, ...] = ()
    role_mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check_pass_role: bool = False
    allow_non_preemptible: bool = True
    hold_seconds: int = 3600

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """The settings in an environment. Raises `InvalidRequest` naming the variable that is unknown or wrong."""
        given = {name.removeprefix(PREFIX): text for name, text in environ.items() if name.startswith(PREFIX)}
        unknown = sorted(given.keys() - _READERS.keys())
        if unknown:
            known = ", ".join(PREFIX + name for name in _READERS)
            raise InvalidRequest(f"unknown setting {PREFIX}{unknown[0]}", field=PREFIX + unknown[0], hint=f"known: {known}")
        for name in ("QUEUE", "TABLE"):
            if not given.get(name):
                raise InvalidRequest(f"{PREFIX}{name} is not set", field=PREFIX + name)
        return cls(**{name.lower(): _read(name, text) for name, text in given.items()})


def _read(name: str, text: str) -> Any:
    try:
        return _READERS[name](text)
    except ValueError as error:
        raise InvalidRequest(f"{PREFIX}{name} is wrong: {error}", field=PREFIX + name) from error


def _switch(text: str) -> bool:
    answer = {"true": True, "false": False}.get(text)
    if answer is None:
        raise ValueError(f"{text!r} is neither 'true' nor 'false'")
    return answer


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _mapping(text: str) -> dict[str, tuple[str, ...]]:
    parsed = json.loads(text or "{}")
    if not isinstance(parsed, dict) or not all(
        isinstance(roles, list) and all(isinstance(role, str) for role in roles) for roles in parsed.values()
    ):
        raise ValueError("it must be a JSON object from caller ARN patterns to lists of role ARN patterns")
    return {caller: tuple(roles) for caller, roles in parsed.items()}


def _seconds(text: str) -> int:
    seconds = int(text)
    if not 0 < seconds <= 7 * 86_400:
        raise ValueError(f"{seconds} is not a number of seconds from 1 to a week")
    return seconds


def parse_pools(text: str) -> dict[str, Pool]:
    """Pools from `ml.p5.48xlarge=2,ml.g5.2xlarge=8`. Raises ValueError saying which part is wrong."""
    pools: dict[str, Pool] = {}
    for part in _listed(text):
        name, equals, cap = part.partition("=")
        if not equals or not cap.strip().isdecimal() or not name.strip().startswith("ml."):
            raise ValueError(f"{part!r} is not of the form ml.TYPE=CAP")
        if name.strip() in pools:
            raise ValueError(f"{name.strip()} is given twice")
        pools[name.strip()] = Pool(name.strip(), int(cap))
    return pools


def _pools(text: str) -> str:
    parse_pools(text)
    return text


_READERS = {
    "QUEUE": str,
    "TABLE": str,
    "WAKE_QUEUE_URL": str,
    "DEAD_LETTER_QUEUE_URL": str,
    "POOLS": _pools,
    "ALLOWED_ROLES": _listed,
    "ROLE_MAPPING": _mapping,
    "CHECK_PASS_ROLE": _switch,
    "ALLOW_NON_PREEMPTIBLE": _switch,
    "HOLD_SECONDS": _seconds,
}


class SystemClock:
    """The machine's time."""

    def now(self) -> datetime:
        """The time now, UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Let that many seconds pass."""
        time.sleep(seconds)


class Application:
    """The parts of one Lambda environment, each made when it is first needed.

    Args:
        settings: the deployment's settings.

    Made late because a cold start is paid by a person: the API never makes a SageMaker client.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = SystemClock()

    @cached_property
    def desk(self) -> Desk:
        """What the API's use cases need."""
        return Desk(self.store, self.publisher, self.clock)

    @cached_property
    def hands(self) -> Hands:
        """What the manager's use cases need."""
        return Hands(self.store, self.launcher, self.clock)

    @cached_property
    def policy(self) -> Policy:
        """The settings that a pass obeys."""
        return Policy(hold_for=timedelta(seconds=self.settings.hold_seconds))
