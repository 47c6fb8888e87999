"""Output: files that appear only when they are complete, and errors that name them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def name_in_errors(name: str) -> Iterator[None]:
    """Name a file as the user does in each `OSError`: those of reads and writes name none."""
    try:
        yield
    except OSError as error:
        error.filename = name
        raise


@contextmanager
def replaced_file(name: str) -> Iterator[Path]:
    """Yield a path to write to; at the end it replaces the file, and after an error it is removed.

    Devices, pipes and links are written to directly. Raises `OSError`.
    """
    file = Path(name)
    direct = file.is_symlink() or (file.exists() and not file.is_file())
    temporary = file if direct else file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with name_in_errors(name):
        try:
            yield temporary
            temporary.replace(file)
        finally:
            if not direct:
                temporary.unlink(missing_ok=True)


def check_directory(name: str) -> None:
    """Create a directory if necessary, and check that files can be written to it. Raises `OSError`."""
    with name_in_errors(name):
        Path(name).mkdir(parents=True, exist_ok=True)
        TemporaryDirectory(dir=name, prefix=".").cleanup()


def write_standard_output(text: str) -> None:
    """Write to standard output. Raises `OSError`."""
    if sys.stdout is None:
        raise OSError("standard output is closed")
    try:
        with name_in_errors("standard output"):
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError:
        # Keep Python from failing again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
