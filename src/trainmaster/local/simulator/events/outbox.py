"""Delivers the engine's messages in order, outside its lock.

A receiver may call the simulator; the same outer loop delivers the messages that this adds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from trainmaster.local.simulator.events.events import Envelope, Sink
from trainmaster.local.simulator.events.log_lines import LOG_GROUP, LogLine, LogSink, stream_of
from trainmaster.local.simulator.service.job import TrainingJob
from trainmaster.local.simulator.service.state import (
    Message,
    ScriptLine,
    SignalContainer,
    StartContainer,
    StatusChange,
)


class Containers(Protocol):
    """Runs commands as training scripts, and reports their ends."""

    def set_exit_handler(self, exited: Callable[[str, int, str | None], None]) -> None:
        """Set the function to call when a script has ended: job, run, and the failure or None."""
        ...

    def runs(self, job: TrainingJob) -> bool:
        """Return whether a job runs as processes, rather than for the time of its profile."""
        ...

    def start(self, job: TrainingJob, run: int) -> None:
        """Start the job's script."""
        ...

    def signal(self, name: str, run: int, *, kill: bool) -> None:
        """Ask a script to end, or kill it."""
        ...

    def close(self) -> None:
        """End all scripts and wait for their end."""
        ...


class Outbox:
    """Delivers messages.

    Args:
        outbox: the engine's messages.
        envelope: makes events of status changes.
        sink: called with each event; may be None, and may be set later.
        containers: run commands; None if the simulator runs none.
        on_change: called with the name of each training job that has changed, instead of the sink.

    Attributes:
        logs: called with each line of a simulated script's log; may be None.
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
        self._containers = containers
        self._on_change = on_change
        self._draining = threading.Lock()
        self.envelope = envelope
        self.sink = sink
        self.logs: LogSink | None = None

    def drain(self) -> None:
        """Deliver all messages, unless another thread is delivering."""
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
            elif isinstance(message, ScriptLine):
                self._log(message)
            elif self._containers is not None:
                self._send_command(self._containers, message)

    def _publish(self, change: StatusChange) -> None:
        if self._on_change is not None:
            self._on_change(change.name)
        elif self.sink is not None:
            self.sink(self.envelope.event_for(change))

    def _log(self, line: ScriptLine) -> None:
        if self.logs is not None:
            for number in range(1, line.instances + 1):
                stream = stream_of(line.name, f"algo-{number}", line.start)
                self.logs(LogLine(LOG_GROUP, stream, line.at, line.text))

    @staticmethod
    def _send_command(containers: Containers, message: StartContainer | SignalContainer) -> None:
        if isinstance(message, StartContainer):
            containers.start(message.job, message.run)
        else:
            containers.signal(message.name, message.run, kill=message.kill)
