"""Runs the command of a training job: a process group on this machine for each instance.

A command is the argument list of `ContainerEntrypoint` and `ContainerArguments`; no shell is involved. The simulator
runs commands only if it was created with a runner. No process outlives the runner: `close` ends them, and the guardian
kills them if this process dies.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from trainmaster.local.simulator.clock import Clock
from trainmaster.local.simulator.containers.hosts import LoopbackAddresses, hosts_of
from trainmaster.local.simulator.containers.layout import InstanceSlot, build_container
from trainmaster.local.simulator.containers.process import Guardian, ScriptProcess
from trainmaster.local.simulator.service.job import TrainingJob

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
MAX_LINE_LENGTH = 200_000
"""Bytes: an event of CloudWatch Logs has at most 256 KB."""
EXIT_GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL after the failure of another instance and in `close`; also for the rest of the output."""
EXIT_CODE_NOT_STARTED = 127
"""A shell's exit code for a command that cannot be started."""
ADDRESS_STRIDE = 251
"""Offset between the first addresses of simulators with adjacent process ids."""
ExitHandler = Callable[[str, int, str | None], None]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a script's output, for CloudWatch Logs."""

    group: str
    stream: str
    at: datetime
    text: str


LogSink = Callable[[LogLine], None]


@dataclass(slots=True)
class _Run:
    """All instances of one run of a job; the first failure of an instance is the job's."""

    name: str
    number: int
    addresses: list[str]
    scripts: list[ScriptProcess] = field(default_factory=list)
    running: int = 0
    failure: str | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def send(self, number: int) -> None:
        for script in self.scripts:
            script.send(number)


class CommandRunner:
    """Starts, signals and ends scripts.

    Args:
        root: folder for the directories and checkpoints of jobs.
        clock: timestamps the lines of output.
        logs: called with each line, from a thread of the script.
        inherited: environment of every script; the request's `Environment` takes precedence.
    """

    def __init__(
        self, root: Path, clock: Clock, *, logs: LogSink | None = None, inherited: Mapping[str, str] | None = None
    ) -> None:
        self._root = root
        self._clock = clock
        self._logs = logs
        self._inherited = inherited or {}
        self._exited: ExitHandler = lambda _name, _run, _failure: None
        self._lock = threading.Lock()
        self._runs: dict[tuple[str, int], _Run] = {}
        self._watchers: set[threading.Thread] = set()
        self._closed = False
        self._addresses = LoopbackAddresses(os.getpid() * ADDRESS_STRIDE)
        self._guardian = Guardian()
        atexit.register(self.close)

    def set_exit_handler(self, exited: ExitHandler) -> None:
        """Set the function to call when all scripts of a job have ended."""
        self._exited = exited

    def start(self, job: TrainingJob, run: int) -> None:
        """Start the job's command on each instance; if that fails, report the job as failed with the reason."""
        try:
            self._start(job, run)
        except OSError as error:
            self._exited(job.name, run, f"AlgorithmError: {error}, exit code: {EXIT_CODE_NOT_STARTED}")

    def signal(self, name: str, run: int, *, kill: bool) -> None:
        """Send SIGTERM, or SIGKILL, to the job's scripts and all their children, if they have not ended."""
        running = self._runs.get((name, run))
        if running is not None:
            running.send(signal.SIGKILL if kill else signal.SIGTERM)

    def close(self) -> None:
        """End all scripts, by force if necessary, and wait for their end."""
        with self._lock:
            self._closed = True
            runs, watchers = list(self._runs.values()), list(self._watchers)
        for run in runs:
            run.send(signal.SIGTERM)
        for watcher in watchers:
            watcher.join(EXIT_GRACE_SECONDS / max(1, len(watchers)))
        for run in runs:
            run.send(signal.SIGKILL)
        for watcher in watchers:
            watcher.join(EXIT_GRACE_SECONDS)
        self._guardian.close()
        atexit.unregister(self.close)

    def _start(self, job: TrainingJob, number: int) -> None:
        with self._lock:
            if self._closed:
                return
            run, watchers = self._spawn(job, number)
            self._runs[job.name, number] = run
            self._watchers.update(watchers)
        for watcher in watchers:
            watcher.start()

    def _spawn(self, job: TrainingJob, number: int) -> tuple[_Run, list[threading.Thread]]:
        """Start a process for each instance, or none at all."""
        hosts = hosts_of(job)
        run = _Run(job.name, number, self._addresses.allocate(len(hosts)))
        since = int(self._clock.now().timestamp())
        watchers = []
        try:
            for host, address in zip(hosts, run.addresses, strict=True):
                script = ScriptProcess(
                    job.argv, build_container(self._root, job, InstanceSlot(hosts, host, address), self._inherited)
                )
                run.scripts.append(script)
                self._guardian.guard(script.group)
                arguments = (run, script, f"{job.name}/{host.name}-{since}")
                watchers.append(threading.Thread(target=self._watch, args=arguments, name=job.name, daemon=True))
        except OSError:
            self._roll_back(run)
            raise
        run.running = len(hosts)
        return run, watchers

    def _roll_back(self, run: _Run) -> None:
        """End the instances that were started before one failed to start."""
        run.send(signal.SIGKILL)
        for script in run.scripts:
            script.wait()
            self._guardian.unguard(script.group)
            if script.output is not None:
                script.output.close()
        self._addresses.release(run.addresses)

    def _watch(self, run: _Run, script: ScriptProcess, stream: str) -> None:
        """Wait for the end of a script; on a failure, end the other instances."""
        reader = threading.Thread(target=self._read, args=(script, stream), daemon=True)
        reader.start()
        script.wait()
        self._guardian.unguard(script.group)
        reader.join(EXIT_GRACE_SECONDS)
        if self._record_exit(run, script.failure_reason()):
            run.send(signal.SIGTERM)
            run.ended.wait(EXIT_GRACE_SECONDS)
            run.send(signal.SIGKILL)
            with self._lock:
                self._watchers.discard(threading.current_thread())

    def _record_exit(self, run: _Run, failure: str | None) -> bool:
        """Record the end of an instance; return True if it is the first to fail while others run."""
        with self._lock:
            first = failure is not None and run.failure is None
            run.failure = run.failure or failure
            run.running -= 1
            if first and run.running:
                return True
            self._watchers.discard(threading.current_thread())
            if run.running:
                return False
            del self._runs[run.name, run.number]
            closed = self._closed
        run.ended.set()
        self._addresses.release(run.addresses)
        if not closed:
            self._exited(run.name, run.number, run.failure)
        return False

    def _read(self, script: ScriptProcess, stream: str) -> None:
        if script.output is None:
            return
        with script.output as output:
            while raw := output.readline(MAX_LINE_LENGTH):
                if self._logs is not None:
                    text = raw.decode(errors="replace").rstrip("\r\n")
                    self._logs(LogLine(LOG_GROUP, stream, self._clock.now(), text))
