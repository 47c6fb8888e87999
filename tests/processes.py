"""Looks at processes of this machine."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """Return True if the process runs; one that has ended but was not reaped by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # before it is opened, or before it is read
        return False
