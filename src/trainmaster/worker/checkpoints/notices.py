"""How the processes of one container tell each other that the script should save a checkpoint, and that it has.

Three kinds of process meet in one private directory: `trainmaster-run`, the agent that holds the rendezvous, and the
script's workers. Whoever knows of a resize, a drain or a stop asks; every worker that has enrolled gets SIGUSR1; each
answers by its own file once it has saved. Files are small JSON, replaced whole, never anything that could run. The
directory is open to its owner alone: one that others may write to is refused. It must not wait, nor speak to AWS.
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
from enum import StrEnum
from pathlib import Path
from typing import Any

DIRECTORY = "TRAINMASTER_NOTICES"
"""The variable by which `trainmaster-run` gives the directory to all that it starts."""
SIGNAL = signal.SIGUSR1
"""The one signal of a notice; HyperPod's elastic event is the same."""
OTHERS = 0o077
"""Permission bits that nobody but the owner may have on the directory."""


class Reason(StrEnum):
    """Why a checkpoint is asked for: the world changes, this node leaves it, or the container is being stopped."""

    RESIZE = "resize"
    DRAIN = "drain"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Notice:
    """One request for a checkpoint; numbers grow by one from 1 within a container."""

    number: int
    reason: Reason


class Notices:
    """The private directory of one container.

    Args:
        directory: it exists, belongs to this user, and is open to nobody else.

    Raises:
        PermissionError: others could write there, so that nothing in it can be believed.
    """

    def __init__(self, directory: Path) -> None:
        found = directory.stat()
        if found.st_uid != os.geteuid() or found.st_mode & OTHERS:
            raise PermissionError(f"{directory} is open to others than its owner: notices in it cannot be trusted")
        self.directory = directory
        (directory / "workers").mkdir(mode=0o700, exist_ok=True)

    @classmethod
    def create(cls, parent: Path | None = None) -> Notices:
        """A new directory, below this one or the one for temporary files."""
        made = cls(Path(tempfile.mkdtemp(prefix="trainmaster-", dir=parent)))
        made._write("run.json", {"pid": os.getpid(), "born": birth(os.getpid())})
        return made

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Notices | None:
        """The directory that the environment names; None where `trainmaster-run` has not started this process."""
        return cls(Path(environ[DIRECTORY])) if environ.get(DIRECTORY) else None

    # ------------------------------------------------------------ for whoever knows of a change

    def ask(self, reason: Reason) -> int:
        """Ask all enrolled workers for a checkpoint, by SIGUSR1; the number by which `settled` tells the answer.

        While an older request is still unanswered, it stands for this one too: one checkpoint serves both.
        """
        with self._locked():
            last = self.last()
            if last is not None and not self.settled(last.number):
                return last.number
            number = 1 + (last.number if last else 0)
            self._write("notice.json", {"number": number, "reason": reason})
        for pid in self.enrolled():
            with suppress(ProcessLookupError):
                os.kill(pid, SIGNAL)
        return number

    def settled(self, number: int) -> bool:
        """Whether no living worker owes an answer to this request; at once where none has ever enrolled."""
        return not any(entry["saved"] < number for entry in self._living())

    def enrolled(self) -> tuple[int, ...]:
        """Process ids of the workers that answer notices and live."""
        return tuple(entry["pid"] for entry in self._living())

    def leave(self, until: float) -> None:
        """Tell the agent that the container is being stopped, and that its node is to have left by `until`.

        That is a time of the machine's monotonic clock, which all processes of a container share.
        """
        self._write("leave.json", {"until": until})

    def leaving(self) -> float | None:
        """By when this container's node is to have left, on the monotonic clock; None while nobody stops it."""
        asked = self._read("leave.json")
        return float(asked["until"]) if asked else None

    def end(self, reason: str) -> None:
        """Leave word of why the whole job ends here, for the container's failure file. The first word stays."""
        if self.ended() is None:
            self._write("end.json", {"reason": reason})

    def ended(self) -> str | None:
        """Why the job ends, where somebody has said so."""
        said = self._read("end.json")
        return str(said["reason"]) if said else None

    # ------------------------------------------------------------ for workers

    def last(self) -> Notice | None:
        """The newest request."""
        asked = self._read("notice.json")
        return Notice(int(asked["number"]), Reason(asked["reason"])) if asked else None

    def deserted(self) -> bool:
        """Whether the process that made the directory has died: then nobody would ever end a worker."""
        maker = self._read("run.json")
        return maker is not None and birth(maker["pid"]) != maker["born"]

    def enrol(self, pid: int) -> Enrolment:
        """Take part, as a process that handles SIGUSR1 from now on: without a handler the signal would end it.

        Requests from before count as answered: what has not trained yet has nothing to save.
        """
        last = self.last()
        return Enrolment(self, pid, last.number if last else 0)

    # ------------------------------------------------------------ files

    def _living(self) -> Iterator[dict[str, Any]]:
        for path in (self.directory / "workers").glob("*.json"):
            entry = self._read(f"workers/{path.name}")
            whole = entry is not None and all(type(entry.get(name)) is int for name in ("pid", "born", "saved"))
            if entry and whole and birth(entry["pid"]) == entry["born"]:
                yield entry

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            found = json.loads((self.directory / name).read_text())
        except (FileNotFoundError, ValueError):  # a program of another language may write what is no JSON
            return None
        return found if isinstance(found, dict) else None

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        """Replace a file whole: readers see the old one or the new one."""
        path = self.directory / name
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(content))
        draft.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One asker at a time: the agent and `trainmaster-run` may both have something to say."""
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class Enrolment:
    """A worker's own part of the directory; only this process writes it.

    Args:
        notices: the directory.
        pid: the worker.
        saved: the newest request that it has answered.
    """

    def __init__(self, notices: Notices, pid: int, saved: int) -> None:
        self._notices = notices
        self._pid = pid
        self._born = birth(pid)
        self._saved = saved
        self._tell()

    def pending(self) -> Notice | None:
        """The newest request, unless it is answered."""
        last = self._notices.last()
        return last if last is not None and last.number > self._saved else None

    def answer(self, number: int) -> None:
        """A checkpoint is saved that serves this request and all before it."""
        if number > self._saved:
            self._saved = number
            self._tell()

    def _tell(self) -> None:
        entry = {"pid": self._pid, "born": self._born, "saved": self._saved}
        self._notices._write(f"workers/{self._pid}.json", entry)  # noqa: SLF001  # the directory's other half


def birth(pid: int, read: Callable[[Path], str] = Path.read_text) -> int | None:
    """When a process began, in the kernel's ticks; None for one that is gone, or dead and not yet reaped.

    Process ids are used again; with its birth, one names a process for good (proc(5), `stat`, fields 3 and 22).
    """
    try:
        fields = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])
