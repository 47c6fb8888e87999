"""State that all nodes of a rendezvous share, its JSON (docs/reference/rendezvous.md), and the protocol of its store.

`actions` contains every change of the state. `decode` rejects any value that is not a state of this version, and
executes none.

A complete round never changes: its members are the nodes of role `member`, with ranks 0 to n-1. Until the rendezvous is
closed, every change of members first opens the next round. While a round is forming, `member` are nodes of the previous
world that have not arrived yet; `waiting` and `spare` are those that have.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from trainmaster.domain.compat import StrEnum
from trainmaster.worker.rendezvous.errors import Corrupt

VERSION = 2
"""Version 1 had the heartbeats of all nodes. Nodes of different versions refuse to meet, with an error."""
Token = Any
"""Opaque revision of the stored state; never falsy, and different after every write."""
DONE = "done"
"""Reason for closing a rendezvous after the job's normal end."""
MAX_STATE_BYTES = 300_000
"""Bytes of a state before compression, as the queue reads it too; a node takes about 130, and 20 compressed."""
MAX_REASON_LENGTH = 1024
"""Characters of the reason for closing a rendezvous; SageMaker shows as many of a failure."""
MAX_RECORDS = 50
"""Rounds in the record of restarts. Every change writes the record, so it must stay small."""


class Role(StrEnum):
    """Role of a node.

    MEMBER: in the current world. WAITING: the next world includes it. SPARE: a legal world has no place for it.
    LEAVING: it was asked to leave, and saves its checkpoint.
    """

    MEMBER = "member"
    WAITING = "waiting"
    SPARE = "spare"
    LEAVING = "leaving"


class RoundReason(StrEnum):
    """Reason for a new round. A round with a resize among its reasons is never charged to the restart budget."""

    START = "start"
    DRAIN = "drain"
    SHRINK = "shrink"
    NEWCOMER = "newcomer"
    GROW = "grow"
    FAILURE = "failure"
    LOSS = "loss"
    DEPARTURE = "departure"

    @property
    def is_resize(self) -> bool:
        """True if the round changes the world on purpose."""
        return self in _RESIZE_REASONS

    @property
    def is_failure(self) -> bool:
        """True if a round with no resize among its reasons counts against the restart budget."""
        return self in _FAILURE_REASONS


