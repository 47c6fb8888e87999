"""The closed set of actions on a rendezvous, and the pure function of each: from a view and a payload to a new state.

Names are those of torch's engine where the meaning is the same. The executor writes the result. The functions are
deterministic and read no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto

from trainmaster.worker.rendezvous.state import (
    MAX_REASON_LENGTH,
    MAX_RECORDS,
    Endpoint,
    Node,
    Role,
    RoundReason,
    RoundRecord,
    State,
)
from trainmaster.worker.rendezvous.view import View
from trainmaster.worker.rendezvous.watching.presence import Presence, Want, identity_of, shards_for


class Action(Enum):
    """A node's next action. Those in `CHANGES` change the state; the others wait, finish, or are errors."""

    ADD_TO_PARTICIPANTS = auto()
    ADD_TO_WAIT_LIST = auto()
    ADD_TO_SPARES = auto()
    REMOVE_FROM_PARTICIPANTS = auto()
    REMOVE_FROM_WAIT_LIST = auto()
    MARK_LEAVING = auto()
    EVICT = auto()
    ABSORB = auto()
    OPEN_ROUND = auto()
    MARK_RENDEZVOUS_COMPLETE = auto()
    MARK_RENDEZVOUS_CLOSED = auto()
    PUBLISH_ENDPOINT = auto()
    SYNC = auto()
    ERROR_CLOSED = auto()
    ERROR_TIMEOUT = auto()
    ERROR_DRAINED = auto()
    ERROR_LOST = auto()
    FINISH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Data of an action.

    Attributes:
        reason: why the rendezvous is closed.
        endpoint: address on which the first rank listens.
    """

    reason: str = ""
    endpoint: Endpoint | None = None


_NO_PAYLOAD = Payload()


def apply(action: Action, view: View, payload: Payload) -> State:
    """Return the state after an action of `CHANGES`."""
    state = CHANGES[action](view, payload)
    return replace(state, shards=max(state.shards, shards_for(len(state.nodes), view.control.max_nodes)))


def _arrive(view: View, role: Role) -> State:
    """Add this node in a role. A node of the previous world keeps its rank, so that it gets the same one again."""
    state, node = view.state, view.node
    if node is None:
        arrival = state.arrivals + 1
        node = Node(addr=view.identity.addr, slots=view.identity.slots, role=role, rank=None, since=arrival)
        state = replace(state, arrivals=arrival)
    return _with_nodes(state, {view.identity.name: replace(node, role=role)})


def _add_to_participants(view: View, _: Payload) -> State:
    """Add this node to the round that is forming, which must be above every round that the node has seen complete."""
    is_new = view.state.round >= view.highest_round
    return replace(_arrive(view, Role.WAITING), round=view.state.round if is_new else view.highest_round + 1)


def _remove_self(view: View, _: Payload) -> State:
    """Remove this node; if that ends a world, open the next round in the same write."""
    rank = view.state.nodes[view.identity.name].rank
    state = _without_nodes(view.state, [view.identity.name])
    if rank is None or view.state.closed:
        return state
    reason = RoundReason.DRAIN if view.is_drained else view.due_resize or RoundReason.DEPARTURE
    if state.complete:
        return _open_next_round(state, view, (reason,))
    return replace(state, why=_add_reason(state.why, reason))


def _mark_leaving(view: View, _: Payload) -> State:
    """Mark this node as leaving; the world continues without it."""
    name = view.identity.name
    node = view.state.nodes[name]
    state = _with_nodes(view.state, {name: replace(node, role=Role.LEAVING, rank=None)})
    ends_world = node.role is Role.MEMBER and state.complete
    return _open_next_round(state, view, (RoundReason.DRAIN,)) if ends_world else state


def _evict(view: View, _: Payload) -> State:
    """Remove the dead nodes. The loss of a member that had no request to leave is a reason for the round."""
    state = _without_nodes(view.state, view.dead_nodes)
    ranked = [name for name in view.dead_nodes if name in view.state.nodes and view.state.nodes[name].rank is not None]
    if not ranked:
        return state
    reason = RoundReason.DRAIN if all(view.is_leaving(name) for name in ranked) else RoundReason.LOSS
    if state.complete:
        return _open_next_round(state, view, _add_reason((reason,), view.due_resize))
    return replace(state, why=_add_reason(state.why, reason))


def _absorb(view: View, _: Payload) -> State:
    """Do what followers ask for, all in one change, as each would do it for itself."""
    state, role = view.state, _role_of_newcomers(view)
    for presence in view.requests:
        state = _absorb_one(replace(view, state=state, identity=identity_of(presence)), presence, role)
    return state


def _role_of_newcomers(view: View) -> Role:
    """Return the role beside a working world of those that ask to join it now."""
    size = view.control.largest_size(len(view.candidates) + len(view.requests))
    return Role.WAITING if size > view.state.size else Role.SPARE


def _absorb_one(view: View, presence: Presence, role: Role) -> State:
    node, state = view.node, view.state
    if presence.closing is not None:
        return _close(view, Payload(reason=presence.closing))
    if presence.want is Want.LEAVE:
        return state if node is None else _remove_self(view, _NO_PAYLOAD)
    if state.complete and node is not None and node.role is Role.MEMBER:
        # Its workers have failed in this world.
        view = replace(view, state=_open_next_round(state, view, (view.due_resize or RoundReason.FAILURE,)))
    if view.state.complete:
        return _arrive(view, role)
    return _add_to_participants(replace(view, highest_round=max(view.highest_round, presence.after)), _NO_PAYLOAD)


def _open_round(view: View, _: Payload) -> State:
    """Open the next round: for the due resize, or because this node's workers have failed."""
    return _open_next_round(view.state, view, (view.due_resize or RoundReason.FAILURE,))


