"""What an operator looks at: the state, and what one node knows: who is dead, what the scheduler asks, the time.

Questions about it are answered here, so that operators and actions agree. It must not change anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from trainmaster.worker.rendezvous.control import Control
from trainmaster.worker.rendezvous.liveness import Mark, Watch, pace
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Node, Role, State, Why
from trainmaster.worker.rendezvous.world import Identity, training_job_of

_COME = (Role.WAITING, Role.SPARE)


@dataclass(kw_only=True)
class View:
    """One look at the rendezvous.

    Attributes:
        me: who looks.
        state: as just read, or as this node would have it.
        control: what the scheduler asks, or the settings' own bounds.
        settings: waits and intervals, seconds.
        now: this node's monotonic clock; it compares with no other.
        epoch: this node's wall clock, seconds since 1970; for the record, no decision depends on it.
        dead: nodes that this one holds for dead.
        quiet: seconds since this node's own last beat was seen in the table.
        seen: the highest round that this node has ever seen.
        elapsed: how long each mark has held, seconds; `look` knows it last, nothing else is ever set.
    """

    me: Identity
    state: State
    control: Control
    settings: Settings
    now: float
    epoch: float
    dead: frozenset[str] = frozenset()
    quiet: float = 0.0
    seen: int = 0
    elapsed: Mapping[Mark, float] = field(default_factory=lambda: dict.fromkeys(Mark, 0.0))

    @property
    def node(self) -> Node | None:
        """This node, as far as it takes part."""
        return self.state.nodes.get(self.me.name)

    @property
    def drained(self) -> bool:
        """Whether this node is to leave."""
        return self.control.drains(self.me.training_job_name)

    @property
    def beat_due(self) -> bool:
        """Whether it is time to say that this node lives."""
        return self.node is not None and self.quiet >= self.settings.interval * pace(len(self.state.nodes))

    def leaves(self, name: str) -> bool:
        """Whether a node is asked to leave, or does."""
        asked = bool(self.control.drain) and self.control.drains(training_job_of(name))
        return asked or self.state.nodes[name].role is Role.LEAVING

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """Nodes that the next world can have: all that live and have come; those at work too, while a world works."""
        roles = (*_COME, Role.MEMBER) if self.state.complete else _COME
        return tuple(
            name
            for name, node in self.state.nodes.items()
            if node.role in roles and name not in self.dead and not self.leaves(name)
        )

    @cached_property
    def stragglers(self) -> tuple[str, ...]:
        """While a round is formed: nodes of the world before that live, but have not come yet."""
        members = () if self.state.complete else self.state.members()
        return tuple(name for name in members if name not in self.dead and not self.leaves(name))

    @cached_property
    def possible(self) -> int:
        """The size of the largest legal world of the candidates; 0 for none."""
        return self.control.at_most(len(self.candidates))

    @cached_property
    def due(self) -> Why | None:
        """The resize that the present world needs; None for none, or where no world works."""
        state = self.state
        if not state.complete or state.closed:
            return None
        if any(self.leaves(name) for name in state.members()):
            return Why.DRAIN
        if self.control.at_most(state.size) < state.size and self.possible > 0:
            return Why.SHRINK
        if self.possible > state.size:
            waits = any(state.nodes[name].role is Role.WAITING for name in self.candidates)
            return Why.NEWCOMER if waits else Why.GROW
        return None

    @property
    def ripe(self) -> bool:
        """Whether that resize is to be announced now; growth waits a little for all that come together."""
        grows = self.due in (Why.NEWCOMER, Why.GROW)
        all_here = self.possible >= self.control.expected()
        return self.due is not None and (not grows or all_here or self.elapsed[Mark.GROWTH] >= self.settings.gather)

    @property
    def room(self) -> bool:
        """Whether one more node would make a larger world legal."""
        more = len(self.candidates) + (self.me.name not in self.candidates)
        return self.control.at_most(more) > self.state.size

    @property
    def ready(self) -> bool:
        """Whether the world that is being formed is as good as it will be.

        Nodes of the world before are waited for. After a loss so is a replacement. In the first world, and in one where
        nobody is left of the world before, nobody knows who else comes: there the last call is waited for.
        """
        if self.possible == 0:
            return False
        if self.stragglers and self.elapsed[Mark.FORMING] < self.settings.straggler_wait:
            return False
        if self.possible >= self.control.expected():
            return True
        if lost(self.state) and self.possible < self.state.size:
            return self.elapsed[Mark.LOST] >= self.settings.faulty_wait
        stays = any(self.state.nodes[name].rank is not None for name in self.candidates)
        return stays or self.elapsed[Mark.LEGAL] >= self.settings.last_call

    @property
    def until_due(self) -> float:
        """Seconds until a wait that this node times may be over, at the earliest; infinite where all are."""
        limits = {
            Mark.LEGAL: self.settings.last_call,
            Mark.LOST: self.settings.faulty_wait,
            Mark.FORMING: self.settings.straggler_wait,
            Mark.GROWTH: self.settings.gather,
        }
        left = (limit - self.elapsed[mark] for mark, limit in limits.items())
        return min((seconds for seconds in left if seconds > 0), default=inf)


def lost(state: State) -> bool:
    """Whether this round is formed because a node has gone that nobody had asked to."""
    return bool({Why.LOSS, Why.DEPARTURE} & set(state.why)) and not any(why.resize for why in state.why)


def look(  # noqa: PLR0913 - everything that a decision may depend on
    me: Identity,
    state: State,
    control: Control,
    settings: Settings,
    watch: Watch,
    *,
    now: float,
    epoch: float,
    seen: int,
) -> View:
    """The view of this state, which the watch has observed."""
    view = View(
        me=me,
        state=state,
        control=control,
        settings=settings,
        now=now,
        epoch=epoch,
        dead=watch.dead() - {me.name},
        quiet=watch.quiet_for(me.name, now),
        seen=max(seen, state.round),
    )
    holds = {
        Mark.FORMING: not state.complete,
        Mark.LEGAL: not state.complete and view.possible > 0,
        Mark.LOST: not state.complete and lost(state),
        Mark.GROWTH: view.due in (Why.NEWCOMER, Why.GROW),
    }
    view.elapsed = watch.elapsed(state.round, holds, now)
    return view
