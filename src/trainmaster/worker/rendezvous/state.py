"""The state that all nodes of a rendezvous share, and its JSON (docs/reference/rendezvous.md, field by field).

Values only. It must not change by itself (`actions` has every change), and nothing that is read here is ever executed:
what is not exactly a state of this version is refused.

A complete round never changes: its members are the nodes of role `member`, with ranks 0 to n-1. Whatever changes who
takes part opens the next round first, until the end. While a round is being formed, `member` are nodes of the world
before that have not come yet, `waiting` and `spare` those that have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol

from trainmaster.worker.rendezvous.errors import Corrupt

VERSION = 1
Token = Any
"""Opaque; never None nor falsy, and another one after every write."""
DONE = "done"
"""Why a rendezvous is closed whose job has come to its normal end."""
RECORDS_KEPT = 50
"""How many rounds the record of restarts goes back; it is written with every beat, so it must stay small."""


class Role(StrEnum):
    """What a node is: of the present world; to be taken into the next one; without room; on its way out."""

    MEMBER = "member"
    WAITING = "waiting"
    SPARE = "spare"
    LEAVING = "leaving"


class Why(StrEnum):
    """Why a round is formed. Those that are resizes are never charged to the restart budget."""

    START = "start"
    DRAIN = "drain"
    SHRINK = "shrink"
    NEWCOMER = "newcomer"
    GROW = "grow"
    FAILURE = "failure"
    LOSS = "loss"
    DEPARTURE = "departure"

    @property
    def resize(self) -> bool:
        """Whether somebody wanted it."""
        return self in _RESIZES

    @property
    def trouble(self) -> bool:
        """Whether it counts against the restart budget, where nothing else was the reason."""
        return self in _TROUBLES


_RESIZES = frozenset({Why.DRAIN, Why.SHRINK, Why.NEWCOMER, Why.GROW})
_TROUBLES = frozenset({Why.FAILURE, Why.LOSS, Why.DEPARTURE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One container.

    Attributes:
        addr: where the others reach it.
        slots: worker processes that it runs.
        rank: its place in the present world; while a round is formed, in the world before; None outside of both.
        beat: how often it has said that it lives.
        since: which arrival it was, counted over the life of the rendezvous.
    """

    addr: str
    slots: int
    role: Role
    rank: int | None
    beat: int
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the first rank of a round's world listens."""

    round: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A world that was formed: its round, why, whether that counts as a restart, and when (epoch seconds)."""

    round: int
    why: Why
    charged: bool
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A rendezvous.

    Attributes:
        round: of the present world, or of the one that is being formed.
        complete: whether that world is formed.
        closed, reason: whether it is over for good, and why.
        size: nodes of the newest world that was formed; 0 before the first.
        why: all reasons that there have been for this round.
        arrivals: nodes that have ever come.
        nodes: by `names.Identity.name`.
        endpoint: where the first rank listens, once it has said so.
        restarts: the newest worlds that were formed, oldest first.
        charged: rounds that count as restarts, of all that there ever were.
    """

    round: int = 1
    complete: bool = False
    closed: bool = False
    reason: str = ""
    size: int = 0
    why: tuple[Why, ...] = (Why.START,)
    arrivals: int = 0
    nodes: Mapping[str, Node] = field(default_factory=dict)
    endpoint: Endpoint | None = None
    restarts: tuple[Record, ...] = ()
    charged: int = 0

    @property
    def newest_world(self) -> int:
        """Round of the newest world that was formed; one of an earlier round must write nothing any more."""
        return self.round if self.complete else self.round - 1

    def members(self) -> dict[str, Node]:
        """Nodes of the present world, or of the one before that have not come yet, in order of rank."""
        found = [(name, node) for name, node in self.nodes.items() if node.role is Role.MEMBER]
        return dict(sorted(found, key=lambda item: (item[1].rank is None, item[1].rank or 0, item[0])))


class StateStore(Protocol):
    """One run's state, and what the scheduler asks of it.

    Both methods raise `Unreachable` where the outcome is unknown or nobody answered, and `Corrupt` where the stored
    row is none of ours. They may block for a few seconds at most; retries are the engine's.
    """

    @property
    def control(self) -> str | None:
        """What the scheduler asks (JSON of `Control`), as it stood at the last read or lost write; None for nothing.

        It is stored beside the state and read with it, in one read. It may be there before any state is.
        """
        ...

    def get_state(self) -> tuple[bytes, Token] | None:
        """The state and its token, read consistently; None where none is stored."""
        ...

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Store the state if `token` is that of the stored one, or if it is None and nothing is stored.

        Returns what is stored now, its token, and whether that is what this call wrote; None where nothing is stored
        although a token was given.
        """
        ...


def encode(state: State) -> bytes:
    """The state as JSON."""
    document = {
        **_fields(state),
        "nodes": {name: _fields(node) for name, node in state.nodes.items()},
        "endpoint": None if state.endpoint is None else _fields(state.endpoint),
        "restarts": [_fields(record) for record in state.restarts],
    }
    return json.dumps({"v": VERSION, **document}, separators=(",", ":")).encode()


def decode(data: bytes) -> State:
    """The state of these bytes.

    Raises `Corrupt` for anything that `encode` could not have made.
    """
    try:
        raw = json.loads(data)
        if type(raw) is not dict or raw.pop("v", None) != VERSION:
            raise Corrupt(f"no rendezvous state of version {VERSION}")
        if set(raw) != set(_NAMES[State]):
            raise Corrupt(f"a rendezvous state of version {VERSION} has other members")
        return _checked(_state(raw))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as cause:
        raise Corrupt("the rendezvous state cannot be read") from cause


def _fields(value: State | Node | Endpoint | Record) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _NAMES[type(value)]}


def _state(raw: dict[str, Any]) -> State:
    values = {
        **raw,
        "why": tuple(Why(word) for word in raw["why"]),
        "nodes": {name: _node(node) for name, node in raw["nodes"].items()},
        "endpoint": None if raw["endpoint"] is None else Endpoint(**raw["endpoint"]),
        "restarts": tuple(Record(**{**record, "why": Why(record["why"])}) for record in raw["restarts"]),
    }
    return State(**values)


def _node(raw: dict[str, Any]) -> Node:
    return Node(**{**raw, "role": Role(raw["role"])})


def _checked(state: State) -> State:
    whole = [state.round, state.size, state.arrivals, state.charged]
    whole += [number for node in state.nodes.values() for number in (node.slots, node.beat, node.since)]
    whole += [node.rank for node in state.nodes.values() if node.rank is not None]
    whole += [number for record in state.restarts for number in (record.round, record.at)]
    texts = [state.reason, *(node.addr for node in state.nodes.values())]
    truths = [state.complete, state.closed, *(record.charged for record in state.restarts)]
    if state.endpoint is not None:
        whole += [state.endpoint.round, state.endpoint.port]
        texts.append(state.endpoint.host)
    right = all(type(number) is int and number >= 0 for number in whole)
    right = right and all(type(text) is str for text in texts) and all(type(truth) is bool for truth in truths)
    works = state.complete and not state.closed  # after the end nodes go one by one, and nothing begins anew
    if not right or (works and not _dense(state)):
        raise Corrupt("the rendezvous state has values that no node would have written")
    return state


def _dense(state: State) -> bool:
    """Whether the members of a complete round have the ranks 0 to n-1."""
    return [node.rank for node in state.members().values()] == list(range(state.size))


_NAMES = {kind: tuple(item.name for item in fields(kind)) for kind in (State, Node, Endpoint, Record)}
