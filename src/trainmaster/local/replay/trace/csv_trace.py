"""Traces as CSV: one line a job.

Columns: `submit_time_s`, `duration_s`, `num_gpus`; optional `job_id`, `vc` (the share) and `max_runtime_s`. Other
columns are ignored.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from trainmaster.domain.requests.fields import shown
from trainmaster.local.replay.files import replaced_file, write_standard_output
from trainmaster.local.replay.trace.sacct import SEPARATOR
from trainmaster.local.replay.trace.trace import DEFAULT_SHARE, MAX_GPUS, MAX_YEARS, YEAR, BadTrace, TraceJob, some_of

NEEDED = ("submit_time_s", "duration_s", "num_gpus")
_COLUMNS = ("job_id", *NEEDED, "vc", "max_runtime_s")
_WHOLE = re.compile(r"0*([0-9]{1,7})(\.0*)?")
"""A whole number up to some millions; other programs write those of a column with gaps as `1.0`."""


def parse_csv(text: str) -> list[TraceJob]:
    """Return the jobs in the order of the file. Raises `BadTrace` with line and column."""
    lines = _lines_of(text)
    first, header = next(lines, (1, []))
    names = [name.strip() for name in header]
    _check_columns(names, first)
    return [_job(names, fields, line) for line, fields in lines]


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
            there = f"columns: {some_of(names) or 'none'}"
            raise BadTrace(f"line {line}: the column {needed} is missing ({there}){_format_hint(names)}")


def _format_hint(names: Sequence[str]) -> str:
    """Return what to do about a file in another format; "" if it is not known."""
    if names and (SEPARATOR in names[0] or names[0].startswith("JobID ")):
        return "; run sacct with --parsable2 and without --noheader"
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
    if seconds > MAX_YEARS * YEAR:
        limit = f"a number of seconds, at most {MAX_YEARS * YEAR:.0f} ({MAX_YEARS} years)"
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
