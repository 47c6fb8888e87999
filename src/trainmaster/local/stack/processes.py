"""Processes of the local stack: started under a guard, waited for with a deadline, ended together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from trainmaster.local.stack import guard

_LINES_SHOWN = 25
_MEMORY = Path("/dev/shm")  # noqa: S108 - only for folders with random names
_MIN_FREE_BYTES = 4 * 2**30
"""Free memory from which a stack may use a part of it: it uses a tenth."""


class StartFailed(Exception):
    """A part of the local stack ended early, or was not ready in time. The message ends with its last output."""


class GuardedProcess:
    """A process that ends when this object is closed, or when the process that created it dies.

    Its output goes to `log`; without one, to the output of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str], log: Path | None
    ) -> None:
        self.name = name
        self.log = log
        with contextlib.ExitStack() as open_files:
            output = None if log is None else open_files.enter_context(log.open("wb"))
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """True until the command has ended."""
        return self._guard.poll() is None

    def wait(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        return self._guard.wait()

    def close(self) -> None:
        """End the command and all processes of its process group."""
        if self._guard.stdin:
            self._guard.stdin.close()
        try:
            self._guard.wait(guard.GRACE_SECONDS + 2)
        except subprocess.TimeoutExpired:
            os.killpg(self._guard.pid, signal.SIGKILL)
            self._guard.wait()

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Poll `ready` until it returns True. Raises StartFailed if the process ends first or time is up."""
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise StartFailed(f"{self.name} ended while starting:\n{last_lines(self.log)}")
            if time.monotonic() > deadline:
                raise StartFailed(f"{self.name} was not ready in {seconds:.0f} seconds:\n{last_lines(self.log)}")
            time.sleep(0.05)


def run(name: str, command: Sequence[str | Path], environment: Mapping[str, str], log: Path) -> None:
    """Run a command to its end, with its output in `log`. Raises StartFailed if it fails."""
    with contextlib.closing(GuardedProcess(name, command, environment, log)) as process:
        if process.wait():
            raise StartFailed(f"{name} failed:\n{last_lines(log)}")


def last_lines(log: Path | None) -> str:
    """Return the end of a log, for an error message; nothing without one."""
    if log is None:
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LINES_SHOWN:])


def free_port() -> int:
    """Return a loopback port on which no process listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listening(port: int) -> bool:
    """Return True if a process accepts connections on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that open resources close; SIGINT already is KeyboardInterrupt.

    Python delivers signals to the main thread only. In other threads this has no effect, and the guards end the
    processes.
    """
    try:
        before = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def memory_folder(memory: Path = _MEMORY, min_free: int = _MIN_FREE_BYTES) -> Path | None:
    """Return a folder in memory with enough space whose programs may run; None without one.

    ministack unpacks a function for each of its processes, thousands of files in all. On a slow disk, deleting them
    takes longer than a test.
    """
    try:
        found = os.statvfs(memory)
    except (AttributeError, OSError):
        return None
    runs = not found.f_flag & getattr(os, "ST_NOEXEC", 0)
    return memory if runs and os.access(memory, os.W_OK) and found.f_bavail * found.f_frsize >= min_free else None
