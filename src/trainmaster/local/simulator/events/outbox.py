"""Hands what the engine has to say to the outside, in order and outside the engine's lock.

A receiver may call the simulator back: what that adds to the outbox is handed out by the same, outer, loop.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from trainmaster.local.simulator.events.events import Envelope, Sink
from trainmaster.local.simulator.service.job import TrainingJob
from trainmaster.local.simulator.service.state import Message, SignalContainer, StartContainer, StatusChange


class Containers(Protocol):
    """What runs real commands as training scripts; it reports their ends to the simulator."""

    def set_exit_handler(self, exited: Callable[[str, int, str | None], None]) -> None:
        """Tell this one when a script has ended: job, run, and why it failed, None that it did not."""
        ...

    def start(self, job: TrainingJob, run: int) -> None:
        """Start the job's script."""
        ...

    def signal(self, name: str, run: int, *, kill: bool) -> None:
        """Tell a script to end, or end it."""
        ...

    def close(self) -> None:
        """End all scripts and wait until they have."""
        ...


class Outbox:
    """The one who empties the outbox.

    Args:
        outbox: what the engine leaves.
        envelope: makes events of changes.
        sink: takes events; None where nobody does. May be set later.
        containers: run real commands; None where there are none.
        on_change: takes the name of each training job that has changed, in the place of the sink.
    """

    def __init__(
        self,
        outbox: deque[Message],
        envelope: Envelope,
        sink: Sink | None,
        containers: Containers | None,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        self._outbox = outbox
        self._envelope = envelope
        self._containers = containers
        self._on_change = on_change
        self._draining = threading.Lock()
        self.sink = sink

    def drain(self) -> None:
        """Hand everything out, unless somebody is doing that already."""
        while self._outbox and self._draining.acquire(blocking=False):
            try:
                self._drain_once()
            finally:
                self._draining.release()

    def _drain_once(self) -> None:
        while self._outbox:
            message = self._outbox.popleft()
            if isinstance(message, StatusChange):
                self._publish(message)
            elif self._containers is not None:
                self._send_command(self._containers, message)

    def _publish(self, change: StatusChange) -> None:
        if self._on_change is not None:
            self._on_change(change.name)
        elif self.sink is not None:
            self.sink(self._envelope.event_for(change))

    @staticmethod
    def _send_command(containers: Containers, message: StartContainer | SignalContainer) -> None:
        if isinstance(message, StartContainer):
            containers.start(message.job, message.run)
        else:
            containers.signal(message.name, message.run, kill=message.kill)
