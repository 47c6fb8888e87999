"""Runs a job's own command as its training script: a real process group on this machine.

A command is the argument list of `ContainerEntrypoint` and `ContainerArguments`; no shell ever sees a request. It
is used only where the simulator was built with it, which is what allowing commands means. No process outlives it:
a guardian kills the groups when this process dies, `close` when it ends. It must not know states.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

from trainmaster.local.simulator.clock import Clock
from trainmaster.local.simulator.job import TrainingJob
from trainmaster.local.simulator.layout import Container, build

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
LONGEST_LINE = 200_000
"""Bytes: CloudWatch Logs takes 256 KB an event."""
LAST_WORDS_SECONDS = 1.0
"""How long `close` waits between SIGTERM and SIGKILL, and for the rest of a script's output."""
NOT_STARTED = 127
"""The exit code that a shell would give a command that cannot be started."""
Exited = Callable[[str, int, str | None], None]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a script's output, for CloudWatch Logs."""

    group: str
    stream: str
    at: datetime
    text: str


LogSink = Callable[[LogLine], None]


@dataclass(slots=True)
class _Script:
    name: str
    run: int
    process: subprocess.Popen[bytes]
    failure: Path
    reaped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, number: int) -> None:
        """Signal the whole group, unless its leader's id may be somebody else's already."""
        with self.lock:
            if not self.reaped:
                _kill_group(self.process.pid, number)


class CommandRunner:
    """Starts, signals and buries scripts.

    Args:
        root: where jobs' directories and checkpoints are made.
        clock: what time a line of output came.
        logs: takes each line; called from a thread of the script.
        inherited: the environment that every script has besides its own.
    """

    def __init__(
        self, root: Path, clock: Clock, *, logs: LogSink | None = None, inherited: Mapping[str, str] | None = None
    ) -> None:
        self._root = root
        self._clock = clock
        self._logs = logs
        self._inherited = inherited or {}
        self._exited: Exited = lambda _name, _run, _failure: None
        self._lock = threading.Lock()
        self._scripts: dict[tuple[str, int], _Script] = {}
        self._watchers: set[threading.Thread] = set()
        self._closed = False
        self._guardian = _Guardian()
        atexit.register(self.close)

    def report_to(self, exited: Exited) -> None:
        """Tell this one when a script has ended."""
        self._exited = exited

    def start(self, job: TrainingJob, run: int) -> None:
        """Start the job's command. One that cannot be started has ended with the reason."""
        try:
            self._start(job, run)
        except OSError as error:
            self._exited(job.name, run, f"AlgorithmError: {error}, exit code: {NOT_STARTED}")

    def signal(self, name: str, run: int, *, kill: bool) -> None:
        """SIGTERM, or SIGKILL, to the script and all its children; nothing where it has ended."""
        script = self._scripts.get((name, run))
        if script is not None:
            script.send(signal.SIGKILL if kill else signal.SIGTERM)

    def close(self) -> None:
        """End all scripts, by force where they do not go at once, and wait until they have."""
        with self._lock:
            self._closed = True
            scripts, watchers = list(self._scripts.values()), list(self._watchers)
        for script in scripts:
            script.send(signal.SIGTERM)
        for watcher in watchers:
            watcher.join(LAST_WORDS_SECONDS / max(1, len(watchers)))
        for script in scripts:
            script.send(signal.SIGKILL)
        for watcher in watchers:
            watcher.join(LAST_WORDS_SECONDS)
        self._guardian.close()
        atexit.unregister(self.close)

    def _start(self, job: TrainingJob, run: int) -> None:
        container = build(self._root, job, self._inherited)
        with self._lock:
            if self._closed:
                return
            process = _spawn(job.argv, container)
            self._guardian.watch(process.pid)
            script = _Script(job.name, run, process, container.failure)
            self._scripts[job.name, run] = script
            stream = f"{job.name}/algo-1-{int(self._clock.now().timestamp())}"
            watcher = threading.Thread(target=self._watch, args=(script, stream), name=job.name, daemon=True)
            self._watchers.add(watcher)
        watcher.start()

    def _watch(self, script: _Script, stream: str) -> None:
        """Follow a script to its end, then see that none of its children is left."""
        output = script.process.stdout
        reader = threading.Thread(target=self._read, args=(output, stream), daemon=True)
        reader.start()
        _await_end(script.process)
        with script.lock:
            _kill_group(script.process.pid, signal.SIGKILL)
            script.process.wait()
            script.reaped = True
        self._guardian.forget(script.process.pid)
        reader.join(LAST_WORDS_SECONDS)
        self._bury(script)

    def _bury(self, script: _Script) -> None:
        with self._lock:
            del self._scripts[script.name, script.run]
            self._watchers.discard(threading.current_thread())
            closed = self._closed
        if not closed:
            self._exited(script.name, script.run, _why_failed(script))

    def _read(self, output: IO[bytes] | None, stream: str) -> None:
        if output is None:
            return
        with output:
            while raw := output.readline(LONGEST_LINE):
                if self._logs is not None:
                    text = raw.decode(errors="replace").rstrip("\r\n")
                    self._logs(LogLine(LOG_GROUP, stream, self._clock.now(), text))


class _Guardian:
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

    def watch(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def close(self) -> None:
        with self._lock:
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        with self._lock:
            pipe = self._process.stdin
            if pipe is not None and not pipe.closed:
                pipe.write(line)
                pipe.flush()


def _spawn(argv: list[str], container: Container) -> subprocess.Popen[bytes]:
    """The command in a session, and so a process group, of its own."""
    return subprocess.Popen(
        argv,
        cwd=container.directory,
        env=dict(container.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _await_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the leader without reaping it: while it is a zombie, its group's number belongs to nobody else."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _why_failed(script: _Script) -> str | None:
    """The `FailureReason`: what the script left in `output/failure`, and its exit code as a shell would tell it."""
    code = script.process.returncode
    if code == 0:
        return None
    said = script.failure.read_text(errors="replace").strip() if script.failure.is_file() else ""
    return f"AlgorithmError: {said[:900]}, exit code: {code if code > 0 else 128 - code}"
