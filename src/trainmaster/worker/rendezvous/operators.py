"""Operators: each maps a view to the next action that brings the rendezvous closer to the operator's goal.

The executor carries out the action and calls the operator again until it returns FINISH or an error. Operators change
no state and remember no earlier view: after a lost write, the next view shows what is still to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trainmaster.worker.rendezvous.actions import Action, Payload
from trainmaster.worker.rendezvous.state import Endpoint, Role
from trainmaster.worker.rendezvous.view import View
from trainmaster.worker.rendezvous.watching.liveness import Timer

_NO_PAYLOAD = Payload()


class Operator(Protocol):
    """A goal of a node."""

    @property
    def payload(self) -> Payload:
        """Data for its action."""
        ...

    def __call__(self, view: View) -> Action:
        """Return the next action."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOp:
    """Join a world of a round later than `after`, the node's own previous round (0 for none).

    If that world still works, the call means that this node's workers have failed, and the next round opens.

    Args:
        after: round of the previous world.
        started: this node's clock when it began to wait.
        timeout: seconds to wait while no world works; a spare waits for as long as one does.
    """

    after: int
    started: float
    timeout: float
    payload: Payload = _NO_PAYLOAD

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        if view.state.closed:
            return Action.ERROR_CLOSED
        if view.is_drained:
            return Action.ERROR_DRAINED if view.node is None else _removal_action(view)
        group = _group_action(view)
        if group is not None:
            return group
        chosen = self._while_complete(view) if view.state.complete else self._while_forming(view)
        return chosen or Action.SYNC

    def _while_complete(self, view: View) -> Action | None:
        """Return the action while a world works."""
        node = view.node
        if node is not None and node.role is Role.MEMBER:
            return Action.FINISH if view.state.round > self.after else Action.OPEN_ROUND
        if node is None or node.role is Role.LEAVING:
            return Action.ADD_TO_WAIT_LIST if view.has_room else Action.ADD_TO_SPARES
        return Action.OPEN_ROUND if view.leads and view.resize_ready else None

    def _while_forming(self, view: View) -> Action | None:
        """Return the action while a round is forming."""
        arrived = view.node is not None and view.node.role in (Role.WAITING, Role.SPARE)
        began = max(self.started, view.now - view.elapsed[Timer.FORMING])
        if view.now > began + self.timeout:
            return _removal_action(view) if arrived else Action.ERROR_TIMEOUT
        if not arrived:
            return Action.ADD_TO_PARTICIPANTS
        return Action.MARK_RENDEZVOUS_COMPLETE if view.leads and view.can_complete else None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAliveOp:
    """Watch the group: evict dead nodes, do what followers ask for, and announce a resize before any node stops for it.

    Args:
        deadline: this node's clock at which to give up until the next heartbeat.
    """

    deadline: float
    payload: Payload = _NO_PAYLOAD

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        chosen = _maintenance(view)
        if chosen is None:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOp:
    """Mark this node as leaving if the scheduler has requested it, while its workers save their checkpoint."""

    deadline: float
    payload: Payload = _NO_PAYLOAD

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        if view.node is None or not view.is_drained or view.node.role is Role.LEAVING or view.state.closed:
            return Action.FINISH
        if view.follows:  # the watchers read the same request
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else Action.MARK_LEAVING


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitOp:
    """Leave the rendezvous without closing it."""

    deadline: float
    payload: Payload = _NO_PAYLOAD

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        if view.node is None:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else _removal_action(view)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseOp:
    """Close the rendezvous for all nodes; the first reason stays."""

    deadline: float
    payload: Payload

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        if view.state.closed:
            return Action.FINISH
        return Action.ERROR_TIMEOUT if view.now > self.deadline else Action.MARK_RENDEZVOUS_CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishEndpointOp:
    """Publish the address of this node, the first rank of the round."""

    endpoint: Endpoint

    @property
    def payload(self) -> Payload:
        """The endpoint to publish."""
        return Payload(endpoint=self.endpoint)

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        if not _is_in_world(view, self.endpoint.round):
            return _round_error(view)
        return Action.FINISH if view.endpoint == self.endpoint else Action.PUBLISH_ENDPOINT


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitEndpointOp:
    """Wait for the address of the first rank of the round."""

    round: int
    deadline: float
    payload: Payload = _NO_PAYLOAD

    def __call__(self, view: View) -> Action:
        """Return the next action; see `Operator`."""
        if not _is_in_world(view, self.round):
            return _round_error(view)
        if view.endpoint is not None and view.endpoint.round == self.round:
            return Action.FINISH
        if view.now > self.deadline:
            return Action.ERROR_TIMEOUT
        return _maintenance(view) or Action.SYNC


def _maintenance(view: View) -> Action | None:
    """Return the action that a node in the group takes for it, or None."""
    if view.node is None or view.state.closed:
        return None
    group = _group_action(view)
    if group is None and view.leads and view.resize_ready and view.node.role is Role.MEMBER:
        return Action.OPEN_ROUND
    # In a large group the nodes that wait for the world cannot complete it themselves.
    completes = view.leads and view.state.shards > 0 and not view.state.complete and view.can_complete
    return Action.MARK_RENDEZVOUS_COMPLETE if group is None and completes else group


def _group_action(view: View) -> Action | None:
    """Return what comes before all else for a node that acts for the group, or None."""
    if view.leads and view.dead_nodes:
        return Action.EVICT
    return Action.ABSORB if view.leads and view.requests else None


def _removal_action(view: View) -> Action:
    member = view.node is not None and view.node.role is Role.MEMBER
    takes_part = member or not view.state.complete
    return Action.REMOVE_FROM_PARTICIPANTS if takes_part else Action.REMOVE_FROM_WAIT_LIST


def _is_in_world(view: View, round_: int) -> bool:
    """Return whether the world of this round is the current one and includes this node."""
    state, node = view.state, view.node
    present = state.complete and not state.closed and state.round == round_
    return present and node is not None and node.role is Role.MEMBER


def _round_error(view: View) -> Action:
    return Action.ERROR_CLOSED if view.state.closed else Action.ERROR_LOST
