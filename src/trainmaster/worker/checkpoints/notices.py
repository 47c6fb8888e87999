"""Requests for checkpoints among the processes of one container, and the answers to them.

`trainmaster-run`, the agent that holds the rendezvous, and the script's workers share one private directory. The
process that learns of a resize, a drain or a stop requests a checkpoint; every registered worker gets SIGUSR1, and
writes its answer to its own file once it has saved. Files are small JSON and replaced atomically. A directory that
other users can access is rejected.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from trainmaster.domain.compat import StrEnum

DIRECTORY_VARIABLE = "TRAINMASTER_NOTICES"
"""Variable by which `trainmaster-run` gives the directory to its descendants."""
CHECKPOINT_SIGNAL = signal.SIGUSR1
"""Signal of a request, the same as HyperPod's elastic event."""
PROGRESS = "progress"
"""File that exists once a worker reports its own progress."""
COUNT = "count"
"""File into which a program in another language writes the work that it has done."""
GROUP_AND_OTHERS_BITS = 0o077
"""Permission bits that the directory must not have."""


class Reason(StrEnum):
    """Reason for a request: the world changes, this node leaves it, or the container is being stopped."""

    RESIZE = "resize"
    DRAIN = "drain"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Notice:
    """One request for a checkpoint; numbers increase by one from 1 within a container."""

    number: int
    reason: Reason


class NodeWorld(NamedTuple):
    """The nodes that work together, as one of them sees them: the round, its rank from 0, and their number."""

    round: int
    rank: int
    size: int


