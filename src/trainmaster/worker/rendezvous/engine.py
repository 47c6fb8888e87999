"""One node of a rendezvous: join, status, leave and close, with a thread that sends heartbeats.

Handlers and launchers build on `Engine`; `Rendezvous` is its interface for programs. Blocking calls wait with the
`sleep` argument; a simulation drives the generators and waits itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from math import inf
from typing import TypeVar

from trainmaster.worker.rendezvous.actions import Payload
from trainmaster.worker.rendezvous.errors import Corrupt, Drained, TimedOut, Unreachable
from trainmaster.worker.rendezvous.executor import Executor, Step
from trainmaster.worker.rendezvous.operators import (
    AwaitEndpointOp,
    CloseOp,
    DrainOp,
    ExitOp,
    JoinOp,
    KeepAliveOp,
    Operator,
    PublishEndpointOp,
)
from trainmaster.worker.rendezvous.state import Endpoint, Role, State
from trainmaster.worker.rendezvous.view import View
from trainmaster.worker.rendezvous.watching.presence import Want
from trainmaster.worker.rendezvous.world import World, WorldStatus, world_of

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FIRST_LOG_SECONDS = 10.0
"""Wait for a world that is not worth a line in the log: nodes of one job start within seconds of each other."""


class RareLog:
    """Logs a wait: once it has lasted for a number of seconds, and then each time it has lasted twice as long.

    Args:
        now: seconds.
        after: seconds after which the wait is worth a line.
    """

    def __init__(self, now: Callable[[], float], after: float) -> None:
        self._now = now
        self._began = now()
        self._due = after

    def __call__(self, text: Callable[[float], str]) -> None:
        """Log the text for the seconds that the wait has lasted, if a line is due."""
        waited = self._now() - self._began
        if waited >= self._due:
            self._due = 2 * max(waited, _FIRST_LOG_SECONDS)
            _log.warning("trainmaster: %s", text(waited))


class Engine:
    """A node.

    Args:
        executor: its access to the shared state.
        sleep: waits for a number of seconds.
    """

    def __init__(self, executor: Executor, sleep: Callable[[float], object]) -> None:
        self._executor = executor
        self._settings = executor.settings
        self._now = executor.clocks.monotonic
        self._sleep = sleep
        self._round = 0
        self._status = WorldStatus()
        self._next_read_at = 0.0
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._is_abandoned = False

    @property
    def round(self) -> int:
        """Round of this node's last world; 0 before the first."""
        return self._round

    @property
    def state(self) -> State:
        """State as this node last saw it; it includes the record of restarts."""
        return self._executor.state

    # ------------------------------------------------------------ blocking calls

    def join(self, timeout: float | None = None) -> World:
        """Join the next world. A call while the current one works means that this node's workers have failed.

        Args:
            timeout: seconds to wait while no world works; None for the settings' `join_timeout`.

        Raises:
            Closed: the rendezvous is closed.
            Drained: this node must leave, and has left.
            TimedOut: no world formed in time; this node has left.
            Unreachable: the table has not responded for the timeout.
            Corrupt: the stored row is not valid.
        """
        return self._drive(self.joining(timeout))

    def publish(self, host: str, port: int) -> None:
        """Publish the address on which this node, the first rank of the world, listens.

        Raises:
            RoundLost: another round has begun; likewise `Closed`, `Unreachable`.
        """
        self._drive(self.publishing(host, port))

    def endpoint(self, timeout: float | None = None) -> tuple[str, int]:
        """Return host and port of the first rank of the current world, once published.

        Raises:
            RoundLost: another round has begun; likewise `TimedOut`, `Closed`, `Unreachable`.
        """
        return self._drive(self.awaiting_endpoint(timeout))

    def leave(self) -> None:
        """Leave without closing the rendezvous. After `close_timeout` give up; the other nodes then evict this one."""
        self.stop_keep_alive()
        try:
            self._drive(self.leaving())
        except (Unreachable, TimedOut) as error:
            _log.warning("could not leave the rendezvous; the other nodes will evict this one: %s", error)

    def close(self, reason: str) -> None:
        """Close the rendezvous for all nodes.

        Raises:
            Unreachable: the table has not responded within `close_timeout`; likewise `TimedOut`, `Corrupt`.
        """
        self.stop_keep_alive()
        self._drive(self.closing(reason))

    # ------------------------------------------------------------ the same calls as generators

    def joining(self, timeout: float | None = None) -> Generator[float, None, World]:
        """Yield the seconds to wait; see `join`."""
        limit = self._settings.join_timeout if timeout is None else timeout
        self._executor.declare(Want.JOIN, self._round)
        try:
            operator = JoinOp(after=self._round, started=self._now(), timeout=limit)
            log = RareLog(self._now, _FIRST_LOG_SECONDS)
            view = yield from self._executor.run(
                operator, timeout=limit, observe=lambda step: log(partial(_cause_of_wait, step))
            )
        except (TimedOut, Drained):
            self._executor.withdraw()
            raise
        world = world_of(view.state, view.identity.name)
        if world is None:  # JoinOp finishes only for a member of a complete world
            raise AssertionError(f"joined round {view.state.round} without a rank")
        self._round = world.round
        self._executor.declare(Want.WORK, world.round)
        self._update_status(view)
        return world

    def publishing(self, host: str, port: int) -> Generator[float, None, None]:
        """Yield the seconds to wait; see `publish`."""
        where = Endpoint(round=self._round, host=host, port=port)
        yield from self._run(PublishEndpointOp(endpoint=where), self._settings.join_timeout)

    def awaiting_endpoint(self, timeout: float | None = None) -> Generator[float, None, tuple[str, int]]:
        """Yield the seconds to wait; see `endpoint`."""
        limit = self._settings.join_timeout if timeout is None else timeout
        view = yield from self._run(AwaitEndpointOp(round=self._round, deadline=self._now() + limit), limit)
        where = view.endpoint
        if where is None:  # AwaitEndpointOp finishes only once there is an endpoint
            raise AssertionError("the endpoint is missing")
        return where.host, where.port

    def leaving(self) -> Generator[float, None, None]:
        """Yield the seconds to wait; see `leave`.

        Raises:
            Unreachable: the table has not responded for `close_timeout`; likewise `TimedOut`.
        """
        limit = self._settings.close_timeout
        deadline = self._now() + limit
        yield from self._run(ExitOp(deadline=deadline), limit, deadline)
        self._executor.withdraw()

    def closing(self, reason: str) -> Generator[float, None, None]:
        """Yield the seconds to wait; see `close`."""
        limit = self._settings.close_timeout
        deadline = self._now() + limit
        yield from self._run(CloseOp(deadline=deadline, payload=Payload(reason=reason)), limit, deadline)

    def sending_heartbeat(self) -> Generator[float, None, None]:
        """Send one heartbeat and act on requests and dead nodes; yield the seconds to wait.

        Raises:
            Unreachable: the table does not respond; the next heartbeat tries again. Likewise `TimedOut`.
        """
        limit = self._settings.keep_alive_timeout
        yield from self._executor.run(DrainOp(deadline=self._now() + limit), timeout=limit, cached=True)
        # The state that DrainOp has read is recent enough.
        operator = KeepAliveOp(deadline=self._now() + limit)
        view = yield from self._executor.run(operator, timeout=limit, cached=True)
        self._update_status(view)

    # ------------------------------------------------------------ calls that do not wait

    def status(self) -> WorldStatus:
        """Return the status of this node, which reads only if a read is due (`settings`); the last one if it fails.

        A resize is announced in the table before it is returned, so everything that breaks because of it counts as a
        resize.

        Raises:
            Corrupt: the stored row is not valid.
        """
        began = self._now()
        if began < self._next_read_at:
            return self._status
        # Counted from before the read: this process may be suspended during it, and then its result is old.
        self._next_read_at = began + self._settings.poll_interval
        step = self._executor.step(KeepAliveOp(deadline=began + self._settings.keep_alive_interval), cached=True)
        if step.view is None:
            self._next_read_at = self._now() + step.pause
        if step.view is not None and step.pause == 0.0 and step.action is not None:
            step = self._executor.step(KeepAliveOp(deadline=self._now()), cached=True)
        if step.view is not None:
            self._next_read_at = self._executor.next_read_at
            self._update_status(step.view)
        return self._status

    def is_closed(self) -> bool:
        """Return whether the rendezvous is closed. Always reads the table.

        Raises:
            Unreachable: the table does not respond.
            Corrupt: the stored row is not valid.
        """
        return self._executor.read_state().closed

    def fenced(self, round_: int | None = None) -> bool:
        """Return whether a world newer than that of a round (None: this node's own) has formed. Always reads the table.

        If so, do not write checkpoints.

        Raises:
            Unreachable: the table does not respond; do not write a checkpoint then.
        """
        latest = self._executor.read_state().latest_round
        return latest > (self._round if round_ is None else round_)

    # ------------------------------------------------------------ the heartbeat thread

    def start_keep_alive(self) -> None:
        """Send heartbeats in a thread until `stop_keep_alive`, `leave` or `close`."""
        if self._thread is not None:
            return
        stop = threading.Event()
        thread = threading.Thread(
            target=self._send_heartbeats_until, args=(stop,), name="trainmaster-keep-alive", daemon=True
        )
        self._stop, self._thread = stop, thread
        thread.start()

    def stop_keep_alive(self) -> None:
        """Stop the heartbeats; return at once, although a heartbeat under way may still complete."""
        if self._stop is not None:
            self._stop.set()
        self._stop = self._thread = None

    def abandon(self) -> None:
        """Stop the heartbeats, and leave from their thread. For a node whose program has forgotten it; never waits."""
        self._is_abandoned = True
        self.stop_keep_alive()

    def _send_heartbeats_until(self, stop: threading.Event) -> None:
        log: RareLog | None = None
        while not stop.wait(self._settings.keep_alive_interval):
            try:
                for pause in self.sending_heartbeat():
                    if stop.wait(pause):
                        break
                log = None
            except Exception as error:  # noqa: BLE001 - without this thread, the other nodes would evict this one
                log = log or RareLog(self._now, 0.0)
                log(partial(_failed_heartbeat, error))
        if self._is_abandoned:
            with suppress(Corrupt):
                self.leave()

    def sleep(self, seconds: float) -> None:
        """Wait with the `sleep` argument."""
        self._sleep(seconds)

    # ------------------------------------------------------------ helpers

    def _run(self, operator: Operator, timeout: float, deadline: float = inf) -> Generator[float, None, View]:
        return self._executor.run(operator, timeout=timeout, deadline=deadline)

    def _drive(self, steps: Generator[float, None, T]) -> T:
        while True:
            try:
                pause = next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            if pause > 0:
                self._sleep(pause)

    def _update_status(self, view: View) -> None:
        state, own = view.state, view.node
        is_current = state.complete and state.round == self._round and own is not None and own.role is Role.MEMBER
        rejoin = not is_current and not state.closed
        # A node that was evicted has nothing to save: its world ended before this round opened.
        is_next = own is not None and not state.complete and state.round == self._round + 1
        self._status = WorldStatus(
            rejoin=rejoin,
            resize=rejoin and is_next and any(reason.is_resize for reason in state.why),
            drain=view.is_drained and not state.closed,
            grace=view.control.grace if own is not None else 0.0,
            closed=state.reason if state.closed else None,
            waiting=sum(node.role is Role.WAITING for node in state.nodes.values()),
        )


def _cause_of_wait(step: Step, waited: float) -> str:
    cause = f"the rendezvous: {step.error}" if step.view is None else step.view.missing
    return f"has waited for {waited:.0f} s, for {cause}"


def _failed_heartbeat(error: Exception, waited: float) -> str:
    return f"heartbeats fail, for {waited:.0f} s now, and the work goes on: {type(error).__name__}: {error}"
