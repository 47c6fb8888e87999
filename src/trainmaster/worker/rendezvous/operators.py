"""What a node wants of the rendezvous: each operator looks at a view and returns the one action that comes next.

The executor carries it out and asks again, until the operator says FINISH or an error. They must not change the state,
nor remember anything of earlier looks: after a lost write the next look says what is still to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trainmaster.worker.rendezvous.actions import Action, Carried
from trainmaster.worker.rendezvous.liveness import Mark
from trainmaster.worker.rendezvous.state import Endpoint, Role
from trainmaster.worker.rendezvous.view import View

_NOTHING = Carried()


class Operator(Protocol):
    """Something that a node wants."""

    @property
    def carried(self) -> Carried:
        """What its action needs beside the view."""
        ...

    def __call__(self, view: View) -> Action:
        """The next action."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Be in a world of a round later than `after`, this node's own world of before (0 for none).

    Calling for another one while that world works means that this node's part of it has failed: the next round begins.

    Args:
        after: round of the world that is left.
        started: this node's clock when it began to wait.
        timeout: seconds to wait while no world works; a spare waits for as long as one does.
    """

    after: int
    started: float
    timeout: float
    carried: Carried = _NOTHING

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        if view.state.closed:
            return Action.ERROR_CLOSED
        if view.drained:
            return Action.ERROR_DRAINED if view.node is None else _removal(view)
        if view.dead:
            return Action.EVICT
        chosen = self._beside(view) if view.state.complete else self._forming(view)
        return chosen or (Action.KEEP_ALIVE if view.beat_due else Action.SYNC)

    def _beside(self, view: View) -> Action | None:
        """While a world works."""
        node = view.node
        if node is not None and node.role is Role.MEMBER:
            return Action.FINISH if view.state.round > self.after else Action.OPEN_ROUND
        if node is None or node.role is Role.LEAVING:
            return Action.ADD_TO_WAIT_LIST if view.room else Action.ADD_TO_SPARES
        return Action.OPEN_ROUND if view.ripe else None

    def _forming(self, view: View) -> Action | None:
        """While a round is being formed."""
        come = view.node is not None and view.node.role in (Role.WAITING, Role.SPARE)
        began = max(self.started, view.now - view.elapsed[Mark.FORMING])
        if view.now > began + self.timeout:
            return _removal(view) if come else Action.ERROR_TIMEOUT
        if not come:
            return Action.ADD_TO_PARTICIPANTS
        return Action.MARK_RENDEZVOUS_COMPLETE if view.ready else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """Say that this node lives; see to it that the dead go, and that a resize is announced before anyone stops for it.

    Args:
        deadline: this node's clock when it is given up until the next time.
    """

    deadline: float
    carried: Carried = _NOTHING

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        chosen = _upkeep(view)
        if chosen is None:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """If this node was asked to leave, say that it is on its way out; its workers save their checkpoint meanwhile."""

    deadline: float
    carried: Carried = _NOTHING

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        if view.node is None or not view.drained or view.node.role is Role.LEAVING or view.state.closed:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else Action.MARK_LEAVING


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Take no part any more; nothing is closed."""

    deadline: float
    carried: Carried = _NOTHING

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        if view.node is None:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else _removal(view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """End the rendezvous for all and for good; the first reason stays."""

    deadline: float
    carried: Carried

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        if view.state.closed:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else Action.MARK_RENDEZVOUS_CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Say where this node, the first rank of the round, listens."""

    endpoint: Endpoint

    @property
    def carried(self) -> Carried:
        """See `Operator`."""
        return Carried(endpoint=self.endpoint)

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        if not _works(view, self.endpoint.round):
            return _gone(view)
        return Action.FINISH if view.state.endpoint == self.endpoint else Action.PUBLISH_ENDPOINT


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Learn where the first rank of the round listens."""

    round: int
    deadline: float
    carried: Carried = _NOTHING

    def __call__(self, view: View) -> Action:
        """See `Operator`."""
        if not _works(view, self.round):
            return _gone(view)
        if view.state.endpoint is not None and view.state.endpoint.round == self.round:
            return Action.FINISH
        if view.now > self.deadline:
            return Action.ERROR_TIMEOUT
        return _upkeep(view) or Action.SYNC


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """See how the rendezvous stands, and do nothing."""

    carried: Carried = _NOTHING

    def __call__(self, view: View) -> Action:  # noqa: ARG002 - as all operators
        """See `Operator`."""
        return Action.FINISH


def _upkeep(view: View) -> Action | None:
    """What a node does for all, whatever else it wants; None for nothing."""
    if view.node is None or view.state.closed:
        return None
    if view.dead:
        return Action.EVICT
    if view.ripe and view.node.role is Role.MEMBER:
        return Action.OPEN_ROUND
    return Action.KEEP_ALIVE if view.beat_due else None


def _removal(view: View) -> Action:
    member = view.node is not None and view.node.role is Role.MEMBER
    takes_part = member or not view.state.complete
    return Action.REMOVE_FROM_PARTICIPANTS if takes_part else Action.REMOVE_FROM_WAIT_LIST


def _works(view: View, round_: int) -> bool:
    """Whether this round's world is the present one, with this node."""
    state, node = view.state, view.node
    present = state.complete and not state.closed and state.round == round_
    return present and node is not None and node.role is Role.MEMBER


def _gone(view: View) -> Action:
    return Action.ERROR_CLOSED if view.state.closed else Action.ERROR_LOST
