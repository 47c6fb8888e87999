"""Input of a decision: the state, and one node's own knowledge (dead nodes, the scheduler's control, the time).

Derived facts are computed here, so that operators and actions agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from trainmaster.worker.rendezvous.control import Control
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Endpoint, Node, Role, RoundReason, State
from trainmaster.worker.rendezvous.watching.liveness import LivenessMonitor, Timer
from trainmaster.worker.rendezvous.watching.presence import Presence, Want, tag
from trainmaster.worker.rendezvous.world import Identity, training_job_name_of

_ARRIVED_ROLES = (Role.WAITING, Role.SPARE)


@dataclass(kw_only=True)
class View:
    """One node's view of the rendezvous.

    Attributes:
        identity: the node.
        state: as just read, or as this node would write it.
        control: the scheduler's control, or the bounds of the settings.
        settings: timeouts and intervals, in seconds.
        now: this node's monotonic clock; not comparable with another node's.
        epoch: this node's wall clock, seconds since 1970; recorded only, no decision depends on it.
        dead_nodes: nodes that this one considers dead.
        highest_round: the highest round that this node has ever seen.
        endpoint: address on which a first rank listens, once published.
        leads: whether this node acts for the group now (`executor`).
        follows: whether it asks the watchers to act for it (`watching.presence`).
        requests: announcements of followers whose requests the state does not show yet.
        elapsed: seconds for which each timer's condition has held; `time_conditions` sets it from the other values.
    """

    identity: Identity
    state: State
    control: Control
    settings: Settings
    now: float
    epoch: float
    dead_nodes: frozenset[str] = frozenset()
    highest_round: int = 0
    endpoint: Endpoint | None = None
    leads: bool = True
    follows: bool = False
    requests: tuple[Presence, ...] = ()
    elapsed: Mapping[Timer, float] = field(default_factory=lambda: dict.fromkeys(Timer, 0.0))

    @property
    def node(self) -> Node | None:
        """This node's entry in the state; None if it does not take part."""
        return self.state.nodes.get(self.identity.name)

    @property
    def is_drained(self) -> bool:
        """True if this node must leave."""
        return self.control.drains(self.identity.training_job_name)

    def is_leaving(self, name: str) -> bool:
        """Return whether a node is leaving, or must leave."""
        is_drained = bool(self.control.drain) and self.control.drains(training_job_name_of(name))
        return is_drained or self.state.nodes[name].role is Role.LEAVING

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Nodes that the next world can include: the live nodes that have arrived, and members of a working world."""
        roles = (*_ARRIVED_ROLES, Role.MEMBER) if self.state.complete else _ARRIVED_ROLES
        return tuple(
            name
            for name, node in self.state.nodes.items()
            if node.role in roles and name not in self.dead_nodes and not self.is_leaving(name)
        )

    @cached_property
    def stragglers(self) -> tuple[str, ...]:
        """While a round is forming: live nodes of the previous world that have not arrived yet."""
        members = () if self.state.complete else self.state.members()
        return tuple(name for name in members if name not in self.dead_nodes and not self.is_leaving(name))

    @cached_property
    def possible_size(self) -> int:
        """Size of the largest legal world of the candidates; 0 if there is none."""
        return self.control.largest_size(len(self.candidates))

    @cached_property
    def due_resize(self) -> RoundReason | None:
        """The resize that the current world needs; None if it needs none, or no world works."""
        state = self.state
        if not state.complete or state.closed:
            return None
        if any(self.is_leaving(name) for name in state.members()):
            return RoundReason.DRAIN
        if self.control.largest_size(state.size) < state.size and self.possible_size > 0:
            return RoundReason.SHRINK
        if self.possible_size > state.size:
            waits = any(state.nodes[name].role is Role.WAITING for name in self.candidates)
            return RoundReason.NEWCOMER if waits else RoundReason.GROW
        return None

    @property
    def resize_ready(self) -> bool:
        """True if the due resize must be announced now; growth waits a little, for all nodes that arrive together."""
        grows = self.due_resize in (RoundReason.NEWCOMER, RoundReason.GROW)
        all_here = self.possible_size >= self.control.expected_size()
        return self.due_resize is not None and (
            not grows or all_here or self.elapsed[Timer.GROWTH] >= self.settings.scale_up_delay
        )

    @property
    def has_room(self) -> bool:
        """True if one more node would make a larger world legal."""
        more = len(self.candidates) + (self.identity.name not in self.candidates)
        return self.control.largest_size(more) > self.state.size

    @property
    def can_complete(self) -> bool:
        """True if the round that is forming can complete.

        It waits for live nodes of the previous world and, after a loss, for a replacement. In the first world, and in
        one without a node of the previous world, the number of nodes to come is unknown: there it waits for the last
        call.
        """
        if self.possible_size == 0:
            return False
        if self.stragglers and self.elapsed[Timer.FORMING] < self.settings.straggler_timeout:
            return False
        if self.possible_size >= self.control.expected_size():
            return True
        if is_after_loss(self.state) and self.possible_size < self.state.size:
            return self.elapsed[Timer.LOST] >= self.settings.faulty_scale_down_timeout
        stays = any(self.state.nodes[name].rank is not None for name in self.candidates)
        return stays or self.elapsed[Timer.LEGAL] >= self.settings.last_call_timeout

    @property
    def missing(self) -> str:
        """The reason why this node is not in a world yet, as it is put into a log."""
        others = sum(name != self.identity.name for name in self.candidates)
        if self.state.complete:
            return f"a place in the world of {self.state.size} nodes"
        if self.possible_size == 0:
            needed = self.control.smallest_size()
            return f"nodes: a world needs {needed}, others here: {others}; see the logs of the other instances"
        return f"{len(self.stragglers)} nodes of the previous world" if self.stragglers else "the last call for nodes"

    @property
    def seconds_to_next_timeout(self) -> float:
        """Seconds until the next timer of this node can expire; infinite if all have expired."""
        limits = {
            Timer.LEGAL: self.settings.last_call_timeout,
            Timer.LOST: self.settings.faulty_scale_down_timeout,
            Timer.FORMING: self.settings.straggler_timeout,
            Timer.GROWTH: self.settings.scale_up_delay,
        }
        left = (limit - self.elapsed[mark] for mark, limit in limits.items())
        return min((seconds for seconds in left if seconds > 0), default=inf)


def is_after_loss(state: State) -> bool:
    """Return whether this round is forming because a node was lost or left without a request."""
    return bool({RoundReason.LOSS, RoundReason.DEPARTURE} & set(state.why)) and not any(
        why.is_resize for why in state.why
    )


def time_conditions(view: View, monitor: LivenessMonitor) -> None:
    """Set the timers of a view of the group."""
    conditions = {Timer.FORMING: not view.state.complete}
    if not view.follows:
        conditions |= {
            Timer.LEGAL: not view.state.complete and view.possible_size > 0,
            Timer.LOST: not view.state.complete and is_after_loss(view.state),
            Timer.GROWTH: view.due_resize in (RoundReason.NEWCOMER, RoundReason.GROW),
        }
    view.elapsed = monitor.elapsed(view.state.round, conditions, view.now)


def needs_change(view: View, presence: Presence, monitor: LivenessMonitor) -> bool:
    """Return whether the state does not show yet what a live follower asks for.

    A row can have outlived its node. So a node that is not in the state, or that asked to join before its last world
    formed, counts once it has been seen to send a heartbeat in this round.
    """
    node = view.state.nodes.get(presence.name)
    if presence.closing is not None:
        return not view.state.closed
    if presence.want is Want.LEAVE:
        return node is not None
    if presence.want is not Want.JOIN or view.control.drains(training_job_name_of(presence.name)):
        return False
    lives = monitor.has_beaten(tag(presence.name), view.state.round)
    if node is None or node.role is Role.LEAVING:
        return lives
    if node.role is not Role.MEMBER:
        return False
    return presence.after >= view.state.latest_round or (lives and not view.state.complete)
