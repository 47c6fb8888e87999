"""Reads and writes traces: jobs in a CSV file, plain or gzipped.

Columns: `submit_time_s`, `duration_s`, `num_gpus`; optional `job_id`, `vc` (the share) and `max_runtime_s`. Other
columns are ignored.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

NEEDED = ("submit_time_s", "duration_s", "num_gpus")
DEFAULT_SHARE = "default"
_GZIP = b"\x1f\x8b"
_MAX_SECONDS = 100 * 366 * 86_400.0
_MAX_GPUS = 1_000_000


class BadTrace(ValueError):
    """An invalid trace; the message names the line."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job of a trace.

    Attributes:
        submit: seconds from the start of the trace.
        duration: run time in seconds without interference.
        gpus: accelerators that it holds during all of that time, each a unit of the pool.
        share: its share; the `vc` of the trace.
        max_runtime: the limit that its user would have set, in seconds; None if the trace has none.
    """

    job_id: str
    submit: float
    duration: float
    gpus: int
    share: str = DEFAULT_SHARE
    max_runtime: float | None = None


def read_trace(path: str) -> list[TraceJob]:
    """Read a file, or standard input for `-`, in order of submission (ties as in the file).

    Raises `BadTrace` with line and column, and `OSError` if the file cannot be read.
    """
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    return parse_trace(raw)


def parse_trace(raw: bytes) -> list[TraceJob]:
    """Parse the bytes of a CSV file. Raises `BadTrace`."""
    try:
        text = (gzip.decompress(raw) if raw.startswith(_GZIP) else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadTrace(f"not a CSV file in UTF-8, plain or gzipped: {error}") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_columns(reader.fieldnames)
        jobs = [_job(row, reader.line_num) for row in reader]
    except csv.Error as error:
        raise BadTrace(f"line {reader.line_num}: {error}") from error
    return sorted(jobs, key=lambda job: job.submit)


def select_jobs(
    jobs: Iterable[TraceJob], *, cap: int, share: str | None = None, limit: int | None = None
) -> list[TraceJob]:
    """Select the jobs to replay: of one share or all, the first `limit`, with sizes capped at the pool.

    Raises `BadTrace` if none is left.
    """
    jobs = list(jobs)
    found = [job for job in jobs if share in (None, job.share)][:limit]
    if not found and jobs and share is not None:
        names = ", ".join(sorted({job.share for job in jobs}))
        raise BadTrace(f"no job has the vc {share!r}; there are: {names}")
    if not found:
        raise BadTrace("the trace has no jobs")
    return [replace(job, gpus=min(job.gpus, cap)) for job in found]


def write_trace(path: str, jobs: Sequence[TraceJob]) -> None:
    """Write the jobs as a CSV file, gzipped if the name ends in `.gz`; to standard output for `-`."""
    text = "".join(_lines(jobs))
    if path == "-":
        sys.stdout.write(text)
    elif path.endswith(".gz"):
        # Without a timestamp, so that the same jobs make the same file.
        Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        Path(path).write_text(text, encoding="utf-8", newline="")


def _lines(jobs: Sequence[TraceJob]) -> Iterator[str]:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["job_id", *NEEDED, "vc", "max_runtime_s"])
    for job in jobs:
        limit = "" if job.max_runtime is None else _shown(job.max_runtime)
        writer.writerow([job.job_id, _shown(job.submit), _shown(job.duration), job.gpus, job.share, limit])
    yield out.getvalue()


def _shown(seconds: float) -> str:
    return str(int(seconds)) if seconds == int(seconds) else repr(round(seconds, 3))


def _check_columns(names: Sequence[str] | None) -> None:
    for needed in NEEDED:
        if names is None or needed not in names:
            there = ", ".join(names or ()) or "none"
            raise BadTrace(f"line 1: the column {needed} is missing (columns: {there})")


def _job(row: Mapping[str, str | None], line: int) -> TraceJob:
    limit = (row.get("max_runtime_s") or "").strip()
    return TraceJob(
        job_id=(row.get("job_id") or "").strip() or f"line-{line}",
        submit=_seconds(row, "submit_time_s", line),
        duration=_seconds(row, "duration_s", line),
        gpus=_gpus(row, line),
        share=(row.get("vc") or "").strip() or DEFAULT_SHARE,
        max_runtime=_seconds(row, "max_runtime_s", line) if limit else None,
    )


def _seconds(row: Mapping[str, str | None], column: str, line: int) -> float:
    try:
        seconds = float(row[column] or "")
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MAX_SECONDS:
        raise _bad(row, column, line, "a number of seconds, at least 0")
    return seconds


def _gpus(row: Mapping[str, str | None], line: int) -> int:
    text = (row["num_gpus"] or "").strip()
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MAX_GPUS):
        raise _bad(row, "num_gpus", line, "a whole number, at least 1")
    return int(text)


def _bad(row: Mapping[str, str | None], column: str, line: int, wanted: str) -> BadTrace:
    return BadTrace(f"line {line}: {column} is {row[column]!r}, not {wanted}")