def _open_next_round(state: State, view: View, reasons: tuple[RoundReason, ...]) -> State:
    return replace(state, round=max(state.round, view.highest_round) + 1, complete=False, why=reasons)


def _complete(view: View, _: Payload) -> State:
    """Form the world of this round: nodes of the previous world first, by rank, then the others by arrival."""
    state, nodes = view.state, view.state.nodes
    order = sorted(
        view.candidates, key=lambda name: (nodes[name].rank is None, nodes[name].rank or 0, nodes[name].since)
    )
    chosen = order[: view.possible_size]
    ranks = _assign_ranks([nodes[name].rank for name in chosen])
    changed = {
        name: replace(nodes[name], role=Role.MEMBER, rank=rank) for name, rank in zip(chosen, ranks, strict=True)
    }
    changed |= {name: replace(nodes[name], role=Role.SPARE, rank=None) for name in order[view.possible_size :]}
    changed |= {name: replace(nodes[name], role=Role.LEAVING, rank=None) for name in nodes if view.is_leaving(name)}
    # A live straggler joins again by itself, once it sees that the world continues without it.
    gone = [name for name in nodes if name in view.dead_nodes or name in view.stragglers]
    formed = replace(state, complete=True, size=len(chosen))
    return _record_round(_without_nodes(_with_nodes(formed, changed), gone), view.epoch)


def _assign_ranks(before: list[int | None]) -> list[int]:
    """Return ranks 0 to n-1. A node that stays keeps its rank unless that leaves a hole; the order never changes.

    New nodes fill the holes, then the end.

    Args:
        before: ranks in the previous world, ascending, then None for each new node.
    """
    size, stays = len(before), [rank for rank in before if rank is not None]
    kept = [min(rank, size - len(stays) + index) for index, rank in enumerate(stays)]
    return kept + [rank for rank in range(size) if rank not in set(kept)]


def _record_round(state: State, epoch: float) -> State:
    """Record the round. It counts as a restart if its reasons include a failure and no resize."""
    resizes = [reason for reason in state.why if reason.is_resize]
    charged = not resizes and any(reason.is_failure for reason in state.why)
    reason = (resizes or sorted(state.why, key=lambda reason: reason is RoundReason.FAILURE))[0]
    record = RoundRecord(round=state.round, why=reason, charged=charged, at=max(int(epoch), 0))
    return replace(state, restarts=(*_trim_records(state.restarts), record), charged=state.charged + charged)


def _trim_records(records: tuple[RoundRecord, ...]) -> tuple[RoundRecord, ...]:
    """Return the records to keep when one is added: resizes are dropped first, since the budget counts restarts."""
    if len(records) < MAX_RECORDS:
        return records
    oldest = next((index for index, record in enumerate(records) if not record.charged), 0)
    return _trim_records((*records[:oldest], *records[oldest + 1 :]))


def _close(view: View, payload: Payload) -> State:
    return replace(view.state, closed=True, reason=payload.reason[:MAX_REASON_LENGTH])


def _with_nodes(state: State, changed: dict[str, Node]) -> State:
    return replace(state, nodes={**state.nodes, **changed})


def _without_nodes(state: State, names: Iterable[str]) -> State:
    gone = set(names)
    return replace(state, nodes={name: node for name, node in state.nodes.items() if name not in gone})


def _add_reason(reasons: tuple[RoundReason, ...], reason: RoundReason | None) -> tuple[RoundReason, ...]:
    return reasons if reason is None or reason in reasons else (*reasons, reason)


CHANGES: dict[Action, Callable[[View, Payload], State]] = {
    Action.ADD_TO_PARTICIPANTS: _add_to_participants,
    Action.ADD_TO_WAIT_LIST: lambda view, _: _arrive(view, Role.WAITING),
    Action.ADD_TO_SPARES: lambda view, _: _arrive(view, Role.SPARE),
    Action.REMOVE_FROM_PARTICIPANTS: _remove_self,
    Action.REMOVE_FROM_WAIT_LIST: _remove_self,
    Action.MARK_LEAVING: _mark_leaving,
    Action.EVICT: _evict,
    Action.ABSORB: _absorb,
    Action.OPEN_ROUND: _open_round,
    Action.MARK_RENDEZVOUS_COMPLETE: _complete,
    Action.MARK_RENDEZVOUS_CLOSED: _close,
}
