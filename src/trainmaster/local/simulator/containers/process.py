"""A training script as a process group, and the guardian that kills groups when this process dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from trainmaster.local.simulator.containers.layout import Container


class ScriptProcess:
    """A process group that runs a script.

    Args:
        container: directory, environment, command, and the file for the failure message. No shell gets the command.

    Raises `OSError` if it cannot be started.
    """

    def __init__(self, container: Container) -> None:
        self._failure = container.failure
        self._reaped = False
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            container.argv,
            cwd=container.directory,
            env=dict(container.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def group(self) -> int:
        """Number of the process group."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes] | None:
        """Standard output and standard error in one stream."""
        return self._process.stdout

    def send(self, number: int) -> None:
        """Signal the whole group, unless the id of its leader may have been reused."""
        with self._lock:
            if not self._reaped:
                _kill_group(self.group, number)

    def wait(self) -> None:
        """Wait for the end of the script, then kill its remaining children."""
        _await_end(self._process)
        with self._lock:
            _kill_group(self.group, signal.SIGKILL)
            self._process.wait()
            self._reaped = True

    def failure_reason(self) -> str | None:
        """Return the `FailureReason`: text of `output/failure` and exit code; None if the script succeeded."""
        code = self._process.returncode
        if code == 0:
            return None
        message = self._failure.read_text(errors="replace").strip() if self._failure.is_file() else ""
        return f"AlgorithmError: {message[:900]}, exit code: {code if code > 0 else 128 - code}"


class Guardian:
    """The process that kills this process's groups after its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        program = Path(__file__).with_name("guardian.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def guard(self, group: int) -> None:
        """Add a process group."""
        self._send(f"+{group}\n")

    def unguard(self, group: int) -> None:
        """Remove a process group that has ended."""
        self._send(f"-{group}\n")

    def close(self) -> None:
        """Have the guardian kill the remaining groups, and wait for its end."""
        with self._lock:
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.close()
        self._process.wait()

    def _send(self, line: str) -> None:
        with self._lock:
            pipe = self._process.stdin
            if pipe is not None and not pipe.closed:
                pipe.write(line)
                pipe.flush()


def _await_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the leader without reaping it: the group's number cannot be reused while it is a zombie."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
