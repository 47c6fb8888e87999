"""Runs a replay as a child process, so that this process stays responsive and can end it at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import IO, Any, Final

from trainmaster.client.api.errors import ApiError, Refused

COMMAND: Final = (sys.executable, "-m", "trainmaster.local.replay.drafts")


class ReplayProcess:
    """A replay in a child process. `close` ends it, also from another thread; nothing is left running then."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command, self._lock, self._closed = tuple(command), Lock(), False
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, document: Mapping[str, Any], on_progress: Callable[[float], None]) -> dict[str, Any]:
        """Return the report on a document; see `Period`.

        Raises Refused for a wrong draft, with the path of the field; ApiError if the replay fails or was closed.
        """
        process = self._start()
        Thread(target=_write, args=(process.stdin, document), daemon=True).start()
        try:
            for line in process.stdout or ():
                message = json.loads(line)
                if "progress" in message:
                    on_progress(message["progress"])
                elif "error" in message:
                    raise _error(message["error"])
                else:
                    report: dict[str, Any] = message["report"]
                    return report
            raise ApiError("The replay has ended without a result.", type="ReplayFailed")
        finally:
            self.close()
            process.stdout.close()  # type: ignore[union-attr]

    def close(self) -> None:
        """End the child at once; a second call, or one before `run`, is safe."""
        with self._lock:
            self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise ApiError("The replay was cancelled.", type="ReplayFailed")
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, without a shell
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONSAFEPATH": "1"},  # modules of the working directory stay out
            )
            return self._process


def _write(stream: IO[bytes], document: Mapping[str, Any]) -> None:
    """Send the document; a child that has ended reads nothing."""
    with suppress(OSError, ValueError):
        stream.write(json.dumps(document).encode())
        stream.close()


def _error(error: Mapping[str, Any]) -> ApiError:
    kind = Refused if error["type"] == "InvalidRequest" else ApiError
    return kind(error["message"], type=error["type"], field=error["field"], hint=error["hint"])
