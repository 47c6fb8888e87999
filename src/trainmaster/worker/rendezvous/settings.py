"""The engine's settings, and what of them the container's environment says.

All durations are seconds. Environment variables are those that the manager gives to every training job of a group
(docs/reference/rendezvous.md). It must not read anything else, nor decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.rendezvous.control import Control

_STOP = 45.0
"""What workers may take beyond the grace: torchrun gives them 30 s between SIGTERM and SIGKILL."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a node behaves; all nodes of a group should have the same.

    Attributes:
        least, most, sizes: bounds of a world until the scheduler gives others (`control.Control`).
        grace: time to checkpoint before a resize, until the scheduler gives another.
        interval: between two beats of a node.
        attempts: a node is dead to whoever has seen its count stand still for `interval` times this.
        poll: between two reads of a node that waits beside a world, and the least between two of one that works.
        brisk: between two reads of one that waits for a world that is being formed, or its endpoint, in a small group;
            at most `poll`.
        last_call: how long a world of a legal size waits for more nodes than have come, unless the expected number has.
        gather: how long a newcomer may wait for others before a world that works is asked to take it in.
        faulty_wait: after a loss, how long a smaller world waits for a replacement.
        straggler_wait: how long a new world waits for a node of the old one that lives but does not come.
        join_timeout: how long a node waits for a world, while none works.
        close_timeout: how long leaving and closing are tried.
        backoff: longest pause between two tries of a table that does not answer; well below the expiry, or whoever
            tries again last after an outage would be dead to whoever tried first.
    """

    least: int
    most: int
    sizes: tuple[int, ...] = ()
    grace: float = 600.0
    interval: float = 1.0
    attempts: int = 5
    poll: float = 1.0
    brisk: float = 0.1
    last_call: float = 5.0
    gather: float = 5.0
    faulty_wait: float = 0.0
    straggler_wait: float = 60.0
    join_timeout: float = 600.0
    close_timeout: float = 30.0
    backoff: float = 1.0

    def __post_init__(self) -> None:
        """Raises `InvalidRequest` for what no group could work with."""
        if not 1 <= self.least <= self.most or self.control().expected() == 0:
            raise InvalidRequest(f"no world can have {self.least} to {self.most} nodes", field="TRAINMASTER_MIN")
        if min(self.interval, self.poll, self.brisk, self.attempts - 1, self.backoff) <= 0:
            raise InvalidRequest(
                "interval, poll, brisk and backoff are more than 0, attempts more than 1", field="interval"
            )
        waits = (self.grace, self.last_call, self.gather, self.faulty_wait, self.straggler_wait, self.join_timeout)
        if min(*waits, self.close_timeout) < 0:
            raise InvalidRequest("no wait is negative", field="last_call")

    @property
    def expiry(self) -> float:
        """How long a count must have stood still until its node is dead."""
        return self.interval * self.attempts

    def control(self) -> Control:
        """What holds while the scheduler has said nothing."""
        return Control(least=self.least, most=self.most, sizes=self.sizes, grace=self.grace)


def from_environment(environ: Mapping[str, str]) -> Settings:
    """The settings that TRAINMASTER_MIN, _MAX, _SIZES, _GRACE and _FAULTY_WAIT ask for; one node where none are given.

    Raises `InvalidRequest` with the variable's name.
    """
    least = _number(environ, "TRAINMASTER_MIN", 1)
    grace = _number(environ, "TRAINMASTER_GRACE", 600.0)
    return Settings(
        least=int(least),
        most=int(_number(environ, "TRAINMASTER_MAX", least)),
        sizes=_sizes(environ.get("TRAINMASTER_SIZES", "")),
        grace=grace,
        faulty_wait=_number(environ, "TRAINMASTER_FAULTY_WAIT", 0.0),
        straggler_wait=grace + _STOP,
        join_timeout=grace + _STOP + Settings.join_timeout,
    )


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        return float(text) if text else float(default)
    except ValueError as cause:
        raise InvalidRequest(f"{name} is no number: {text!r}", field=name) from cause


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(size) for size in text.split(",") if size.strip()}))
    except ValueError as cause:
        raise InvalidRequest(f"not whole numbers with commas: {text!r}", field="TRAINMASTER_SIZES") from cause