_RESIZE_REASONS = frozenset({RoundReason.DRAIN, RoundReason.SHRINK, RoundReason.NEWCOMER, RoundReason.GROW})
_FAILURE_REASONS = frozenset({RoundReason.FAILURE, RoundReason.LOSS, RoundReason.DEPARTURE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One container.

    Attributes:
        addr: address at which other nodes reach it.
        slots: worker processes that it runs.
        rank: in the current world; while a round is forming, in the previous one; None if it is in neither.
        since: sequence number of its arrival, over the life of the rendezvous.
    """

    addr: str
    slots: int
    role: Role
    rank: int | None
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address on which the first rank of a round's world listens."""

    round: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """A world that formed: round, main reason, whether it counts as a restart, and time in seconds since the epoch."""

    round: int
    why: RoundReason
    charged: bool
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A rendezvous. The names of the attributes are those of the JSON.

    Attributes:
        round: of the current world, or of the world that is forming.
        complete: whether that world has formed.
        closed, reason: whether the rendezvous has ended for good, and why.
        size: nodes of the newest world that formed; 0 before the first.
        why: all reasons for this round, in order.
        arrivals: number of nodes that have ever arrived.
        nodes: by `world.Identity.name`.
        restarts: the newest worlds that formed, oldest first.
        charged: total number of rounds that count as restarts.
        shards: partitions in which followers announce themselves (`watching.presence`); 0 while all nodes watch.
    """

    round: int = 1
    complete: bool = False
    closed: bool = False
    reason: str = ""
    size: int = 0
    why: tuple[RoundReason, ...] = (RoundReason.START,)
    arrivals: int = 0
    nodes: Mapping[str, Node] = field(default_factory=dict)
    restarts: tuple[RoundRecord, ...] = ()
    charged: int = 0
    shards: int = 0

    @property
    def latest_round(self) -> int:
        """Round of the newest world that formed. Processes of an earlier round must not write checkpoints."""
        return self.round if self.complete else self.round - 1

    def members(self) -> dict[str, Node]:
        """Return the members of the current world, or those of the previous one that have not arrived yet, by rank."""
        found = [(name, node) for name, node in self.nodes.items() if node.role is Role.MEMBER]
        return dict(sorted(found, key=lambda item: (item[1].rank is None, item[1].rank or 0, item[0])))


class StateStore(Protocol):
    """Store of one run's state and of the scheduler's control; changed by compare-and-set.

    `get_state` and `set_state` follow the contract of torch's `RendezvousBackend` exactly, so one store serves both
    engines. A store does not interpret the state. Both methods raise `Unreachable` if the outcome is unknown, there is
    no response, or the stored row was not written by nodes of the run. They block for a few seconds at most; the engine
    retries.
    """

    @property
    def control(self) -> str | None:
        """Scheduler's newest control (JSON of `Control`) of the last read or failed write; None before one.

        It is stored beside the state, read with it in one read, and may exist before any state.
        """
        ...

    def get_state(self) -> tuple[bytes, Token] | None:
        """Return the state and its token, read consistently, or None if none is stored."""
        ...

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Store the state if `token` is that of the stored one, or if it is None and nothing is stored.

        Returns:
            The stored state, its token, and whether this call wrote it; None if nothing is stored although a token was
            given.
        """
        ...


class GroupStore(StateStore, Protocol):
    """Store of a state, and of the announcements of single nodes, which have rows of their own.

    Announcements need no compare-and-set, because each row has one writer. All methods raise `Unreachable`.
    """

    @property
    def endpoint(self) -> str | None:
        """The endpoint that `publish` has stored, as of the last read of the watchers; None before it."""
        ...

    def get_state(self, *, consistent: bool = True) -> tuple[bytes, Token] | None:
        """Return the state; see `StateStore`. If not `consistent`, it may be a second old, for half of the price."""
        ...

    def announcements(self, shard: int) -> Mapping[str, str]:
        """Return the announcements in a partition by the names of their nodes, read consistently."""
        ...

    def announce(self, shard: int, name: str, text: str) -> None:
        """Store a node's announcement."""
        ...

    def withdraw(self, shard: int, name: str) -> None:
        """Delete a node's announcement."""
        ...

    def publish(self, endpoint: str, round_: int) -> None:
        """Store the address of the first rank of a round, unless that of a later one is stored."""
        ...


def encode(state: State) -> bytes:
    """Return the state as compressed JSON: nodes write and read it whole."""
    document = {
        **_to_json(state),
        "nodes": {name: _to_json(node) for name, node in state.nodes.items()},
        "restarts": [_to_json(record) for record in state.restarts],
    }
    return zlib.compress(json.dumps({"v": VERSION, **document}, separators=(",", ":")).encode())


def decode(data: bytes) -> State:
    """Parse a state.

    Raises:
        Corrupt: `encode` could not have produced these bytes.
    """
    try:
        raw = json.loads(_decompress(data))
        version = raw.pop("v", None) if type(raw) is dict else None
        if version != VERSION or set(raw) != set(_FIELD_NAMES[State]):
            written = f"not a rendezvous state of version {VERSION}, but {version!r}, or one with other members"
            raise Corrupt(f"{written}: all nodes of a job need the same version of trainmaster-worker in their image")
        return _validate(_state_from_json(raw))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as cause:
        raise Corrupt("the rendezvous state cannot be read") from cause


def _decompress(data: bytes) -> bytes:
    """Return the JSON; never more than `MAX_STATE_BYTES`, however little the compressed bytes are."""
    if data[:1] == b"{":  # version 1
        return data[:MAX_STATE_BYTES]
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(data, MAX_STATE_BYTES)
    except zlib.error as cause:
        raise Corrupt("the rendezvous state cannot be read") from cause
    if decompressor.unconsumed_tail or not decompressor.eof:
        raise Corrupt(f"a rendezvous state has at most {MAX_STATE_BYTES} bytes")
    return text


def _to_json(value: State | Node | RoundRecord) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _FIELD_NAMES[type(value)]}


def _state_from_json(raw: dict[str, Any]) -> State:
    values = {
        **raw,
        "why": tuple(RoundReason(word) for word in raw["why"]),
        "nodes": {name: _node_from_json(node) for name, node in raw["nodes"].items()},
        "restarts": tuple(RoundRecord(**{**record, "why": RoundReason(record["why"])}) for record in raw["restarts"]),
    }
    return State(**values)


def _node_from_json(raw: dict[str, Any]) -> Node:
    return Node(**{**raw, "role": Role(raw["role"])})


def _validate(state: State) -> State:
    integers = [state.round, state.size, state.arrivals, state.charged, state.shards]
    integers += [number for node in state.nodes.values() for number in (node.slots, node.since)]
    integers += [node.rank for node in state.nodes.values() if node.rank is not None]
    integers += [number for record in state.restarts for number in (record.round, record.at)]
    texts = [state.reason, *(node.addr for node in state.nodes.values())]
    booleans = [state.complete, state.closed, *(record.charged for record in state.restarts)]
    valid = all(type(number) is int and number >= 0 for number in integers)
    valid = valid and all(type(text) is str for text in texts) and all(type(value) is bool for value in booleans)
    is_open = state.complete and not state.closed  # nodes leave a closed rendezvous one by one, and no round opens
    if not valid or (is_open and not _has_dense_ranks(state)):
        raise Corrupt("the rendezvous state has values that no node would have written")
    return state


def _has_dense_ranks(state: State) -> bool:
    """Return whether the members of a complete round have the ranks 0 to n-1."""
    return [node.rank for node in state.members().values()] == list(range(state.size))


_FIELD_NAMES = {kind: tuple(item.name for item in fields(kind)) for kind in (State, Node, RoundRecord)}
