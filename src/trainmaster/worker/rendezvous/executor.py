"""The executor: reads the state, asks the operator, carries out its action, writes by compare-and-set, and again.

One step is one sync and one question, without any waiting in it: who drives it waits for as long as a step says. So it
runs in threads, and in a simulation whose time is virtual. A table that does not answer ends nothing: the step says
when to try again, and what was to be written is decided anew from what is stored then, since a write whose answer was
lost may have taken effect. It must not decide anything about the rendezvous.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass

from trainmaster.worker.rendezvous.actions import CHANGES, Action, apply
from trainmaster.worker.rendezvous.control import Control, read_control
from trainmaster.worker.rendezvous.errors import Closed, Drained, RendezvousTrouble, RoundLost, TimedOut, Unreachable
from trainmaster.worker.rendezvous.liveness import Watch, pace
from trainmaster.worker.rendezvous.operators import Operator
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Role, State, StateStore, Token, decode, encode
from trainmaster.worker.rendezvous.view import View, look
from trainmaster.worker.rendezvous.world import Identity

_FIRST_PAUSE = 0.2
_LOSSES_AT_ONCE = 2
"""Writes that may be lost in a row before the node steps back; what it lost to is fresh enough for one more try."""
_CONFLICT_PAUSE = 0.05
_MAX_CONFLICT_PAUSE_LENGTH = 1.0
_SHORTEST_PAUSE = 0.01
"""Between two reads; clocks need not agree on what is due to the last digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Where a node's time and chance come from.

    Attributes:
        monotonic: seconds; only differences count, and never those to another node's.
        wall: seconds since 1970, for the record only.
        rng: for pauses; two nodes should not have the same.
    """

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    rng: random.Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step came to.

    Attributes:
        action: what the operator wants; its change is written by the next step. None where the table did not answer.
        pause: seconds to wait before the next step.
        view: what the operator saw; None where the table did not answer.
        trouble: why it did not.
    """

    action: Action | None
    pause: float
    view: View | None = None
    trouble: Unreachable | None = None


