"""What can happen to a rendezvous: the closed set of actions, and for each the pure function that carries it out.

The names are those of torch's engine where the meaning is. Each function makes a new state of a view and what the
operator carries; writing it is the executor's. They must not read a clock, and must make the same of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto

from trainmaster.worker.rendezvous.state import RECORDS_KEPT, Endpoint, Node, Record, Role, State, Why
from trainmaster.worker.rendezvous.view import View


class Action(Enum):
    """What a node does next. Those of `CHANGES` change the state; the others wait, end, or are errors."""

    KEEP_ALIVE = auto()
    ADD_TO_PARTICIPANTS = auto()
    ADD_TO_WAIT_LIST = auto()
    ADD_TO_SPARES = auto()
    REMOVE_FROM_PARTICIPANTS = auto()
    REMOVE_FROM_WAIT_LIST = auto()
    MARK_LEAVING = auto()
    EVICT = auto()
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
class Carried:
    """What an operator has for its action.

    Attributes:
        reason: why the rendezvous is closed.
        endpoint: where the first rank listens.
    """

    reason: str = ""
    endpoint: Endpoint | None = None


def apply(action: Action, view: View, carried: Carried) -> State:
    """The state after this action, which is one of `CHANGES`."""
    return CHANGES[action](view, carried)


def _keep_alive(view: View, _: Carried) -> State:
    node = view.state.nodes[view.me.name]
    return _with(view.state, {view.me.name: replace(node, beat=node.beat + 1)})


def _come(view: View, role: Role) -> State:
    """This node takes part in this role. A node that stays keeps its rank, so that it gets the same one again."""
    state, node = view.state, view.node
    if node is None:
        arrival = state.arrivals + 1
        node = Node(addr=view.me.addr, slots=view.me.slots, role=role, rank=None, beat=0, since=arrival)
        state = replace(state, arrivals=arrival)
    return _with(state, {view.me.name: replace(node, role=role, beat=node.beat + 1)})


def _add_to_participants(view: View, _: Carried) -> State:
    """Come for the round that is being formed; it must be above every round that this node has ever seen complete."""
    fresh = view.state.round >= view.seen
    return replace(_come(view, Role.WAITING), round=view.state.round if fresh else view.seen + 1)


def _remove(view: View, _: Carried) -> State:
    """This node goes; where that breaks a world, the next round begins in the same write."""
    rank = view.state.nodes[view.me.name].rank
    state = _without(view.state, [view.me.name])
    if rank is None or view.state.closed:
        return state
    why = Why.DRAIN if view.drained else view.due or Why.DEPARTURE
    return _open(state, view, (why,)) if state.complete else replace(state, why=_also(state.why, why))


def _mark_leaving(view: View, _: Carried) -> State:
    """This node is on its way out; the world goes on without it."""
    node = view.state.nodes[view.me.name]
    state = _with(view.state, {view.me.name: replace(node, role=Role.LEAVING, rank=None, beat=node.beat + 1)})
    opens = node.role is Role.MEMBER and state.complete
    return _open(state, view, (Why.DRAIN,)) if opens else state


def _evict(view: View, _: Carried) -> State:
    """The dead go. Whoever of the world was among them, and had not been asked to leave, is a loss."""
    state = _without(view.state, view.dead)
    ranked = [name for name in view.dead if name in view.state.nodes and view.state.nodes[name].rank is not None]
    if not ranked:
        return state
    why = Why.DRAIN if all(view.leaves(name) for name in ranked) else Why.LOSS
    if state.complete:
        return _open(state, view, _also((why,), view.due))
    return replace(state, why=_also(state.why, why))


def _open_round(view: View, _: Carried) -> State:
    """The world is to be formed anew: for the resize that is due, else because this node's part of it has failed."""
    return _open(view.state, view, (view.due or Why.FAILURE,))


def _open(state: State, view: View, why: tuple[Why, ...]) -> State:
    return replace(state, round=max(state.round, view.seen) + 1, complete=False, why=why, endpoint=None)


