"""A process of the agent that imports modules such as torch once, and forks each worker from what it has imported.

The import takes seconds of each restart; a spare can do it while it waits. The agent starts its workers as commands, as
always. Each is a small process (`warm.start`) that asks this one for the worker, passes signals on to it, and ends as
it ends. If this process cannot serve, the small process becomes the worker in the usual way.

The worker has the environment, the directory, the arguments and the streams of its command, and a session of its own.
It ends with its command, with this process, and with the agent.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from trainmaster.worker.warm.start import PRELOAD, SOCKET

PR_SET_PDEATHSIG = 1
_NUMBER_BYTES = 8
_STREAMS = 3
_servers: list[subprocess.Popen[bytes]] = []
"""Servers of this agent. Each ends once its standard input does, with the agent."""


def start_server(environ: MutableMapping[str, str]) -> None:
    """Start the server of this agent if its environment asks for one; add its address to the environment.

    Raises:
        OSError: it cannot be started.
    """
    modules = [name.strip() for name in environ.get(PRELOAD, "").split(",") if name.strip()]
    if not modules or environ.get(SOCKET):
        return
    folder = tempfile.mkdtemp(prefix="trainmaster-warm-")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen(128)
        number = listener.fileno()
        _servers.append(
            subprocess.Popen(  # noqa: S603  # this interpreter
                [sys.executable, "-u", "-m", __name__, str(number), folder, *modules],
                env=dict(environ),
                stdin=subprocess.PIPE,
                pass_fds=[number],
                start_new_session=True,
            )
        )
    environ[SOCKET] = f"{folder}/socket"


class Server:
    """Forks workers until the agent ends.

    Args:
        listener: the socket to which `warm.start` connects.
        agent: descriptor that can be read once the agent has ended.
    """

    def __init__(self, listener: socket.socket, agent: int) -> None:
        self._listener = listener
        self._agent = agent
        self._workers: dict[int, socket.socket] = {}
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)

    def serve(self) -> dict[str, Any] | None:
        """Return what to run, in a worker; or None, once the agent has ended."""
        while True:
            commands = {connection.fileno(): pid for pid, connection in self._workers.items()}
            ready, _, _ = select.select([self._agent, self._wake, self._listener.fileno(), *commands], [], [])
            if self._agent in ready:
                self._kill(*self._workers)
                return None
            if self._wake in ready:
                os.read(self._wake, 4096)
            self._report_ended()
            # A command says nothing more, unless it ends.
            self._kill(*(commands[each] for each in ready if commands.get(each) in self._workers))
            if self._listener.fileno() in ready and (request := self._accept()) is not None:
                return request

    def _accept(self) -> dict[str, Any] | None:
        """Fork a worker; return what to run in it, and None in the server."""
        connection, _ = self._listener.accept()
        streams: list[int] = []
        try:
            request = _receive(connection, streams)
            server, pid = os.getpid(), os.fork()
        except (OSError, ValueError):
            connection.close()
            pid = -1
        if pid == 0:
            connection.close()
            self._become_worker(server, streams)
            return request
        for stream in streams:
            os.close(stream)
        if pid > 0:
            self._workers[pid] = connection
            _send(connection, pid)
        return None

    def _become_worker(self, server: int, streams: Sequence[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        for inherited in (*streams, self._wake, self._woken):
            os.close(inherited)
        for connection in (self._listener, *self._workers.values()):
            connection.close()

    def _report_ended(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                connection = self._workers.pop(found[0], None)
                if connection is not None:
                    _send(connection, found[1])
                    connection.close()

    def _kill(self, *pids: int) -> None:
        """Kill workers whose command has ended."""
        for pid in pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            self._workers.pop(pid).close()


def _send(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # the command has ended
        connection.sendall(number.to_bytes(_NUMBER_BYTES, "big"))


def _receive(connection: socket.socket, streams: list[int]) -> dict[str, Any]:
    """Return what a command asks for, and add its standard streams."""
    head, found, _, _ = socket.recv_fds(connection, _NUMBER_BYTES, _STREAMS)
    streams += found
    with connection.makefile("rb") as file:
        request: dict[str, Any] = json.loads(file.read(int.from_bytes(head, "big")))
    if len(streams) != _STREAMS:
        raise ValueError("a command without its streams")
    return request


def import_all(modules: Sequence[str]) -> bool:
    """Import modules; return False, with a line in the log, if one cannot be imported."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001  # workers start without, and import it themselves
            sys.stderr.write(f"trainmaster: could not preload {module}: {type(error).__name__}: {error}\n")
            return False
    gc.freeze()  # so that forks share these pages for longer
    return True


def run(request: dict[str, Any]) -> None:
    """Run a worker's script or module as Python does."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    if "numpy.random" in sys.modules:  # otherwise all workers would draw the same numbers
        sys.modules["numpy.random"].seed()
    sys.argv = request["argv"]
    if sys.argv[0] == "-m":
        _set_path(request["cwd"])
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        _set_path(str(Path(sys.argv[0]).resolve().parent))
        _run_script(str(Path(sys.argv[0]).absolute()))


def _set_path(first: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first


def _run_script(path: str) -> None:
    module = ModuleType("__main__")
    module.__dict__.update({"__file__": path, "__builtins__": builtins})
    sys.modules["__main__"] = module
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102  # the agent's own script


def main(listener: str, folder: str, modules: Sequence[str]) -> None:
    """Import the modules and serve; in a worker, run it."""
    with socket.socket(fileno=int(listener)) as opened:
        request = Server(opened, sys.stdin.fileno()).serve() if import_all(modules) else None
    if request is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        run(request)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
