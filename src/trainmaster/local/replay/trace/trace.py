"""Reads and writes traces: jobs in a CSV file, plain or gzipped.

Columns: `submit_time_s`, `duration_s`, `num_gpus`; optional `job_id`, `vc` (the share) and `max_runtime_s`. Other
columns are ignored.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.domain.requests.fields import shown
from trainmaster.local.replay.files import name_in_errors, replaced_file, write_standard_output

NEEDED = ("submit_time_s", "duration_s", "num_gpus")
DEFAULT_SHARE = "default"
MAX_GPUS = 1_000_000
"""Maximum of a job, and of a pool."""
_COLUMNS = ("job_id", *NEEDED, "vc", "max_runtime_s")
_GZIP = b"\x1f\x8b"
_YEAR = 366 * 86_400.0
_MAX_YEARS = 100
_MAX_REPLAYED_YEARS = 1_000
"""Of the virtual clock, which ends with the year 9999."""
_MAX_NAMES = 10
"""Of shares or columns in a message."""
_WHOLE = re.compile(r"0*([0-9]{1,7})(\.0*)?")
"""A whole number up to some millions; other programs write those of a column with gaps as `1.0`."""


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
    with name_in_errors(path):
        raw = _standard_input() if path == "-" else Path(path).read_bytes()
    return parse_trace(raw)


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise BadTrace("standard input is closed")
    return sys.stdin.buffer.read()


def parse_trace(raw: bytes) -> list[TraceJob]:
    """Parse the bytes of a CSV file. Raises `BadTrace`."""
    try:
        text = (gzip.decompress(raw) if raw.startswith(_GZIP) else raw).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BadTrace(f"not a CSV file in UTF-8, plain or gzipped: {error}") from error
    lines = _lines_of(text)
    first, header = next(lines, (1, []))
    names = [name.strip() for name in header]
    _check_columns(names, first)
    return sorted((_job(names, fields, line) for line, fields in lines), key=lambda job: job.submit)


def select_jobs(
    jobs: Iterable[TraceJob], *, cap: int | None = None, share: str | None = None, limit: int | None = None
) -> list[TraceJob]:
    """Select the jobs to replay: of one share or all, the first `limit`, with sizes capped at the pool.

    Raises `BadTrace` if none is left, or if they take longer on the pool than a virtual clock runs.
    """
    jobs = list(jobs)
    found = [job for job in jobs if share in (None, job.share)][:limit]
    if not found and jobs and share is not None:
        raise BadTrace(f"no job has the vc {share!r}; there are: {_some(sorted({job.share for job in jobs}))}")
    if not found:
        raise BadTrace("the trace has no jobs")
    if cap is None:
        return found
    capped = [replace(job, gpus=min(job.gpus, cap)) for job in found]
    _check_length(capped, cap)
    return capped


def _some(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    others = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {others:,} others" if others > 0 else "")


def _check_length(jobs: Sequence[TraceJob], cap: int) -> None:
    """Check the time that the jobs take at least."""
    work = sum(job.gpus * job.duration for job in jobs) / cap
    years = (max(job.submit for job in jobs) + work) / _YEAR
    if years > _MAX_REPLAYED_YEARS:
        raise BadTrace(
            f"the jobs take {years:,.0f} years on {cap:,} GPUs, more than {_MAX_REPLAYED_YEARS:,}: "
            "specify a larger --cap or fewer jobs (--limit), or check the unit of duration_s, which is seconds"
        )


def write_trace(path: str, jobs: Sequence[TraceJob]) -> None:
    """Write the jobs as a CSV file, gzipped if the name ends in `.gz`; to standard output for `-`."""
    text = "".join(_lines(jobs))
    if path == "-":
        write_standard_output(text)
        return
    # Without a timestamp, so that the same jobs make the same file.
    raw = gzip.compress(text.encode(), mtime=0) if path.endswith(".gz") else text.encode()
    with replaced_file(path) as file:
        file.write_bytes(raw)


def _lines(jobs: Sequence[TraceJob]) -> Iterator[str]:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for job in jobs:
        limit = "" if job.max_runtime is None else _shown(job.max_runtime)
        writer.writerow([job.job_id, _shown(job.submit), _shown(job.duration), job.gpus, job.share, limit])
    yield out.getvalue()


def _shown(seconds: float) -> str:
    return str(int(seconds)) if seconds == int(seconds) else repr(round(seconds, 3))


def _lines_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise BadTrace(f"line {line}: {error}") from error


def _check_columns(names: Sequence[str], line: int) -> None:
    for name in _COLUMNS:
        if names.count(name) > 1:
            raise BadTrace(f"line {line}: the column {name} is there {names.count(name)} times")
    for needed in NEEDED:
        if needed not in names:
            there = f"columns: {_some(names) or 'none'}"
            raise BadTrace(f"line {line}: the column {needed} is missing ({there}){_delimiter_hint(names)}")


def _delimiter_hint(names: Sequence[str]) -> str:
    found = next((word for sign, word in ((";", "semicolons"), ("\t", "tabs")) if any(sign in n for n in names)), None)
    return f"; separate the fields by commas, not by {found}" if found else ""


def _job(names: Sequence[str], fields: Sequence[str], line: int) -> TraceJob:
    if any(map(str.strip, fields[len(names) :])):
        raise BadTrace(f"line {line}: {len(fields)} fields, but the header has {len(names)}")
    row = dict(zip(names, map(str.strip, fields), strict=False))
    return TraceJob(
        job_id=row.get("job_id") or f"line-{line}",
        submit=_seconds(row, "submit_time_s", line),
        duration=_seconds(row, "duration_s", line),
        gpus=_gpus(row, line),
        share=row.get("vc") or DEFAULT_SHARE,
        max_runtime=_seconds(row, "max_runtime_s", line) if row.get("max_runtime_s") else None,
    )


def _seconds(row: Mapping[str, str], column: str, line: int) -> float:
    try:
        seconds = float(_field(row, column, line))
    except ValueError:
        seconds = math.nan
    if seconds > _MAX_YEARS * _YEAR:
        limit = f"a number of seconds, at most {_MAX_YEARS * _YEAR:.0f} ({_MAX_YEARS} years)"
        raise _bad(row, column, line, f"{limit}; is it in milliseconds?")
    if not seconds >= 0:
        raise _bad(row, column, line, "a number of seconds, at least 0")
    return seconds


def _gpus(row: Mapping[str, str], line: int) -> int:
    match = _WHOLE.fullmatch(_field(row, "num_gpus", line))
    if match is None or not 0 < int(match[1]) <= MAX_GPUS:
        raise _bad(row, "num_gpus", line, f"a whole number from 1 to {MAX_GPUS}")
    return int(match[1])


def _field(row: Mapping[str, str], column: str, line: int) -> str:
    if column not in row:
        raise BadTrace(f"line {line}: {column} is missing: the line ends after {len(row)} fields")
    return row[column]


def _bad(row: Mapping[str, str], column: str, line: int, wanted: str) -> BadTrace:
    return BadTrace(f"line {line}: {column} is {shown(row[column])}, not {wanted}")
