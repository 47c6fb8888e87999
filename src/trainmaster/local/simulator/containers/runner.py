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
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.local.simulator.clock import Clock
from trainmaster.local.simulator.containers.factory import ContainerFactory
from trainmaster.local.simulator.containers.hosts import Host, LoopbackAddresses, hosts_of
from trainmaster.local.simulator.containers.layout import Container, InstanceSlot
from trainmaster.local.simulator.containers.opt_ml import EXIT_CODE_NOT_STARTED
from trainmaster.local.simulator.containers.process import Guardian, ScriptProcess
from trainmaster.local.simulator.containers.transfer import TransferFailed
from trainmaster.local.simulator.events.log_lines import LOG_GROUP, LogLine, LogSink, stream_of
from trainmaster.local.simulator.service.job import TrainingJob

MAX_LINE_LENGTH = 200_000
"""Bytes: an event of CloudWatch Logs has at most 256 KB."""
EXIT_GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL after the failure of another instance and in `close`; also for the rest of the output."""
ADDRESS_STRIDE = 251
"""Offset between the first addresses of simulators with adjacent process ids."""
ExitHandler = Callable[[str, int, str | None], None]


@dataclass(slots=True)
class _Run:
    """All instances of one run of a job; the first failure of an instance is the job's."""

    job: TrainingJob
    number: int
    hosts: tuple[Host, ...]
    addresses: tuple[str, ...]
    start: datetime
    containers: list[Container] = field(default_factory=list)
    scripts: list[ScriptProcess] = field(default_factory=list)
    running: int = 0
    failure: str | None = None
    stopped: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def send(self, number: int) -> None:
        self.stopped = True
        for script in self.scripts:
            script.send(number)

    @property
    def slots(self) -> list[InstanceSlot]:
        return [InstanceSlot(self.hosts, self.addresses, host) for host in self.hosts]


class CommandRunner:
    """Starts, signals and ends scripts.

    Args:
        factory: makes the containers of a job.
        clock: timestamps the lines of output.
        logs: called with each line, from a thread of the script.
    """

    def __init__(self, factory: ContainerFactory, clock: Clock, *, logs: LogSink | None = None) -> None:
        self._factory = factory
        self._clock = clock
        self._logs = logs
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

    def runs(self, job: TrainingJob) -> bool:
        """Return whether a job runs as processes."""
        return self._factory.runs(job)

    def start(self, job: TrainingJob, run: int) -> None:
        """Start the job's command on each instance; if that fails, report the job as failed with the reason."""
        hosts = hosts_of(job)
        try:
            addresses = tuple(self._addresses.allocate(len(hosts)))
        except OSError as error:
            return self._exited(job.name, run, _not_started(error))
        started = _Run(job, run, hosts, addresses, self._clock.now())
        with self._lock:
            if not self._closed:
                self._runs[job.name, run] = started
                self._begin(threading.Thread(target=self._start, args=(started,), name=job.name, daemon=True))
        return None

    def signal(self, name: str, run: int, *, kill: bool) -> None:
        """Send SIGTERM, or SIGKILL, to the job's scripts and all their children, if they have not ended."""
        with self._lock:
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

    def _start(self, run: _Run) -> None:
        """Prepare the containers and start the scripts, or report why that failed."""
        try:
            run.containers = self._factory.build(
                run.job, run.slots, lambda text: self._log(run.hosts[0].name, run, text)
            )
            failure = self._spawn_unless_stopped(run)
        except TransferFailed as error:
            failure = f"ClientError: Data download failed: {error}"
        except OSError as error:
            failure = _not_started(error)
        with self._lock:
            self._watchers.discard(threading.current_thread())
        if failure is not None:
            self._end(run, failure)

    def _begin(self, watcher: threading.Thread) -> None:
        """Start a thread that `close` waits for; the caller holds the lock."""
        self._watchers.add(watcher)
        watcher.start()

    def _spawn_unless_stopped(self, run: _Run) -> str | None:
        """Start the scripts and their watchers; return the failure of a run that was stopped before."""
        with self._lock:
            if run.stopped or self._closed:
                return "AlgorithmError: stopped before the script started"
            for watcher in self._spawn(run):
                self._begin(watcher)
        return None

    def _spawn(self, run: _Run) -> list[threading.Thread]:
        """Start a process for each instance, or none at all."""
        watchers = []
        try:
            for host, container in zip(run.hosts, run.containers, strict=True):
                for pipe in container.pipes:
                    pipe.create()
                script = ScriptProcess(container)
                run.scripts.append(script)
                for pipe in container.pipes:
                    threading.Thread(target=pipe.feed, args=(run.ended,), name=run.job.name, daemon=True).start()
                self._guardian.guard(script.group)
                arguments = (run, script, host.name)
                watchers.append(threading.Thread(target=self._watch, args=arguments, name=run.job.name, daemon=True))
        except OSError:
            self._roll_back(run)
            raise
        run.running = len(run.hosts)
        return watchers

    def _roll_back(self, run: _Run) -> None:
        """End the instances that were started before one failed to start."""
        for script in run.scripts:
            script.send(signal.SIGKILL)
            script.wait()
            self._guardian.unguard(script.group)
            if script.output is not None:
                script.output.close()

    def _watch(self, run: _Run, script: ScriptProcess, host: str) -> None:
        """Wait for the end of a script; on a failure, end the other instances."""
        reader = threading.Thread(target=self._read, args=(run, script, host), daemon=True)
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
            if run.running:
                self._watchers.discard(threading.current_thread())
                return False
        self._collect(run)
        self._end(run, run.failure)
        return False

    def _collect(self, run: _Run) -> None:
        """Write what the scripts have left to S3; a failure to do so is the run's, unless it has one."""
        if self._closed:
            return
        try:
            self._factory.collect(run.job, run.containers, failed=run.failure is not None)
        except TransferFailed as error:
            run.failure = run.failure or f"ClientError: Artifact upload failed: {error}"

    def _end(self, run: _Run, failure: str | None) -> None:
        """Report the end of a run, unless the runner is closed."""
        with self._lock:
            self._watchers.discard(threading.current_thread())
            del self._runs[run.job.name, run.number]
            closed = self._closed
        run.ended.set()
        self._addresses.release(run.addresses)
        if not closed:
            self._exited(run.job.name, run.number, failure)

    def _read(self, run: _Run, script: ScriptProcess, host: str) -> None:
        if script.output is None:
            return
        with script.output as output:
            while raw := output.readline(MAX_LINE_LENGTH):
                self._log(host, run, raw.decode(errors="replace").rstrip("\r\n"))

    def _log(self, host: str, run: _Run, text: str) -> None:
        if self._logs is not None:
            self._logs(LogLine(LOG_GROUP, stream_of(run.job.name, host, run.start), self._clock.now(), text))


def _not_started(error: OSError) -> str:
    return f"AlgorithmError: {error}, exit code: {EXIT_CODE_NOT_STARTED}"