class Executor:
    """One node's side of the shared state.

    Args:
        store: of the run.
        me: who this node is.
        settings: waits and intervals.
        clocks: time and chance.

    It may be used by several threads: each step is one unit, and every operator bears what happens between its steps.
    """

    def __init__(self, store: StateStore, me: Identity, settings: Settings, clocks: Clocks) -> None:
        self.me = me
        self.settings = settings
        self.clocks = clocks
        self._store = store
        self._watch = Watch(interval=settings.interval, expiry=settings.expiry)
        self._lock = threading.Lock()
        self._state = State()
        self._token: Token | None = None
        self._found: tuple[bytes, Token] | None = None
        self._dirty: State | None = None
        self._read_at: float | None = None
        self._asked: tuple[str | None, Control] = None, settings.control()
        self._seen = 0
        self._failures = 0
        self._losses = 0
        self._lost = False

    @property
    def state(self) -> State:
        """As last read or written."""
        return self._state

    def step(self, operator: Operator, *, cached: bool = False) -> Step:
        """One sync, one question, one action; a cached one reads nothing where the last read is younger than `poll`.

        Raises `Corrupt`.
        """
        with self._lock:
            try:
                self._sync(cached=cached)
            except Unreachable as trouble:
                return Step(action=None, pause=self._back_off(), trouble=trouble)
            view = self._view()
            action = operator(view)
            if action is Action.SYNC:
                return Step(action=action, pause=self._patience(view), view=view)
            if action in CHANGES:
                if self._lost and self._losses >= _LOSSES_AT_ONCE:
                    return Step(action=Action.SYNC, pause=self._after_losses(), view=view)
                self._dirty = apply(action, view, operator.carried)
            return Step(action=action, pause=0.0, view=view)

    def run(self, operator: Operator, *, patience: float, cached: bool = False) -> Generator[float, None, View]:
        """Step until the operator has what it wants; yields the seconds to wait each time, and returns the last view.

        Args:
            operator: what is wanted.
            patience: seconds without any answer of the table after which this is given up.
            cached: whether the first step may do with what was read just now, see `step`.

        Raises `Unreachable` then; `Closed`, `Drained`, `TimedOut` and `RoundLost` as the operator says; `Corrupt`.
        """
        answered = self.clocks.monotonic()
        while True:
            step, cached = self.step(operator, cached=cached), False
            if step.view is None:
                if step.trouble is not None and self.clocks.monotonic() - answered + step.pause > patience:
                    raise step.trouble
            else:
                answered = self.clocks.monotonic()
                if step.action is Action.FINISH:
                    return step.view
                if step.action in _ERRORS:
                    raise _ERRORS[step.action](step.view)
            yield step.pause

    def _sync(self, *, cached: bool) -> None:
        """Write what is to be written if nobody else was first, or read; then look at who beats."""
        dirty, self._dirty = self._dirty, None
        now = self.clocks.monotonic()
        if dirty is None and cached and self._read_at is not None and now - self._read_at < self.settings.poll:
            return
        self._lost = False
        self._take(self._store.get_state() if dirty is None else self._write(dirty))

    def _write(self, dirty: State) -> tuple[bytes, Token] | None:
        answer = self._store.set_state(encode(dirty), self._token)
        self._lost = answer is None or not answer[2]
        self._losses = self._losses + 1 if self._lost else 0
        return None if answer is None else answer[:2]

    def _take(self, found: tuple[bytes, Token] | None) -> None:
        """Believe what is stored. Where nothing is, a state that was there has expired: rounds go on all the same."""
        if found is None:
            self._state, self._token = State(round=self._seen + 1), None
        elif found != self._found:
            self._state, self._token = decode(found[0]), found[1]
        self._found = found
        self._failures = 0
        self._read_at = self.clocks.monotonic()
        self._watch.observe(self._state.nodes, self._read_at)

    def _view(self) -> View:
        text = self._store.control
        if text != self._asked[0]:
            self._asked = text, self.settings.control() if text is None else read_control(text)
        view = look(
            self.me,
            self._state,
            self._asked[1],
            self.settings,
            self._watch,
            now=self.clocks.monotonic(),
            epoch=self.clocks.wall(),
            seen=self._seen,
        )
        self._seen = view.seen if self._token is not None else self._seen
        return view

    def _patience(self, view: View) -> float:
        """Seconds until there may be news: all wait for a world that is being formed, few beside one that works.

        A wait that this node times itself ends on time: in a large group the next look would be late.
        """
        beside = view.state.complete and view.node is not None and view.node.role is not Role.MEMBER
        brisk = self.settings.brisk * pace(len(view.state.nodes))
        usual = self.settings.poll if beside else min(brisk, self.settings.poll)
        return min(usual, max(view.until_due, _SHORTEST_PAUSE))

    def _back_off(self) -> float:
        self._failures += 1
        most = min(_FIRST_PAUSE * 2.0 ** min(self._failures, 30), self.settings.backoff)
        return self.clocks.rng.uniform(most / 2, most)

    def _after_losses(self) -> float:
        """Seconds to step back, or many nodes that come at once would block each other; what is read then is fresh."""
        most = min(_CONFLICT_PAUSE * 2.0 ** min(self._losses, 30), _MAX_CONFLICT_PAUSE_LENGTH)
        return self.clocks.rng.uniform(0.0, most)


_ERRORS: dict[Action | None, Callable[[View], RendezvousTrouble]] = {
    Action.ERROR_CLOSED: lambda view: Closed(view.state.reason),
    Action.ERROR_DRAINED: lambda view: Drained(f"{view.me.training_job_name} was asked to leave"),
    Action.ERROR_TIMEOUT: lambda view: TimedOut(f"no answer in time in round {view.state.round}"),
    Action.ERROR_LOST: lambda view: RoundLost(f"round {view.state.round} has begun"),
}
