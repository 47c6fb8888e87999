"""Duties of a container's first process: start, signal, reap and kill other processes.

Linux only: prctl(2) and `/proc` ensure that no process is lost or left behind.
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
SIGNAL_EXIT_CODE_BASE = 128
"""Shell convention: an exit code above this is the number of the signal that ended the process plus this number."""
KILL_TIMEOUT_SECONDS = 5.0
"""Maximum wait of `kill_children`: a process in uninterruptible sleep must not keep a container alive."""
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Become the parent of descendants whose own parent dies, as process 1 does."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have the kernel kill this process as soon as its parent dies, even by a signal that the parent cannot forward."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def signals_blocked(signals: Iterable[signal.Signals]) -> Iterator[None]:
    """Hold signals until `sigtimedwait` fetches them, so that none is lost, even before the first child starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start(command: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a command in its own process group, with no signal blocked.

    It has its own group because SageMaker may signal this process's group, and this process decides when the child gets
    the signal. The child is killed if this process dies, for containers without a process 1 that ends all others.

    Raises:
        OSError: it cannot be started.
    """

    def prepare() -> None:
        os.setpgid(0, 0)
        die_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    # The caller has one thread only, which is what makes `preexec_fn` safe.
    return subprocess.Popen(command, env=dict(environ), preexec_fn=prepare)  # noqa: PLW1509, S603


def reap(child: subprocess.Popen[bytes]) -> int | None:
    """Reap all dead processes, adopted orphans included; return the child's exit code once it is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return child.returncode
        if pid == 0:
            return child.returncode
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)


def send_signal(child: subprocess.Popen[bytes], number: signal.Signals, *, group: bool) -> None:
    """Signal the child or its whole group; do nothing if it is gone."""
    with suppress(ProcessLookupError):
        if group:
            os.killpg(child.pid, number)
        else:
            os.kill(child.pid, number)


def kill_children(wait: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
    """Kill and reap all remaining children, and their children as they are adopted.

    In a container the end of process 1 ends all others; under a simulator nothing else would.
    """
    until = clock() + KILL_TIMEOUT_SECONDS
    while clock() < until:
        for pid in child_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        wait(0.01)


def child_pids() -> list[int]:
    """Return the process ids of this process's children (proc(5), `stat`, field 4)."""
    mine = str(os.getpid())
    # Some kernels lack `task/*/children`.
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().rpartition(")")[2].split()[1] == mine:
                pids.append(int(path.parent.name))
    return pids


def exit_code_of(returncode: int) -> int:
    """Return the exit code that reports how a child ended: its own, or 128 plus the number of the signal."""
    return returncode if returncode >= 0 else SIGNAL_EXIT_CODE_BASE - returncode
