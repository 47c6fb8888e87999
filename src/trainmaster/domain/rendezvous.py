"""What the queue knows of a job's rendezvous: who takes part, and what it asks of them.

The group itself is the workers' own (`worker/`), which share no code with the queue; its state is JSON, so that all can
read it. It must not change a group: the queue asks, and the nodes do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
class Group:
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
