"""The first process of a container: runs one command, reaps dead processes, and stops the command in order.

SageMaker sends SIGTERM and kills after 120 seconds. If workers answer checkpoint requests, they are asked for a
checkpoint first and get SIGTERM once they have saved; otherwise SIGTERM is forwarded at once, to leave the command all
the time.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import Popen

from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.container.processes import (
    become_subreaper,
    kill_children,
    reap,
    send_signal,
    signals_blocked,
    start,
)

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})
"""Signals that end the container."""
HANDLED_SIGNALS = STOP_SIGNALS | {signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD}
POLL_SECONDS = 0.05
"""Interval of checks for answers after a checkpoint request; before one, nothing is polled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTimeouts:
    """Seconds between SIGTERM and the container's end.

    Attributes:
        total: until SageMaker kills all processes ("StopTrainingJob", API reference: 120).
        sigterm_margin: the command gets SIGTERM this long before `total`, whether its workers have saved or not.
        sigkill_margin: it is killed this long before `total`, so that its end can be reported.
        leave_timeout: time for a node to leave its rendezvous once its workers have saved; 0 without a rendezvous.
    """

    total: float = 120.0
    sigterm_margin: float = 15.0
    sigkill_margin: float = 3.0
    leave_timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of the command: its exit code (negative: the signal that killed it), and whether it was stopped."""

    returncode: int
    stopped: bool


class Supervisor:
    """Runs one command to its end.

    Args:
        command: its argument list.
        environ: its environment.
        notices: directory in which its workers register.
        timeouts: limits of a stop.
        clock: the machine's monotonic clock.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        notices: Notices,
        timeouts: StopTimeouts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._environ = environ
        self._notices = notices
        self._timeouts = timeouts
        self._clock = clock
        self._stop: _Stop | None = None

    def run(self) -> CommandResult:
        """Run the command to its end, and leave no process of it behind. It gets signals that came before it started.

        Raises:
            OSError: it cannot be started.
        """
        become_subreaper()
        with signals_blocked(HANDLED_SIGNALS):
            child = start(self._command, self._environ)
            try:
                while reap(child) is None:
                    self._handle_next_signal(child)
            finally:
                kill_children()
        return CommandResult(child.returncode, self._stop is not None)

    def _handle_next_signal(self, child: Popen[bytes]) -> None:
        received = signal.sigtimedwait(HANDLED_SIGNALS, POLL_SECONDS if self._stop else 3600.0)
        number = signal.Signals(received.si_signo) if received else None
        if number in STOP_SIGNALS:
            self._begin_stop(child)
        elif number is signal.SIGUSR1:
            self._request_checkpoint(Reason.RESIZE)
        elif number is not None and number is not signal.SIGCHLD:
            send_signal(child, number, group=False)
        if self._stop is not None:
            self._stop.advance(child, self._clock())

    def _begin_stop(self, child: Popen[bytes]) -> None:
        if self._stop is not None:
            return self._stop.terminate(child)
        began = self._clock()
        request = self._request_checkpoint(Reason.STOP) if self._notices.worker_pids() else None
        if request is not None and self._timeouts.leave_timeout:
            with suppress(OSError):  # such as a full disk: the agent then gets SIGTERM once its workers have saved
                self._notices.announce_leave(began + self._timeouts.total - self._timeouts.sigterm_margin)
        self._stop = _Stop(self._notices, self._timeouts, began, request)
        return None

    def _request_checkpoint(self, reason: Reason) -> int | None:
        """Request a checkpoint; return None if that is not possible, as on a full disk."""
        try:
            return self._notices.request_checkpoint(reason)
        except OSError as error:
            sys.stderr.write(f"trainmaster-run: the workers cannot be asked for a checkpoint: {error}\n")
            return None


class _Stop:
    """One stop, from the signal to the end of the command."""

    def __init__(self, notices: Notices, timeouts: StopTimeouts, began: float, request: int | None) -> None:
        self._notices = notices
        self._request = request
        self._leave_timeout = timeouts.leave_timeout
        self._term_at = began + (timeouts.total - timeouts.sigterm_margin if request is not None else 0.0)
        self._kill_at = began + timeouts.total - timeouts.sigkill_margin
        self._saved = False
        self._terminated = False

    def advance(self, child: Popen[bytes], now: float) -> None:
        """Send the signals that are due."""
        if self._request is not None and not self._saved and self._notices.is_answered(self._request):
            self._saved = True
            self._term_at = min(self._term_at, now + self._leave_timeout)
        if now >= self._term_at and not self._terminated:
            self.terminate(child)
        if now >= self._kill_at:
            send_signal(child, signal.SIGKILL, group=True)

    def terminate(self, child: Popen[bytes]) -> None:
        """Send SIGTERM to the command itself, which forwards it to its own processes."""
        self._terminated = True
        send_signal(child, signal.SIGTERM, group=False)
