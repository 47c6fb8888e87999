"""A training script as a process group of its own, and the guardian that lets none outlive this process.

It must not know jobs, clocks or logs: `runner` does.
"""

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
    """One process group, from its start to its end.

    Args:
        argv: the command; no shell sees it.
        container: its directory and environment, and where it may say why it failed.

    Raises `OSError` where it cannot be started.
    """

    def __init__(self, argv: list[str], container: Container) -> None:
        self._failure = container.failure
        self._reaped = False
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            argv,
            cwd=container.directory,
            env=dict(container.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def group(self) -> int:
        """The number of the process group."""
        return self._process.pid

    @property
    def output(self) -> IO[bytes] | None:
        """What it writes, both streams as one."""
        return self._process.stdout

    def send(self, number: int) -> None:
        """Signal the whole group, unless its leader's id may be somebody else's already."""
        with self._lock:
            if not self._reaped:
                _kill_group(self.group, number)

    def wait(self) -> None:
        """Wait for its end, then see that none of its children is left."""
        _await_end(self._process)
        with self._lock:
            _kill_group(self.group, signal.SIGKILL)
            self._process.wait()
            self._reaped = True

    def failure_reason(self) -> str | None:
        """The `FailureReason`: what it left in `output/failure`, and its exit code as a shell would tell it."""
        code = self._process.returncode
        if code == 0:
            return None
        said = self._failure.read_text(errors="replace").strip() if self._failure.is_file() else ""
        return f"AlgorithmError: {said[:900]}, exit code: {code if code > 0 else 128 - code}"


class Guardian:
    """The process that outlives this one just long enough to kill what it started."""

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
        """Take a process group under its guard."""
        self._send(f"+{group}\n")

    def unguard(self, group: int) -> None:
        """Take it out again: it has ended."""
        self._send(f"-{group}\n")

    def close(self) -> None:
        """Let it kill what is left, and end."""
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
    """Wait for the leader without reaping it: while it is a zombie, its group's number belongs to nobody else."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