def _complete(view: View, _: Carried) -> State:
    """The world of this round: those that stay come first, in the order of their ranks, then by arrival."""
    state, nodes = view.state, view.state.nodes
    order = sorted(
        view.candidates, key=lambda name: (nodes[name].rank is None, nodes[name].rank or 0, nodes[name].since)
    )
    chosen = order[: view.possible]
    ranks = _ranks([nodes[name].rank for name in chosen])
    changed = {
        name: replace(nodes[name], role=Role.MEMBER, rank=rank) for name, rank in zip(chosen, ranks, strict=True)
    }
    changed |= {name: replace(nodes[name], role=Role.SPARE, rank=None) for name in order[view.possible :]}
    changed |= {name: replace(nodes[name], role=Role.LEAVING, rank=None) for name in nodes if view.leaves(name)}
    # Whoever of the old world has not come until now joins again by itself, once it sees that the world has gone on.
    gone = [name for name in nodes if name in view.dead or name in view.stragglers]
    formed = replace(state, complete=True, size=len(chosen), endpoint=None)
    return _recorded(_without(_with(formed, changed), gone), view.epoch)


def _ranks(before: list[int | None]) -> list[int]:
    """Ranks 0 to n-1: whoever stays keeps its rank where that leaves no hole, and its order always.

    Newcomers fill the holes and then the end.

    Args:
        before: ranks in the world before, ascending, then None for each newcomer.
    """
    size, stays = len(before), [rank for rank in before if rank is not None]
    kept = [min(rank, size - len(stays) + index) for index, rank in enumerate(stays)]
    return kept + [rank for rank in range(size) if rank not in set(kept)]


def _recorded(state: State, epoch: float) -> State:
    """A round counts as a restart if nothing but trouble was the reason for it."""
    resizes = [why for why in state.why if why.resize]
    charged = not resizes and any(why.trouble for why in state.why)
    why = (resizes or sorted(state.why, key=lambda word: word is Why.FAILURE))[0]
    record = Record(round=state.round, why=why, charged=charged, at=max(int(epoch), 0))
    return replace(state, restarts=(*_kept(state.restarts), record), charged=state.charged + charged)


def _kept(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """Those that stay when another comes: resizes are forgotten first, since the budget counts restarts."""
    if len(records) < RECORDS_KEPT:
        return records
    oldest = next((place for place, record in enumerate(records) if not record.charged), 0)
    return _kept((*records[:oldest], *records[oldest + 1 :]))


def _close(view: View, carried: Carried) -> State:
    return replace(view.state, closed=True, reason=carried.reason)


def _publish(view: View, carried: Carried) -> State:
    return replace(view.state, endpoint=carried.endpoint)


def _with(state: State, changed: dict[str, Node]) -> State:
    return replace(state, nodes={**state.nodes, **changed})


def _without(state: State, names: Iterable[str]) -> State:
    gone = set(names)
    return replace(state, nodes={name: node for name, node in state.nodes.items() if name not in gone})


def _also(whys: tuple[Why, ...], why: Why | None) -> tuple[Why, ...]:
    return whys if why is None or why in whys else (*whys, why)


CHANGES: dict[Action, Callable[[View, Carried], State]] = {
    Action.KEEP_ALIVE: _keep_alive,
    Action.ADD_TO_PARTICIPANTS: _add_to_participants,
    Action.ADD_TO_WAIT_LIST: lambda view, _: _come(view, Role.WAITING),
    Action.ADD_TO_SPARES: lambda view, _: _come(view, Role.SPARE),
    Action.REMOVE_FROM_PARTICIPANTS: _remove,
    Action.REMOVE_FROM_WAIT_LIST: _remove,
    Action.MARK_LEAVING: _mark_leaving,
    Action.EVICT: _evict,
    Action.OPEN_ROUND: _open_round,
    Action.MARK_RENDEZVOUS_COMPLETE: _complete,
    Action.MARK_RENDEZVOUS_CLOSED: _close,
    Action.PUBLISH_ENDPOINT: _publish,
}
