"""Settings of the rendezvous engine, and the environment variables that set some of them.

All durations are in seconds. The manager sets the variables for every training job of an elastic job
(docs/reference/rendezvous.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.rendezvous.control import Control

_STOP_SECONDS = 45.0
"""Time that workers can need after the grace: torchrun allows 30 s between SIGTERM and SIGKILL."""
_INTERVALS = {
    "keep_alive_interval": 0,
    "keep_alive_max_attempt": 1,
    "poll_interval": 0,
    "join_poll_interval": 0,
    "max_backoff": 0,
    "join_timeout": 0,
    "close_timeout": 0,
}
"""Numbers that have to be above a limit, with the limit."""
_WAITS = (
    "last_call_timeout",
    "scale_up_delay",
    "faulty_scale_down_timeout",
    "straggler_timeout",
    "cas_backoff_max_seconds",
    "grace",
)
"""Durations that may be 0."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a node; use the same on all nodes of a rendezvous. Names that torch has are torch's.

    Attributes:
        min_nodes, max_nodes, sizes: bounds of a world until the scheduler sets others (`control.Control`).
        grace: time to save a checkpoint before a resize, until the scheduler sets another.
        keep_alive_interval: interval of a node's heartbeats.
        keep_alive_max_attempt: a node is dead once its heartbeat count has not changed for this many intervals.
        poll_interval: interval of reads by a node that waits while a world works, and the minimum for members of one;
            half of it in a small group, and less if a silent node can be found dead before.
        join_poll_interval: interval of reads while a node waits for a round to complete or for its endpoint, in a
            small group; at most the interval of other reads.
        last_call_timeout: how long a world of a legal size waits for more nodes, unless the expected number is there.
        scale_up_delay: how long new nodes wait for others before a working world is interrupted to include them.
        faulty_scale_down_timeout: after a loss, how long a smaller world waits for a replacement.
        straggler_timeout: how long a new world waits for a live node of the previous one.
        join_timeout: how long a node waits for a world while none works.
        close_timeout: how long leaving and closing are retried.
        max_backoff: maximum pause between retries while the table does not respond. Keep it well below
            `keep_alive_timeout`: after an outage, the last node to retry must not be dead to the first.
        cas_backoff_max_seconds: maximum random pause after another node's write came first.
    """

    min_nodes: int
    max_nodes: int
    sizes: tuple[int, ...] = ()
    grace: float = 600.0
    keep_alive_interval: float = 1.0
    keep_alive_max_attempt: int = 5
    poll_interval: float = 1.0
    join_poll_interval: float = 0.1
    last_call_timeout: float = 5.0
    scale_up_delay: float = 5.0
    faulty_scale_down_timeout: float = 0.0
    straggler_timeout: float = 60.0
    join_timeout: float = 600.0
    close_timeout: float = 30.0
    max_backoff: float = 1.0
    cas_backoff_max_seconds: float = 1.0

    def __post_init__(self) -> None:
        """Raise `InvalidRequest` for settings with which no world can form or a wait is not valid."""
        if not 1 <= self.min_nodes <= self.max_nodes or self.default_control().expected_size() == 0:
            bounds = f"{self.min_nodes} to {self.max_nodes} nodes"
            raise InvalidRequest(f"no world can have {bounds}", field="TRAINMASTER_MIN")
        self._check_positive()
        self._check_waits()

    def _check_positive(self) -> None:
        for name, limit in _INTERVALS.items():
            if not limit < getattr(self, name) < inf:
                raise InvalidRequest(f"{name} must be a number greater than {limit}", field=name)

    def _check_waits(self) -> None:
        for name in _WAITS:
            if not 0 <= getattr(self, name) < inf:
                raise InvalidRequest(f"{name} must be a number of seconds and not negative", field=name)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Settings:
        """Return the settings of TRAINMASTER_MIN, _MAX, _SIZES, _GRACE and _FAULTY_WAIT; by default, for one node.

        Raises:
            InvalidRequest: a variable is not valid; the error names it.
        """
        min_nodes = _number(environ, "TRAINMASTER_MIN", 1)
        grace = _number(environ, "TRAINMASTER_GRACE", 600.0)
        return cls(
            min_nodes=int(min_nodes),
            max_nodes=int(_number(environ, "TRAINMASTER_MAX", min_nodes)),
            sizes=_sizes(environ.get("TRAINMASTER_SIZES", "")),
            grace=grace,
            faulty_scale_down_timeout=_number(environ, "TRAINMASTER_FAULTY_WAIT", 0.0),
            straggler_timeout=grace + _STOP_SECONDS,
            join_timeout=grace + _STOP_SECONDS + cls.join_timeout,
        )

    @property
    def keep_alive_timeout(self) -> float:
        """Seconds without a change of its heartbeat count after which a node is dead."""
        return self.keep_alive_interval * self.keep_alive_max_attempt

    def default_control(self) -> Control:
        """Return the bounds that apply until the scheduler sets others."""
        return Control(min_nodes=self.min_nodes, max_nodes=self.max_nodes, sizes=self.sizes, grace=self.grace)


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        return float(text) if text else float(default)
    except ValueError as cause:
        raise InvalidRequest(f"{name} is not a number: {text!r}", field=name) from cause


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(size) for size in text.split(",") if size.strip()}))
    except ValueError as cause:
        raise InvalidRequest(f"not a comma-separated list of integers: {text!r}", field="TRAINMASTER_SIZES") from cause