class Notices:
    """The private directory of one container.

    Args:
        directory: it exists, belongs to this user, and is not accessible to others.

    Raises:
        PermissionError: other users can access it, so its contents cannot be trusted.
    """

    def __init__(self, directory: Path) -> None:
        status = directory.stat()
        if status.st_uid != os.geteuid() or status.st_mode & GROUP_AND_OTHERS_BITS:
            raise PermissionError(
                f"{directory} belongs to another user or is accessible to others, so it cannot be trusted;"
                " start trainmaster-run as the user that trains"
            )
        self.directory = directory
        (directory / "workers").mkdir(mode=0o700, exist_ok=True)

    @classmethod
    def create(cls, parent: Path | None = None) -> Notices:
        """Create a directory below `parent`, or below the one for temporary files."""
        notices = cls(Path(tempfile.mkdtemp(prefix="trainmaster-", dir=parent)))
        notices._write("run.json", {"pid": os.getpid(), "born": process_start_time(os.getpid())})
        return notices

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Notices | None:
        """Return the directory that the environment names, or None if `trainmaster-run` did not start this process."""
        return cls(Path(environ[DIRECTORY_VARIABLE])) if environ.get(DIRECTORY_VARIABLE) else None

    # ------------------------------------------------------------ for the process that learns of a change

    def request_checkpoint(self, reason: Reason) -> int:
        """Request a checkpoint from all registered workers, by SIGUSR1, and return the number of the request.

        While an older request is unanswered, return its number instead: one checkpoint serves both.
        """
        with self._locked():
            last = self.last()
            if last is not None and not self.is_answered(last.number):
                return last.number
            number = 1 + (last.number if last else 0)
            self._write("notice.json", {"number": number, "reason": reason})
        for pid in self.worker_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, CHECKPOINT_SIGNAL)
        return number

    def is_answered(self, number: int) -> bool:
        """Return whether all living workers have answered this request; true if none has registered."""
        return not any(entry["saved"] < number for entry in self._live_entries())

    def worker_pids(self) -> tuple[int, ...]:
        """Return the process ids of the living workers that answer requests."""
        return tuple(entry["pid"] for entry in self._live_entries())

    def announce_leave(self, until: float) -> None:
        """Tell the agent that the container is being stopped, and that its node must leave by `until`.

        `until` is a time of the machine's monotonic clock, which all processes of a container share.
        """
        self._write("leave.json", {"until": until})

    def leave_deadline(self) -> float | None:
        """Return the monotonic time by which this node must leave, or None unless its container is being stopped."""
        content = self._read("leave.json")
        return float(content["until"]) if content else None

    def announce_progress(self) -> None:
        """Record that a worker reports its own progress, so that nothing else reports the job's speed."""
        (self.directory / PROGRESS).touch()

    @property
    def counts_progress(self) -> bool:
        """True if a worker reports its own progress, and without the directory, where it cannot tell."""
        return (self.directory / PROGRESS).exists() or not self.directory.exists()

    def count(self) -> str:
        """Return the text in which a program counts its work; empty if none does."""
        try:
            return (self.directory / COUNT).read_text()
        except FileNotFoundError:
            return ""

    def announce_world(self, world: NodeWorld | None) -> None:
        """Record the world that this node has joined, or that it is in none, for what reports the job's speed."""
        with suppress(OSError):  # as in cleared directories for temporary files: then nothing reports the speed
            self._write("world.json", {} if world is None else world._asdict())

    def world(self) -> NodeWorld | None:
        """Return the world that this node is in, or None."""
        content = self._read("world.json")
        return NodeWorld(*(int(content[name]) for name in NodeWorld._fields)) if content else None

    def fail_job(self, reason: str) -> None:
        """Record the reason for which the job fails, for the container's failure file. The first reason stays."""
        if self.job_failure() is None:
            with suppress(OSError):  # such as a full disk; the caller raises the reason too
                self._write("end.json", {"reason": reason})

    def job_failure(self) -> str | None:
        """Return the reason for which the job fails, or None."""
        content = self._read("end.json")
        return str(content["reason"]) if content else None

    # ------------------------------------------------------------ for workers

    def last(self) -> Notice | None:
        """Return the newest request, or None."""
        content = self._read("notice.json")
        return Notice(int(content["number"]), Reason(content["reason"])) if content else None

    def owner_has_died(self) -> bool:
        """Return whether the process that created the directory has died, so that no process would end its workers."""
        owner = self._read("run.json")
        return owner is not None and process_start_time(owner["pid"]) != owner["born"]

    def register(self, pid: int) -> WorkerRegistration:
        """Register a worker that already handles SIGUSR1; without a handler the signal would end it.

        Earlier requests count as answered: a worker that has not trained yet has nothing to save.
        """
        last = self.last()
        return WorkerRegistration(self, pid, last.number if last else 0)

    # ------------------------------------------------------------ files

    def _live_entries(self) -> Iterator[dict[str, Any]]:
        for path in (self.directory / "workers").glob("*.json"):
            entry = self._read(f"workers/{path.name}")
            valid = entry is not None and all(type(entry.get(name)) is int for name in ("pid", "born", "saved"))
            if entry and valid and process_start_time(entry["pid"]) == entry["born"]:
                yield entry

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.directory / name).read_text())
        except (FileNotFoundError, ValueError):  # programs in other languages may write other text
            return None
        return found if isinstance(found, dict) else None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a file atomically."""
        path = self.directory / name
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(content))
        draft.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock for requests, since the agent and `trainmaster-run` may make one at the same time."""
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class WorkerRegistration:
    """A worker's own entry in the directory; no other process writes it.

    Args:
        notices: the directory.
        pid: the worker.
        saved: the newest request that it has answered.
    """

    def __init__(self, notices: Notices, pid: int, saved: int) -> None:
        self._notices = notices
        self._pid = pid
        self._start_time = process_start_time(pid)
        self._saved = saved
        self._write_entry()

    def pending(self) -> Notice | None:
        """Return the newest request, or None if it is answered."""
        last = self._notices.last()
        return last if last is not None and last.number > self._saved else None

    def answer(self, number: int) -> None:
        """Record that a checkpoint for this request and all earlier ones is saved."""
        if number > self._saved:
            self._saved = number
            self._write_entry()

    def _write_entry(self) -> None:
        entry = {"pid": self._pid, "born": self._start_time, "saved": self._saved}
        self._notices._write(f"workers/{self._pid}.json", entry)  # noqa: SLF001  # the two classes share the format


def process_start_time(pid: int, read: Callable[[Path], str] = Path.read_text) -> int | None:
    """Return the start time of a process, in the kernel's ticks, or None if it has ended or is a zombie.

    Process ids are reused; with the start time they identify a process (proc(5), `stat`, fields 3 and 22).
    """
    try:
        fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])
