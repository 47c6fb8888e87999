"""One node of a rendezvous, step by step: join, look, leave, close, with a thread that says that it lives.

What handlers and launchers are built on; `Rendezvous` is the same for programs. All waiting is done by the `sleep` that
is handed in; in a simulation whoever drives the generators waits instead. It must not know of torch, JAX or containers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

from trainmaster.worker.rendezvous.actions import Carried
from trainmaster.worker.rendezvous.errors import TimedOut, Unreachable
from trainmaster.worker.rendezvous.executor import Executor
from trainmaster.worker.rendezvous.liveness import pace
from trainmaster.worker.rendezvous.operators import Await, Close, Drain, Exit, Join, KeepAlive, Look, Operator, Publish
from trainmaster.worker.rendezvous.state import Endpoint, Role, State
from trainmaster.worker.rendezvous.view import View
from trainmaster.worker.rendezvous.world import Asked, World, world_of

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Engine:
    """A node.

    Args:
        executor: its side of the shared state.
        sleep: waits for so many seconds.
    """

    def __init__(self, executor: Executor, sleep: Callable[[float], object]) -> None:
        self._executor = executor
        self._settings = executor.settings
        self._now = executor.clocks.monotonic
        self._sleep = sleep
        self._round = 0
        self._asked = Asked()
        self._look_again_at = 0.0
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def round(self) -> int:
        """Round of the world that this node was in last; 0 before the first."""
        return self._round

    @property
    def state(self) -> State:
        """The state as this node last saw it: the record of restarts, for whoever keeps the budget."""
        return self._executor.state

    # ------------------------------------------------------------ what waits

    def join(self, timeout: float | None = None) -> World:
        """Be in the next world. Leaves the present one: asking while it works means that this node's part has failed.

        Args:
            timeout: seconds to wait while no world works; None for the settings' `join_timeout`.

        Raises `Closed`, `Drained` (this node is out then), `TimedOut` (it is out, too), `Unreachable` where the table
        has not answered for as long, and `Corrupt`.
        """
        return self._wait(self.joining(timeout))

    def publish(self, host: str, port: int) -> None:
        """As the first rank of the present world: say where it listens. Raises `RoundLost`, `Closed`, `Unreachable`."""
        self._wait(self.publishing(host, port))

    def endpoint(self, timeout: float | None = None) -> tuple[str, int]:
        """Host and port of the first rank of the present world, once it has said so.

        Raises `RoundLost` where another round begins before, `TimedOut`, `Closed`, `Unreachable`.
        """
        return self._wait(self.awaiting_endpoint(timeout))

    def leave(self) -> None:
        """Take no part any more, and close nothing. Tries for `close_timeout`; after that the others find out."""
        self.stop_keep_alive()
        try:
            self._wait(self.leaving())
        except (Unreachable, TimedOut) as trouble:
            _log.warning("left without a word: %s", trouble)

    def close(self, reason: str) -> None:
        """End the rendezvous for all, for good. Raises `Unreachable` after `close_timeout`."""
        self.stop_keep_alive()
        self._wait(self.closing(reason))

    # ------------------------------------------------------------ the same, driven by the caller

    def joining(self, timeout: float | None = None) -> Generator[float, None, World]:
        """`join`, as a generator of the seconds to wait."""
        limit = self._settings.join_timeout if timeout is None else timeout
        view = yield from self._run(Join(after=self._round, started=self._now(), timeout=limit), limit)
        world = world_of(view.state, view.me.name)
        if world is None:  # Join ends for a member of a complete world only
            raise AssertionError(f"round {view.state.round} was joined without a rank")
        self._round = world.round
        self._remember(view)
        return world

    def publishing(self, host: str, port: int) -> Generator[float, None, None]:
        """`publish`, as a generator of the seconds to wait."""
        where = Endpoint(round=self._round, host=host, port=port)
        yield from self._run(Publish(endpoint=where), self._settings.join_timeout)

    def awaiting_endpoint(self, timeout: float | None = None) -> Generator[float, None, tuple[str, int]]:
        """`endpoint`, as a generator of the seconds to wait."""
        limit = self._settings.join_timeout if timeout is None else timeout
        view = yield from self._run(Await(round=self._round, deadline=self._now() + limit), limit)
        where = view.state.endpoint
        if where is None:  # Await ends once there is one
            raise AssertionError("the endpoint is gone")
        return where.host, where.port

    def leaving(self) -> Generator[float, None, None]:
        """`leave`, as a generator of the seconds to wait. Raises `Unreachable`, `TimedOut`."""
        limit = self._settings.close_timeout
        yield from self._run(Exit(deadline=self._now() + limit), limit)

    def closing(self, reason: str) -> Generator[float, None, None]:
        """`close`, as a generator of the seconds to wait."""
        limit = self._settings.close_timeout
        yield from self._run(Close(deadline=self._now() + limit, carried=Carried(reason=reason)), limit)

    def beating(self) -> Generator[float, None, None]:
        """One beat, and what a node does for all meanwhile, as a generator of the seconds to wait.

        Raises `Unreachable`, `TimedOut`: it is for the next beat to try again.
        """
        limit = self._settings.expiry
        yield from self._run(Drain(deadline=self._now() + limit), limit)
        # What Drain has just read is fresh enough.
        beat = KeepAlive(deadline=self._now() + limit)
        view = yield from self._executor.run(beat, patience=limit, cached=True)
        self._remember(view)

    # ------------------------------------------------------------ what does not wait

    def asked(self) -> Asked:
        """What is asked of this node, from at most one read per `poll`; what was known last where the table is silent.

        A resize is announced in the table before this says so: whatever breaks because of it counts as a resize.
        Raises `Corrupt`.
        """
        if self._now() < self._look_again_at:
            return self._asked
        step = self._executor.step(KeepAlive(deadline=self._now() + self._settings.interval), cached=True)
        self._look_again_at = self._now() + (step.pause if step.view is None else self._settings.poll)
        if step.view is not None and step.pause == 0.0 and step.action is not None:
            step = self._executor.step(KeepAlive(deadline=self._now()), cached=True)
        if step.view is not None:
            self._remember(step.view)
        return self._asked

    def should_rejoin(self) -> bool:
        """Whether this node's world is over, so that it is to `join` again. As cheap as `asked`."""
        return self.asked().rejoin

    def fenced(self, round_: int | None = None) -> bool:
        """Whether a world newer than that of this round (None: this node's own) has been formed: then write nothing.

        Always reads the table. Raises `Unreachable` where that cannot be known; whoever writes must not, then.
        """
        step = self._executor.step(Look())
        if step.view is None:
            raise step.trouble or Unreachable("the table did not answer")
        return step.view.state.newest_world > (self._round if round_ is None else round_)

    # ------------------------------------------------------------ the thread

    def start_keep_alive(self) -> None:
        """Beat in a thread of its own until `stop_keep_alive`, `leave` or `close`."""
        if self._thread is not None:
            return
        stop = threading.Event()
        self._stop, self._thread = (
            stop,
            threading.Thread(target=self._beat_until, args=(stop,), name="trainmaster-keep-alive", daemon=True),
        )
        self._thread.start()

    def stop_keep_alive(self) -> None:
        """Beat no more; returns at once, a beat under way may still end."""
        if self._stop is not None:
            self._stop.set()
        self._stop = self._thread = None

    def _beat_until(self, stop: threading.Event) -> None:
        while not stop.wait(self._settings.interval * pace(len(self._executor.state.nodes))):
            try:
                for pause in self.beating():
                    if stop.wait(pause):
                        return
            except Exception as trouble:  # noqa: BLE001 - a thread that ends here would make this node dead to all
                _log.warning("no beat this time: %s: %s", type(trouble).__name__, trouble)

    def wait(self, seconds: float) -> None:
        """Wait as this node waits."""
        self._sleep(seconds)

    # ------------------------------------------------------------ helpers

    def _run(self, operator: Operator, patience: float) -> Generator[float, None, View]:
        return self._executor.run(operator, patience=patience)

    def _wait(self, steps: Generator[float, None, T]) -> T:
        while True:
            try:
                pause = next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            if pause > 0:
                self._sleep(pause)

    def _remember(self, view: View) -> None:
        state, node = view.state, view.node
        present = state.complete and state.round == self._round and node is not None and node.role is Role.MEMBER
        rejoin = not present and not state.closed
        self._asked = Asked(
            rejoin=rejoin,
            resize=rejoin and not state.complete and any(why.resize for why in state.why),
            drain=view.drained and not state.closed,
            grace=view.control.grace,
            closed=state.reason if state.closed else None,
            waiting=sum(each.role is Role.WAITING for each in state.nodes.values()),
        )
