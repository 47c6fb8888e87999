"""The first process of a container: runs one command, buries the dead, and ends it in order when it is told to stop.

SageMaker sends SIGTERM and kills after 120 seconds. A script that answers notices is asked for a checkpoint first, and
gets SIGTERM when it has saved; any other gets SIGTERM at once, so that it has all the time there is. It must not know
what the command is, nor speak to AWS.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from subprocess import Popen

from trainmaster.worker.checkpoints.notices import Notices, Reason
from trainmaster.worker.container.processes import adopt_orphans, blocked, bury, reap, send, start

STOPS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})
"""What ends the container."""
HEARD = STOPS | {signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD}
LOOK_SECONDS = 0.05
"""How often the answers to a notice are looked for, once there is one; before that nothing is polled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds between SIGTERM and the container's end.

    Attributes:
        total: until SageMaker kills all ("StopTrainingJob", API reference: 120).
        reserve: SIGTERM goes to the command so long before that at the latest, notices answered or not.
        last: it is killed so long before that, so that its end can still be reported.
        leaving: how long a node may take to leave its rendezvous by itself once its workers have saved; 0 where
            the command takes part in none.
    """

    total: float = 120.0
    reserve: float = 15.0
    last: float = 3.0
    leaving: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command ended: its exit code (negative: the signal that killed it), and whether it had been stopped."""

    returncode: int
    stopped: bool


class Supervisor:
    """Runs one command to its end.

    Args:
        command: its argument list.
        environ: its environment.
        notices: where its workers enrol.
        patience: how long a stop may take.
        clock: the machine's monotonic clock.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        notices: Notices,
        patience: Patience,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._environ = environ
        self._notices = notices
        self._patience = patience
        self._clock = clock
        self._stop: _Stop | None = None

    def run(self) -> Ended:
        """Start the command and see it to its end; nothing of it is left behind.

        Raises `OSError` where it cannot be started. Signals that come before it has started are kept for it.
        """
        adopt_orphans()
        with blocked(HEARD):
            child = start(self._command, self._environ)
            try:
                while reap(child) is None:
                    self._hear(child)
            finally:
                bury()
        return Ended(child.returncode, self._stop is not None)

    def _hear(self, child: Popen[bytes]) -> None:
        heard = signal.sigtimedwait(HEARD, LOOK_SECONDS if self._stop else 3600.0)
        number = signal.Signals(heard.si_signo) if heard else None
        if number in STOPS:
            self._told_to_stop(child)
        elif number is signal.SIGUSR1:
            self._notices.ask(Reason.RESIZE)
        elif number is not None and number is not signal.SIGCHLD:
            send(child, number, group=False)
        if self._stop is not None:
            self._stop.go_on(child, self._clock())

    def _told_to_stop(self, child: Popen[bytes]) -> None:
        if self._stop is not None:
            return self._stop.hurry(child)
        began = self._clock()
        asked = self._notices.ask(Reason.STOP) if self._notices.enrolled() else None
        if asked is not None and self._patience.leaving:
            self._notices.leave(began + self._patience.total - self._patience.reserve)
        self._stop = _Stop(self._notices, self._patience, began, asked)
        return None


class _Stop:
    """One stop, from the signal to the end of the command."""

    def __init__(self, notices: Notices, patience: Patience, began: float, asked: int | None) -> None:
        self._notices = notices
        self._asked = asked
        self._leaving = patience.leaving
        self._term_at = began + (patience.total - patience.reserve if asked is not None else 0.0)
        self._kill_at = began + patience.total - patience.last
        self._saved = False
        self._sent = False

    def go_on(self, child: Popen[bytes], now: float) -> None:
        """Do what is due."""
        if self._asked is not None and not self._saved and self._notices.settled(self._asked):
            self._saved = True
            self._term_at = min(self._term_at, now + self._leaving)
        if now >= self._term_at and not self._sent:
            self.hurry(child)
        if now >= self._kill_at:
            send(child, signal.SIGKILL, group=True)

    def hurry(self, child: Popen[bytes]) -> None:
        """SIGTERM to the command itself: it knows best what to tell its own processes."""
        self._sent = True
        send(child, signal.SIGTERM, group=False)
