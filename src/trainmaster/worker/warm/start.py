"""The command of a worker that is to start warm: `start.py [-m] SCRIPT ARGUMENTS`.

It asks the agent's process (`warm.server`) for the worker, passes signals on to it, and ends as it ends. Without that
process it becomes the worker itself, as if the agent had started the script. It imports as little as possible.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress

PRELOAD = "TRAINMASTER_PRELOAD"
"""Variable with the modules that the server imports, separated by commas."""
SOCKET = "TRAINMASTER_WARM_SOCKET"
"""Variable with the path of the server's socket."""
FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)
_STREAMS = (0, 1, 2)


def main(arguments: list[str]) -> int:
    """Run the worker, and return its exit code; a signal that ends it ends this process too."""
    connection = request_worker(os.environ.get(SOCKET, ""), arguments)
    if connection is None:
        os.execv(sys.executable, [sys.executable, "-u", *arguments])  # noqa: S606  # the agent's own arguments
    status = _wait(connection)
    if status is None:
        return 1  # the server has ended, and its workers with it
    if os.WIFSIGNALED(status):
        _end_by(os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def request_worker(path: str, arguments: list[str]) -> socket.socket | None:
    """Return the connection to the server, once a worker runs; None if there is no server, or it cannot serve."""
    request = {"argv": arguments, "cwd": os.getcwd(), "environ": dict(os.environ)}  # noqa: PTH109  # imports little
    data = json.dumps(request).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        socket.send_fds(connection, [len(data).to_bytes(8, "big")], _STREAMS)
        connection.sendall(data)
        worker = _read(connection)
    except OSError:
        worker = None
    if worker is None:
        connection.close()
        return None
    for number in FORWARDED:
        signal.signal(number, lambda received, _: _forward(worker, received))
    return connection


def _forward(worker: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has ended
        os.killpg(worker, number)


def _wait(connection: socket.socket) -> int | None:
    try:
        return _read(connection)
    except OSError:
        return None


def _read(connection: socket.socket) -> int | None:
    """Return the next number of the server; None if there is none."""
    data = b""
    while len(data) < 8:
        received = connection.recv(8 - len(data))
        if not received:
            return None
        data += received
    return int.from_bytes(data, "big")


def _end_by(number: int) -> None:
    """End by this signal, without another core dump."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
