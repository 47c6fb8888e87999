"""What the queue knows of a job's rendezvous: who takes part, and what it asks of them.

The group itself is the workers' own (`worker/`), which share no code with the queue; its state is JSON, so that all can
read it. It must not change a group: the queue asks, and the nodes do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainmaster.domain.errors import UnreadableRendezvous


class Role(StrEnum):
    """What a node is in its group.

    member: of the present world, with a rank. waiting: to be taken into the next one. spare: there is no room for it.
    leaving: it is on its way out.
    """

    MEMBER = "member"
    WAITING = "waiting"
    SPARE = "spare"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One container of a group.

    Attributes:
        training_job_name: the training job that it is of.
        host: its name there, such as `algo-1`.
        rank: in the present world; None outside of it.
        beats: how often it has said that it lives; whoever sees the count stand still for too long takes it for dead.
    """

    training_job_name: str
    host: str
    role: Role
    rank: int | None = None
    beats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RendezvousState:
    """A rendezvous as it stands.

    Attributes:
        round: of the present world, or of the one that is being formed.
        complete: whether that world is formed.
        closed: whether it is over for good.
        reason: why it was closed; "" while it is open.
        nodes: all of them, in the order of their ranks, then by name.
        restarts: restarts that count against the job's budget.
    """

    round: int
    complete: bool
    closed: bool = False
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    restarts: int = 0

    def holds(self, training_job_name: str) -> bool:
        """Whether any node of this training job takes part still."""
        return any(node.training_job_name == training_job_name for node in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What the queue asks of a group.

    Attributes:
        epoch: grows with every change, so that nodes see one.
        least, most: nodes that a world may have, within the legal sizes.
        sizes: the legal sizes, ascending; empty where every number from `least` to `most` is.
        drain: training jobs whose nodes are to checkpoint and leave.
        grace: seconds that they have for it.
    """

    epoch: int
    least: int
    most: int
    sizes: tuple[int, ...] = ()
    drain: tuple[str, ...] = ()
    grace: float = 600.0


def group_of(text: str | bytes) -> RendezvousState:
    """The group that such a state, as the nodes write it, tells of; members that a newer node adds are left alone.

    What the state holds is `docs/reference/rendezvous.md`'s; a node of an unknown role is of this group all the same,
    as one that waits. Nothing in the text is trusted: nodes are other people's containers.

    Raises `UnreadableRendezvous`.
    """
    try:
        state = json.loads(text)
        nodes = (_node(name, node) for name, node in _mapping(state["nodes"]).items())
        return RendezvousState(
            round=int(state["round"]),
            complete=state["complete"] is True,
            closed=state["closed"] is True,
            reason=str(state.get("reason", "")),
            nodes=tuple(sorted(nodes, key=_place)),
            restarts=int(state["charged"]),
        )
    # A deeply nested text makes the parser give up with a RecursionError.
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UnreadableRendezvous(f"The state of a rendezvous cannot be read: {type(error).__name__}.") from error


def _node(name: str, node: Any) -> Node:
    """A node by its name, `<training job>/<host>#<incarnation>`."""
    training_job_name, _, rest = name.partition("/")
    host, _, _ = rest.partition("#")
    values = _mapping(node)
    role, rank = str(values["role"]), values.get("rank")
    return Node(
        training_job_name=training_job_name,
        host=host,
        role=Role(role) if role in _ROLES else Role.WAITING,
        rank=None if rank is None else int(rank),
        beats=int(values.get("beat", 0)),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object belongs")
    return value


def _place(node: Node) -> tuple[bool, int, str, str]:
    return (node.rank is None, node.rank or 0, node.training_job_name, node.host)


_ROLES = frozenset(Role)
