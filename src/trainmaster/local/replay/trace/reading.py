"""Reads a trace in any of the formats that `trainmaster replay` knows, plain or gzipped."""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path

from trainmaster.local.replay.files import name_in_errors
from trainmaster.local.replay.trace.csv_trace import parse_csv
from trainmaster.local.replay.trace.sacct import is_sacct, parse_sacct
from trainmaster.local.replay.trace.trace import BadTrace, TraceJob

_GZIP = b"\x1f\x8b"


def read_trace(path: str) -> list[TraceJob]:
    """Read a file, or standard input for `-`, in order of submission (ties as in the file).

    Raises `BadTrace` with line and column, and `OSError` if the file cannot be read.
    """
    with name_in_errors(path):
        raw = _standard_input() if path == "-" else Path(path).read_bytes()
    return parse_trace(raw)


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise BadTrace("standard input is closed")
    return sys.stdin.buffer.read()


def parse_trace(raw: bytes) -> list[TraceJob]:
    """Parse the bytes of a CSV file or of the output of `sacct`. Raises `BadTrace`."""
    try:
        text = (gzip.decompress(raw) if raw.startswith(_GZIP) else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BadTrace(f"not a CSV file in UTF-8, plain or gzipped: {error}") from error
    jobs = parse_sacct(text) if is_sacct(text) else parse_csv(text)
    return sorted(jobs, key=lambda job: job.submit)
