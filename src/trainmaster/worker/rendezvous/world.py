"""Identities of nodes, and a node's view of the rendezvous: its world, and the status that it acts on."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from trainmaster.worker.rendezvous.state import State

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One life of one container.

    Every training job calls its first instance `algo-1`, addresses are reused, and process ids repeat in containers. An
    identity therefore contains the training job's name, and a random part that is new for each process.

    Attributes:
        training_job_name: the training job of the container.
        host: its name within the training job, such as `algo-1`.
        incarnation: random part; changes when the container's program restarts.
        addr: IP address, not a host name, at which other nodes reach it.
        slots: worker processes that it runs.
    """

    training_job_name: str
    host: str
    incarnation: str
    addr: str
    slots: int = 1

    @property
    def name(self) -> str:
        """Key in the state: `<training job>/<host>#<incarnation>`."""
        return f"{self.training_job_name}/{self.host}#{self.incarnation}"


def new_incarnation(rng: random.Random) -> str:
    """Return a random part for an identity: 40 bits, so that two processes do not have the same in practice."""
    return "".join(rng.choice(_ALPHABET) for _ in range(8))


def training_job_name_of(name: str) -> str:
    """Return the training job in the name of a node."""
    return name.split("/", 1)[0]


def host_of(name: str) -> str:
    """Return the host in the name of a node."""
    return name.split("/", 1)[-1].split("#", 1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A node of a world.

    Attributes:
        name: see `Identity.name`.
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
        round: increases with every world. Processes of an earlier round must not write checkpoints.
        rank, size: this node's rank, from 0, and the number of nodes.
        nodes: all nodes, by rank.
        coordinator: host and port of the first rank's service; None until known.
    """

    round: int
    rank: int
    size: int
    nodes: tuple[Peer, ...]
    coordinator: tuple[str, int] | None = None

    def with_coordinator(self, host: str, port: int) -> World:
        """Return the same world with its coordinator."""
        return replace(self, coordinator=(host, port))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldStatus:
    """State of a node's world, and requests to the node.

    Attributes:
        rejoin: the world has ended, or continues without this node: stop the workers, and join again.
        resize: the reason is a resize, so there is time to save a checkpoint first.
        drain: the node must save a checkpoint and leave.
        grace: seconds for either.
        closed: why the rendezvous was closed; None while it is open. Work that ends by itself may continue.
        waiting: nodes that wait for the next world.
    """

    rejoin: bool = False
    resize: bool = False
    drain: bool = False
    grace: float = 0.0
    closed: str | None = None
    waiting: int = 0


def world_of(state: State, name: str) -> World | None:
    """Return the current world as the named node sees it, or None if there is none or the node is not in it."""
    members = state.members() if state.complete else {}
    peers = tuple(
        Peer(name=key, rank=node.rank or 0, addr=node.addr, slots=node.slots) for key, node in members.items()
    )
    mine = next((peer for peer in peers if peer.name == name), None)
    return None if mine is None else World(round=state.round, rank=mine.rank, size=len(peers), nodes=peers)
