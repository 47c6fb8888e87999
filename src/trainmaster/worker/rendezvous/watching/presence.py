"""Announcements of each node in a row of its own: that it lives, what it asks for and, if it watches, what it has seen.

A few nodes watch: they read all announcements, and change the state for the whole group. All other nodes follow: they
read the rows of the watchers only. `watchers_of` is the same function of the state on every node
(docs/explanation/rendezvous.md#liveness).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trainmaster.domain.compat import StrEnum
from trainmaster.worker.rendezvous.errors import Corrupt
from trainmaster.worker.rendezvous.state import Endpoint, Role, RoundReason, State
from trainmaster.worker.rendezvous.world import Identity, host_of, training_job_name_of

WATCHERS = 5
"""Nodes that watch. In a group that never had more, every node watches, and acts at once by itself."""
MAX_ANNOUNCEMENT_BYTES = 4_000
WATCHERS_SHARD = 0
"""Partition of the announcements of watchers, which all nodes read; the others are numbered from 1."""
_NODES_IN_SHARD = 256
"""Followers in a partition: while they join, each writes twice a second, and a partition takes 1,000 units a second."""


class Want(StrEnum):
    """A node's request to the watchers.

    WORK: nothing. JOIN: a world later than its last round. LEAVE: its removal.
    """

    WORK = "work"
    JOIN = "join"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The state as a watcher has last seen it, for followers. It is a hint: they act on the state itself.

    Attributes:
        round, complete, closed, shards: of the state.
        revision: of its row.
        resize: whether the reasons for the round include a resize.
        nodes: number of nodes.
        epoch: of the scheduler's control.
        watchers: their tags.
    """

    round: int
    revision: int
    complete: bool
    closed: bool
    resize: bool
    nodes: int
    shards: int
    epoch: int
    watchers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A node's announcement.

    Attributes:
        name: see `world.Identity.name`.
        addr, slots: see `state.Node`.
        beat: increases with every announcement; a node whose count does not change any more is dead.
        want: what it asks for.
        after: round of the world in which it works, or of its last world.
        closing: reason for which it asks to close the rendezvous; None if it does not.
        sees: what it has seen, if it watches.
    """

    name: str
    addr: str
    slots: int
    beat: int
    want: Want
    after: int
    closing: str | None = None
    sees: Summary | None = None


@lru_cache(maxsize=8192)
def tag(name: str) -> str:
    """Return a short name of a node: ten hexadecimal digits of a hash."""
    return hashlib.blake2s(name.encode(), digest_size=5).hexdigest()


def shard_of(name: str, shards: int) -> int:
    """Return the partition, from 1 to `shards`, in which a follower announces itself."""
    return 1 + int(tag(name), 16) % shards


def shards_for(nodes: int, max_nodes: int) -> int:
    """Return the partitions that the followers of a group need; 0 if all of its nodes watch."""
    return 0 if nodes <= WATCHERS else -(-max(nodes, min(max_nodes, 4096)) // _NODES_IN_SHARD)


def watchers_of(state: State, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the nodes that watch, in the order in which they act.

    They are the oldest of different training jobs, because the nodes of one training job can end together; then the
    oldest of the others.

    Args:
        state: the group.
        without: tags of the nodes that are dead.
    """
    alive = [name for name in state.nodes if tag(name) not in without]
    alive.sort(key=lambda name: (state.nodes[name].role is Role.LEAVING, state.nodes[name].since, name))
    first_of_job = {training_job_name_of(name): name for name in reversed(alive)}
    firsts = set(first_of_job.values())
    return tuple(sorted(alive, key=lambda name: name not in firsts)[:WATCHERS])


def summary_of(state: State, revision: int, epoch: int) -> Summary:
    """Return what a watcher tells the followers."""
    return Summary(
        round=state.round,
        revision=revision,
        complete=state.complete,
        closed=state.closed,
        resize=any(reason.is_resize for reason in state.why),
        nodes=len(state.nodes),
        shards=state.shards,
        epoch=epoch,
        watchers=tuple(tag(name) for name in watchers_of(state)),
    )


