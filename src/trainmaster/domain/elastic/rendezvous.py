"""The queue's view of an elastic job's rendezvous: its nodes, and the control that they follow.

The nodes run `worker/`, which shares no code with the queue; the state is JSON that both read. Only nodes change it.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from trainmaster.domain.compat import StrEnum
from trainmaster.domain.errors import UnreadableRendezvous
from trainmaster.domain.text import MAX_REASON_LENGTH

MAX_STATE_BYTES = 300_000
"""Bytes of a state that is not compressed; a node takes about 130."""
MAX_SPEED_BYTES = 1_000
MAX_NODES = 2_000
MAX_NODE_NAME_LENGTH = 256
"""Characters of a node's name: that of a training job has at most 63."""
MAX_COUNT = 10**12
_Sized = TypeVar("_Sized", str | bytes, str, Mapping[str, Any])


class Role(StrEnum):
    """Role of a node in the rendezvous.

    member: in the current round, with a rank. waiting: joins the next round. spare: beyond the maximum size. leaving:
    about to leave.
    """

    MEMBER = "member"
    WAITING = "waiting"
    SPARE = "spare"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Run:
    """Identity of a rendezvous.

    Attributes:
        name: the name of the attempt's base training job.
        role: ARN of the execution role of its training jobs. Each role has access to the rows of its own runs only.
    """

    name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A container in a rendezvous.

    Attributes:
        training_job_name: its training job.
        host: its name there, such as `algo-1`.
        rank: in the current round; None outside of it.
    """

    training_job_name: str
    host: str
    role: Role
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RendezvousState:
    """The state of a rendezvous.

    Attributes:
        round: number of the current round, or of the one being formed.
        complete: whether that round is formed.
        closed: whether it is closed for good.
        reason: why it was closed; "" while it is open.
        nodes: all nodes, by rank, then by name.
        restarts: restarts that count against the job's budget.
    """

    round: int
    complete: bool
    closed: bool = False
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    restarts: int = 0

    def holds(self, training_job_name: str) -> bool:
        """Return whether any node of this training job still takes part."""
        return any(node.training_job_name == training_job_name for node in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The control that the queue sets for a rendezvous.

    Attributes:
        epoch: increases with every change, so that nodes notice it.
        min_nodes, max_nodes: nodes that a world may have, within the legal sizes.
        sizes: the legal sizes, ascending; empty where every number from `min_nodes` to `max_nodes` is.
        drain: training jobs whose nodes must checkpoint and leave.
        grace: seconds that they have for that.
    """

    epoch: int
    min_nodes: int
    max_nodes: int
    sizes: tuple[int, ...] = ()
    drain: tuple[str, ...] = ()
    grace: float = 600.0


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """The nodes' report of their speed.

    Attributes:
        instances: nodes that worked together.
        rate: steps or samples a second.
        at: when it was measured, seconds since 1970; None from older workers.
    """

    instances: int
    rate: float
    at: float | None = None


def speed_of(text: str | bytes) -> SpeedReport:
    """Return the report that nodes wrote; its text is as untrusted as a state's. Raises `UnreadableRendezvous`."""
    try:
        values = _mapping(json.loads(_bounded(text, MAX_SPEED_BYTES)))
        at = values.get("at")
        return SpeedReport(_number(values["instances"]), _rate(values["perSecond"]), None if at is None else _rate(at))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UnreadableRendezvous(f"The reported speed cannot be read: {type(error).__name__}.") from error


def group_of(text: str | bytes) -> RendezvousState:
    """Return the rendezvous in a state that the nodes wrote; ignore members that newer nodes add.

    `docs/reference/rendezvous.md` describes the state; a node of an unknown role counts as waiting. The text is
    untrusted, because containers write it: its size is checked before it is parsed, and every value afterwards.
    Raises `UnreadableRendezvous`.
    """
    try:
        state = json.loads(_bounded(_decompressed(text), MAX_STATE_BYTES))
        nodes = (_node(name, node) for name, node in _bounded(_mapping(state["nodes"]), MAX_NODES).items())
        return RendezvousState(
            round=_number(state["round"]),
            complete=state["complete"] is True,
            closed=state["closed"] is True,
            reason=_text(state.get("reason", ""))[:MAX_REASON_LENGTH],
            nodes=tuple(sorted(nodes, key=_place)),
            restarts=_number(state["charged"]),
        )
    # The parser raises RecursionError for a deeply nested text.
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise UnreadableRendezvous(f"The state of a rendezvous cannot be read: {type(error).__name__}.") from error


def _decompressed(text: str | bytes) -> str | bytes:
    """Return the JSON of a state, never much more than is allowed; nodes of earlier versions did not compress it."""
    if isinstance(text, str) or text[:1] == b"{":
        return text
    return zlib.decompressobj().decompress(text, MAX_STATE_BYTES + 1)


def _node(name: str, node: Any) -> Node:
    """Return a node by its name, `<training job>/<host>#<incarnation>`."""
    training_job_name, _, rest = _bounded(name, MAX_NODE_NAME_LENGTH).partition("/")
    host, _, _ = rest.partition("#")
    values = _mapping(node)
    role, rank = _text(values["role"]), values.get("rank")
    return Node(
        training_job_name=training_job_name,
        host=host,
        role=Role(role) if role in _ROLES else Role.WAITING,
        rank=None if rank is None else _number(rank),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} instead of an object")
    return value


def _bounded(value: _Sized, limit: int) -> _Sized:
    if len(value) > limit:
        raise ValueError(f"{len(value)} bytes or parts where there are at most {limit}")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError("a value is not a count")
    return value


def _rate(value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ValueError("a value is not a positive number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a text")
    return value


def _place(node: Node) -> tuple[bool, int, str, str]:
    return (node.rank is None, node.rank or 0, node.training_job_name, node.host)


_ROLES = frozenset(Role)
