"""Executor of operators: reads the state, calls the operator, writes its action by compare-and-set, and repeats.

A step is one read or write and one call, and never waits; it returns the pause before the next step. The executor
therefore runs in threads as well as in a simulation with virtual time. If the table does not respond, the step returns
when to retry. A write whose response was lost may have taken effect, so it is not repeated: the operator decides again
on what is stored.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass

from trainmaster.worker.rendezvous.actions import CHANGES, Action, apply
from trainmaster.worker.rendezvous.control import Control, read_control
from trainmaster.worker.rendezvous.errors import Closed, Drained, RendezvousError, RoundLost, TimedOut, Unreachable
from trainmaster.worker.rendezvous.liveness import LivenessMonitor, interval_factor
from trainmaster.worker.rendezvous.operators import Operator
from trainmaster.worker.rendezvous.settings import Settings
from trainmaster.worker.rendezvous.state import Role, State, StateStore, Token, decode, encode
from trainmaster.worker.rendezvous.view import View, build_view
from trainmaster.worker.rendezvous.world import Identity

_INITIAL_BACKOFF = 0.2
_MAX_CONSECUTIVE_CONFLICTS = 2
"""Writes that may fail in a row before the node pauses: a failed write returns the current state for another try."""
_INITIAL_CONFLICT_BACKOFF = 0.05
_MAX_CONFLICT_BACKOFF = 1.0
_MIN_PAUSE = 0.01
"""Minimum pause between two reads, since clocks differ in the last digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """A node's sources of time and randomness.

    Attributes:
        monotonic: seconds; only differences count, and never against another node's clock.
        wall: seconds since 1970; recorded only.
        rng: randomizes pauses; seed it differently on each node.
    """

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    rng: random.Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Result of one step.

    Attributes:
        action: the operator's action; the next step writes its change. None if the table did not respond.
        pause: seconds to wait before the next step.
        view: the view that the operator was given; None if the table did not respond.
        error: the reason for which it did not.
    """

    action: Action | None
    pause: float
    view: View | None = None
    error: Unreachable | None = None


class Executor:
    """One node's access to the shared state.

    Several threads may use it: a step is atomic, and operators tolerate changes between steps.

    Args:
        store: store of the run.
        identity: the node.
        settings: timeouts and intervals.
        clocks: time and randomness.
    """

    def __init__(self, store: StateStore, identity: Identity, settings: Settings, clocks: Clocks) -> None:
        self.identity = identity
        self.settings = settings
        self.clocks = clocks
        self._store = store
        self._monitor = LivenessMonitor(interval=settings.keep_alive_interval, timeout=settings.keep_alive_timeout)
        self._lock = threading.Lock()
        self._state = State()
        self._token: Token | None = None
        self._last_row: tuple[bytes, Token] | None = None
        self._dirty: State | None = None
        self._read_at: float | None = None
        self._control: tuple[str | None, Control] = None, settings.default_control()
        self._highest_round = 0
        self._failures = 0
        self._conflicts = 0
        self._conflicted = False

    @property
    def state(self) -> State:
        """The state as last read or written."""
        return self._state

    def step(self, operator: Operator, *, cached: bool = False) -> Step:
        """Read or write the state, call the operator once, and prepare its change.

        Args:
            operator: the goal.
            cached: read nothing if the last read is younger than `poll_interval`.

        Raises:
            Corrupt: the stored row is not valid.
        """
        with self._lock:
            try:
                self._sync(cached=cached)
            except Unreachable as error:
                return Step(action=None, pause=self._backoff_pause(), error=error)
            view = self._view()
            action = operator(view)
            if action is Action.SYNC:
                return Step(action=action, pause=self._poll_pause(view), view=view)
            if action in CHANGES:
                if self._conflicted and self._conflicts >= _MAX_CONSECUTIVE_CONFLICTS:
                    return Step(action=Action.SYNC, pause=self._conflict_pause(), view=view)
                self._dirty = apply(action, view, operator.payload)
            return Step(action=action, pause=0.0, view=view)

    def run(self, operator: Operator, *, timeout: float, cached: bool = False) -> Generator[float, None, View]:
        """Step until the operator finishes; yield the seconds to wait between steps, and return the last view.

        Args:
            operator: the goal.
            timeout: seconds without any response of the table before this gives up.
            cached: as for `step`, for the first step.

        Raises:
            Unreachable: the table has not responded for `timeout` seconds.
            Closed: the operator has returned this error; likewise `Drained`, `TimedOut` and `RoundLost`.
            Corrupt: the stored row is not valid.
        """
        responded_at = self.clocks.monotonic()
        while True:
            step, cached = self.step(operator, cached=cached), False
            if step.view is None:
                if step.error is not None and self.clocks.monotonic() - responded_at + step.pause > timeout:
                    raise step.error
            else:
                responded_at = self.clocks.monotonic()
                if step.action is Action.FINISH:
                    return step.view
                if step.action in _ERRORS:
                    raise _ERRORS[step.action](step.view)
            yield step.pause

    def _sync(self, *, cached: bool) -> None:
        """Write the pending change, or read; then record the heartbeats."""
        dirty, self._dirty = self._dirty, None
        now = self.clocks.monotonic()
        if dirty is None and cached and self._read_at is not None and now - self._read_at < self.settings.poll_interval:
            return
        self._conflicted = False
        self._load(self._store.get_state() if dirty is None else self._write(dirty))

    def _write(self, dirty: State) -> tuple[bytes, Token] | None:
        result = self._store.set_state(encode(dirty), self._token)
        self._conflicted = result is None or not result[2]
        self._conflicts = self._conflicts + 1 if self._conflicted else 0
        return None if result is None else result[:2]

    def _load(self, row: tuple[bytes, Token] | None) -> None:
        """Load the stored row. If a known row is gone, it has expired; rounds continue from the highest known."""
        if row is None:
            self._state, self._token = State(round=self._highest_round + 1), None
        elif row != self._last_row:
            self._state, self._token = decode(row[0]), row[1]
        self._last_row = row
        self._failures = 0
        self._read_at = self.clocks.monotonic()
        self._monitor.observe(self._state.nodes, self._read_at)

    def _newer_control(self, text: str | None) -> Control:
        """Return the control in this text, or the known one if that is newer: someone has put an old one back."""
        read = self.settings.default_control() if text is None else read_control(text)
        return read if read.epoch >= self._control[1].epoch else self._control[1]

    def _view(self) -> View:
        text = self._store.control
        if text != self._control[0]:
            self._control = text, self._newer_control(text)
        view = build_view(
            self.identity,
            self._state,
            self._control[1],
            self.settings,
            self._monitor,
            now=self.clocks.monotonic(),
            epoch=self.clocks.wall(),
            highest_round=self._highest_round,
        )
        self._highest_round = view.highest_round if self._token is not None else self._highest_round
        return view

    def _poll_pause(self, view: View) -> float:
        """Return the seconds until news can be expected: short while a round is forming, longer beside a working world.

        A timer of this node ends the pause early: in a large group the next read would be late.
        """
        waits_beside_world = view.state.complete and view.node is not None and view.node.role is not Role.MEMBER
        interval = self.settings.join_poll_interval * interval_factor(len(view.state.nodes))
        interval = self.settings.poll_interval if waits_beside_world else min(interval, self.settings.poll_interval)
        return min(interval, max(view.seconds_to_next_timeout, _MIN_PAUSE))

    def _backoff_pause(self) -> float:
        self._failures += 1
        max_pause = min(_INITIAL_BACKOFF * 2.0 ** min(self._failures, 30), self.settings.max_backoff)
        return self.clocks.rng.uniform(max_pause / 2, max_pause)

    def _conflict_pause(self) -> float:
        """Return the seconds to wait after conflicts: nodes that arrive together would otherwise block each other."""
        max_pause = min(_INITIAL_CONFLICT_BACKOFF * 2.0 ** min(self._conflicts, 30), _MAX_CONFLICT_BACKOFF)
        return self.clocks.rng.uniform(0.0, max_pause)


_ERRORS: dict[Action | None, Callable[[View], RendezvousError]] = {
    Action.ERROR_CLOSED: lambda view: Closed(view.state.reason),
    Action.ERROR_DRAINED: lambda view: Drained(f"{view.identity.training_job_name} was requested to leave"),
    Action.ERROR_TIMEOUT: lambda view: TimedOut(f"timed out in round {view.state.round}"),
    Action.ERROR_LOST: lambda view: RoundLost(f"round {view.state.round} has begun"),
}
