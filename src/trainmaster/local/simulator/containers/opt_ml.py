"""Runs a command with a folder in the place of `/opt/ml`, as a SageMaker container has it.

A separate program for Linux: it enters namespaces of its own for mounts and the host name, mounts the folder, and
becomes the command. The command keeps its process id, sees all other files of the machine, has the host name of its
instance, and resolves those of its job's other instances. The program imports only the standard library, to start fast.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

OPT_ML = Path("/opt/ml")
HOSTS = Path("/etc/hosts")
MACHINE_ENVIRONMENT = Path("/etc/environment")
"""The SDK's MPI driver appends to it; it gets a copy."""
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x20000, 0x4000000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
EXIT_CODE_NOT_STARTED = 127
"""A shell's exit code for a command that cannot be started."""
_PROBE_SECONDS = 20


def main(folder: str, files: str, host: str, command: list[str]) -> None:
    """Mount the folder, and the copies of files of `/etc` over them; then become the command."""
    _enter_namespaces()
    socket.sethostname(host)
    _mount_folder(Path(folder))
    for path in (HOSTS, MACHINE_ENVIRONMENT):
        if path.exists():
            _mount(str(Path(files, path.name)), path, MS_BIND)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command of the request, which no shell interprets
    except OSError as error:
        OPT_ML.joinpath("output", "failure").write_text(f"[Errno {error.errno}] {error.strerror}: {command[0]!r}")
        os._exit(EXIT_CODE_NOT_STARTED)


def command_in(folder: Path, files: Path, host: str, command: list[str]) -> list[str]:
    """Return the command line that runs a command with a folder as `/opt/ml`; `files` is what `copy_files` has made."""
    return [sys.executable, "-I", "-S", __file__, str(folder), str(files), host, *command]


def copy_files(folder: Path, names: Sequence[str]) -> None:
    """Copy the files of `/etc` that a command gets copies of; `names` are further lines of `hosts`."""
    folder.mkdir(parents=True)
    for path, more in ((HOSTS, names), (MACHINE_ENVIRONMENT, ())):
        text = path.read_text(errors="surrogateescape") if path.exists() else ""
        lines = [*text.splitlines(), *more, ""]
        (folder / path.name).write_text("\n".join(lines), errors="surrogateescape")


def why_unavailable() -> str | None:
    """Return the reason why this machine cannot mount `/opt/ml` for a process; None if it can."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "output").mkdir()
        copy_files(Path(folder, "etc"), ())
        command = command_in(Path(folder), Path(folder, "etc"), "algo-1", ["/bin/sh", "-c", "test -d /opt/ml/output"])
        try:
            tried = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    said = tried.stderr.strip().splitlines()
    return None if tried.returncode == 0 else (said[-1] if said else f"exit code {tried.returncode}")


def _enter_namespaces() -> None:
    """Enter namespaces; without root's permission, as root of a user namespace of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0:
        _check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount(None, Path("/"), MS_REC | MS_PRIVATE)


def _mount_folder(folder: Path) -> None:
    if not OPT_ML.is_dir():
        _make_mount_point()
    _mount(str(folder), OPT_ML, MS_BIND | MS_REC)


def _make_mount_point() -> None:
    """Mount a copy of `/opt` that has a folder `ml`, since the real one must not change."""
    parent = OPT_ML.parent
    held = os.open(parent, os.O_PATH)
    entries = list(parent.iterdir())
    _mount("tmpfs", parent, 0, kind="tmpfs")
    for entry in entries:
        hidden = Path(f"/proc/self/fd/{held}", entry.name)
        if hidden.is_symlink():
            entry.symlink_to(hidden.readlink())
            continue
        if hidden.is_dir():
            entry.mkdir()
        else:
            entry.touch()
        _mount(str(hidden), entry, MS_BIND | MS_REC)
    OPT_ML.mkdir()
    os.close(held)


def _mount(source: str | None, target: Path, flags: int, kind: str | None = None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    as_bytes = [None if text is None else text.encode() for text in (source, str(target), kind)]
    _check(libc.mount(*as_bytes, ctypes.c_ulong(flags), None), f"mount {target}")


def _check(result: int, deed: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{deed}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
