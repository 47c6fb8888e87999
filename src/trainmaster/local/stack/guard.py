"""Runs a command, and ends it with all processes that it started when standard input closes.

The process that started the guard holds the other end of the pipe. When it dies, even by SIGKILL, the pipe closes and
no process stays behind. The module uses only the standard library and runs by path, so that any interpreter can start
it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 6
"""Between SIGTERM and SIGKILL."""


def main(command: list[str]) -> None:
    """Run the command in the guard's process group until it ends or standard input closes."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_with, args=(child,), daemon=True).start()
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_SECONDS)
    os.killpg(0, signal.SIGKILL)


def _exit_with(child: "subprocess.Popen[bytes]") -> None:
    """Exit with the command's exit code once it has ended."""
    code = child.wait()
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
