"""What a node learns of a rendezvous: its world, and what is asked of it. Values only."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from trainmaster.worker.rendezvous.state import State

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One life of one container.

    Attributes:
        training_job_name: the training job that it is of.
        host: its name there, such as `algo-1`.
        incarnation: random; another one after the container's program has been started anew.
        addr: where the other nodes reach it; an IP address, never a host's name.
        slots: worker processes that it runs.
    """

    training_job_name: str
    host: str
    incarnation: str
    addr: str
    slots: int = 1

    @property
    def name(self) -> str:
        """Its key in the state: `<training job>/<host>#<incarnation>`."""
        return f"{self.training_job_name}/{self.host}#{self.incarnation}"


def incarnation(rng: random.Random) -> str:
    """A random part for an identity; 40 bits, so that two processes never have the same in practice."""
    return "".join(rng.choice(_LETTERS) for _ in range(8))


def training_job_of(name: str) -> str:
    """The training job of the node of this key."""
    return name.split("/", 1)[0]


def host_of(name: str) -> str:
    """The host of the node of this key."""
    return name.split("/", 1)[-1].split("#", 1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A node of a world.

    Attributes:
        name: its identity (`names.Identity.name`).
        rank, addr, slots: see `state.Node`.
    """

    name: str
    rank: int
    addr: str
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A world, as one of its nodes sees it.

    Attributes:
        round: grows with every world; whoever writes checkpoints under an earlier one must stop.
        rank, size: this node's place among the nodes, from 0.
        nodes: all of them, by rank.
        coordinator: host and port of the first rank's service; None until it is known.
    """

    round: int
    rank: int
    size: int
    nodes: tuple[Peer, ...]
    coordinator: tuple[str, int] | None = None

    def at(self, host: str, port: int) -> World:
        """The same world with its coordinator."""
        return replace(self, coordinator=(host, port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a node between two steps of its work.

    Attributes:
        rejoin: this world is over or not its own any more: stop the workers, and join again.
        resize: the reason for that is a resize, so that there is time to checkpoint first.
        drain: the node is to checkpoint and leave.
        grace: seconds for either.
        closed: why the rendezvous is over for good; None while it is open. Work that ends by itself may go on.
        waiting: nodes that wait to be in the next world.
    """

    rejoin: bool = False
    resize: bool = False
    drain: bool = False
    grace: float = 0.0
    closed: str | None = None
    waiting: int = 0


def world_of(state: State, name: str) -> World | None:
    """The present world as this node sees it; None where there is none, or not with it."""
    members = state.members() if state.complete else {}
    peers = tuple(
        Peer(name=key, rank=node.rank or 0, addr=node.addr, slots=node.slots) for key, node in members.items()
    )
    mine = next((peer for peer in peers if peer.name == name), None)
    return None if mine is None else World(round=state.round, rank=mine.rank, size=len(peers), nodes=peers)