def newest_summary(summaries: Iterable[Summary | None]) -> Summary | None:
    """Return the newest summary; rounds never go back, even if the row is deleted and revisions start again."""
    seen = [each for each in summaries if each is not None]
    return max(seen, key=lambda each: (each.round, each.revision), default=None)


def projected(state: State, summary: Summary) -> State:
    """Return the last state that a follower has read with what the watchers have seen since.

    A world that the follower has not read yet counts as forming.
    """
    is_current = (state.round, state.complete) == (summary.round, True)
    if is_current and summary.complete and state.closed == summary.closed:
        return state
    same_round = state.round == summary.round
    why = state.why if same_round else (RoundReason.NEWCOMER if summary.resize else RoundReason.FAILURE,)
    return State(
        round=summary.round,
        complete=False,
        closed=state.closed,
        reason=state.reason,
        size=state.size,
        why=why,
        arrivals=state.arrivals,
        nodes=state.nodes,
        restarts=state.restarts,
        charged=state.charged,
        shards=summary.shards,
    )


def identity_of(presence: Presence) -> Identity:
    """Return the identity of the node that has announced itself."""
    name = presence.name
    return Identity(
        training_job_name=training_job_name_of(name),
        host=host_of(name),
        incarnation=name.rsplit("#", 1)[-1],
        addr=presence.addr,
        slots=presence.slots,
    )


def encode_presence(presence: Presence) -> str:
    """Return the announcement as JSON; the name is the key of its row."""
    sees = presence.sees
    values: dict[str, Any] = {
        "addr": presence.addr,
        "slots": presence.slots,
        "beat": presence.beat,
        "want": presence.want,
        "after": presence.after,
    }
    if presence.closing is not None:
        values["closing"] = presence.closing
    if sees is not None:
        values["sees"] = {name: getattr(sees, name) for name in Summary.__slots__}
    return json.dumps(values, separators=(",", ":"))


@lru_cache(maxsize=4096)  # a watcher reads the rows of a large group more often than they change
def decode_presence(name: str, text: str) -> Presence:
    """Parse an announcement.

    Raises:
        Corrupt: `encode_presence` could not have produced this text.
    """
    try:
        if len(text) > MAX_ANNOUNCEMENT_BYTES:
            raise Corrupt("an announcement of a node is too long")
        values = json.loads(text)
        sees = values.pop("sees", None)
        summary = None if sees is None else Summary(**{**sees, "watchers": tuple(sees["watchers"])})
        presence = Presence(**{**values, "name": name, "want": Want(values["want"]), "sees": summary})
        numbers = [presence.slots, presence.beat, presence.after]
        if summary is not None:
            numbers += [summary.round, summary.revision, summary.nodes, summary.shards, summary.epoch]
        if not all(type(number) is int and number >= 0 for number in numbers) or type(presence.addr) is not str:
            raise Corrupt("an announcement of a node has values that no node would have written")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as cause:
        raise Corrupt("an announcement of a node cannot be read") from cause
    return presence


def encode_endpoint(endpoint: Endpoint) -> str:
    """Return the address on which the first rank listens as JSON."""
    values = {"round": endpoint.round, "host": endpoint.host, "port": endpoint.port}
    return json.dumps(values, separators=(",", ":"))


def decode_endpoint(text: str) -> Endpoint:
    """Parse the address on which the first rank listens.

    Raises:
        Corrupt: `encode_endpoint` could not have produced this text.
    """
    try:
        endpoint = Endpoint(**json.loads(text))
    except (ValueError, TypeError, RecursionError) as cause:
        raise Corrupt("the address of the first rank cannot be read") from cause
    if type(endpoint.round) is not int or type(endpoint.port) is not int or type(endpoint.host) is not str:
        raise Corrupt("the address of the first rank has values that no node would have written")
    return endpoint
