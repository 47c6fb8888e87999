"""What the first process of a container must do for others: start, signal and bury them.

Linux only: the kernel's own means (prctl(2), `/proc`) see to it that no process is lost or left behind. It must not
decide when to stop anything.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TOLD_BY_CODE = 128
"""A shell's convention: an exit code beyond this is the number of the signal that ended the process."""
BURIAL_SECONDS = 5.0
"""How long `bury` waits for killed processes, at most: one in uninterruptible sleep must not keep a container alive."""
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """From now on, processes whose parents have died become this one's children, as they do for a process 1."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed as soon as the parent process has died, even by a signal that it could not pass on."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def blocked(signals: Iterable[signal.Signals]) -> Iterator[None]:
    """Keep signals until `sigtimedwait` fetches them; none is lost, not even before the first child is there."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start(command: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, with no signal blocked. Raises `OSError` where it cannot be.

    Its own group, because whoever stops the container may signal ours: when the child hears of it is our decision.
    It is killed if we are, so that nothing goes on where no process 1 ends everything.
    """

    def prepare() -> None:
        die_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    # The caller has one thread only, which is what makes `preexec_fn` safe.
    return subprocess.Popen(command, env=dict(environ), process_group=0, preexec_fn=prepare)  # noqa: PLW1509, S603


def reap(child: subprocess.Popen[bytes]) -> int | None:
    """Bury whatever has died, adopted orphans included; the child's exit code once it is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return child.returncode
        if pid == 0:
            return child.returncode
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)


def send(child: subprocess.Popen[bytes], number: signal.Signals, *, group: bool) -> None:
    """Signal the child, or its whole group; nothing where it is gone."""
    with suppress(ProcessLookupError):
        if group:
            os.killpg(child.pid, number)
        else:
            os.kill(child.pid, number)


def bury(wait: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
    """Kill all children that are left, their children as they come to us, and reap them.

    A process 1 that ends takes all others with it; under a simulator nothing else would.
    """
    until = clock() + BURIAL_SECONDS
    while clock() < until:
        for pid in children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        wait(0.01)


def children() -> list[int]:
    """Process ids of this process's children (proc(5), `stat`, field 4; not every kernel has `task/*/children`)."""
    mine = str(os.getpid())
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().rpartition(")")[2].split()[1] == mine:
                found.append(int(path.parent.name))
    return found


def code_of(returncode: int) -> int:
    """The exit code by which to pass on how a child ended: its own, or 128 and the signal's number."""
    return returncode if returncode >= 0 else TOLD_BY_CODE - returncode
