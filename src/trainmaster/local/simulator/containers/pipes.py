"""Input channels in Pipe mode: a named pipe for each epoch, through which the objects of the channel flow."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Pipe:
    """A channel in Pipe mode: the path of its pipes without their number, and the objects' files in order."""

    path: Path
    files: tuple[Path, ...]

    def create(self) -> None:
        """Create the pipe of the first epoch, which the script may open as soon as it has started."""
        self._create(0)

    def feed(self, ended: threading.Event) -> None:
        """Write all files into the pipe of each epoch, when the script has opened it, until the run has ended.

        The first one exists already.
        """
        upcoming = self._path(0)
        for epoch in itertools.count(1):
            current, upcoming = upcoming, self._create(epoch)
            writer = _open_for_reader(current, ended)
            if writer is None:
                return
            with os.fdopen(writer, "wb") as stream, contextlib.suppress(BrokenPipeError):
                for file in self.files:
                    with file.open("rb") as source:
                        shutil.copyfileobj(source, stream)

    def _create(self, epoch: int) -> Path:
        path = self._path(epoch)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return path

    def _path(self, epoch: int) -> Path:
        return self.path.with_name(f"{self.path.name}_{epoch}")


def _open_for_reader(path: Path, ended: threading.Event) -> int | None:
    """Open a pipe once a process reads it; None if the run ends before."""
    while not ended.wait(_POLL_SECONDS):
        try:
            writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            continue
        os.set_blocking(writer, True)
        return writer
    return None
