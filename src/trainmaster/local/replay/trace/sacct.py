"""Traces as Slurm's accounting prints them: the output of `sacct --parsable2` with its header.

Columns and values are those of sacct(1). A job counts the GPUs that it was given (`AllocTRES`); jobs without GPUs, jobs
that never ran, and jobs that have not ended are omitted. The share is the account. With `--duplicates` there is a row
for each run of a job that was requeued or preempted: these are one job, which ran for their times together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.domain.compat import UTC
from trainmaster.domain.requests.fields import shown
from trainmaster.local.replay.trace.trace import DEFAULT_SHARE, MAX_GPUS, MAX_YEARS, YEAR, BadTrace, TraceJob, some_of

FORMAT = "JobID,Submit,State,ElapsedRaw,TimelimitRaw,AllocTRES,Account"
"""The value of `--format` that has all columns of a trace."""
SEPARATOR = "|"
_ALTERNATIVES = (("JobIDRaw", "JobID"), ("Submit",), ("State",), ("ElapsedRaw", "Elapsed"), ("AllocTRES",))
"""The columns that a trace needs: of each, the first that is there."""
_UNFINISHED = frozenset({"PENDING", "RUNNING", "SUSPENDED"})
_CONTINUED = frozenset({"REQUEUED", "RESIZING"})
"""States of a run after which the job goes on in another one."""
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,3}):)?(\d{1,3}):(\d{1,3})(?:\.\d+)?", re.ASCII)
"""`[days-]hours:minutes:seconds`, with leading parts omitted."""
_NUMBER = re.compile(r"\d{1,10}", re.ASCII)
_GPUS = "gres/gpu"


def is_sacct(text: str) -> bool:
    """Return True if the first line is a header of `sacct --parsable2` or `--parsable`."""
    header = text.lstrip().partition("\n")[0]
    return SEPARATOR in header and "," not in header


def parse_sacct(text: str) -> list[TraceJob]:
    """Return the jobs in the order of their first rows. Raises `BadTrace` with line and column."""
    runs: dict[str, list[_Row]] = {}
    for row in _rows(text):
        if not row.is_step:
            runs.setdefault(row.job, []).append(row)
    found = [job for job in map(_job, runs.values()) if job is not None]
    if not found:
        raise BadTrace(
            f"of its {len(runs):,} jobs, none has run on GPUs and ended; AllocTRES has gres/gpu where "
            "AccountingStorageTRES in slurm.conf has it"
        )
    start = min(submit for submit, _ in found)
    return [replace(job, submit=submit - start) for submit, job in found]


@dataclass(frozen=True, slots=True)
class _Row:
    """One row, by the names of its columns; errors name its line."""

    line: int
    values: Mapping[str, str]

    @property
    def job(self) -> str:
        """The job's identifier, the same for all of its runs."""
        return self._first("JobIDRaw", "JobID")

    @property
    def is_step(self) -> bool:
        """True for a step of a job, whose resources the row of the job has."""
        return "." in self.job

    @property
    def state(self) -> str:
        """The state, of which `CANCELLED by 1000` has more words."""
        return self.values["State"].partition(" ")[0]

    @property
    def name(self) -> str:
        """The job's identifier as its user knows it, `17_3` for a task of an array."""
        return self._first("JobID", "JobIDRaw")

    @property
    def share(self) -> str:
        """The account, or the partition if there is no account."""
        return self.values.get("Account") or self.values.get("Partition") or DEFAULT_SHARE

    def submit(self) -> float:
        """Return when it was submitted, in seconds since 1970; `sacct` prints local times without a time zone."""
        text = self.values["Submit"]
        if _NUMBER.fullmatch(text):
            return float(text)
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise self._bad("Submit", "a time such as 2026-01-31T23:59:59") from None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    def elapsed(self) -> float:
        """Return for how many seconds it ran."""
        column = "ElapsedRaw" if "ElapsedRaw" in self.values else "Elapsed"
        seconds = self._duration(column, unit=1)
        if seconds is None or seconds > MAX_YEARS * YEAR:
            raise self._bad(column, f"a time of at most {MAX_YEARS} years: seconds, or [days-]hours:minutes:seconds")
        return seconds

    def limit(self) -> float | None:
        """Return its time limit in seconds; None without one, as for `UNLIMITED` and `Partition_Limit`."""
        column = "TimelimitRaw" if "TimelimitRaw" in self.values else "Timelimit"
        return self._duration(column, unit=60) if column in self.values else None

    def gpus(self) -> int:
        """Return the GPUs that it was given: `gres/gpu=8`, beside which `gres/gpu:a100=8` tells their type."""
        given = dict(each.partition("=")[::2] for each in self.values["AllocTRES"].split(","))
        counts = [given[_GPUS]] if _GPUS in given else [n for key, n in given.items() if key.startswith(f"{_GPUS}:")]
        if not all(map(_NUMBER.fullmatch, counts)) or sum(map(int, counts)) > MAX_GPUS:
            raise self._bad("AllocTRES", f"resources with a whole number of {_GPUS} up to {MAX_GPUS}")
        return sum(map(int, counts))

    def _duration(self, column: str, unit: int) -> float | None:
        """Return the seconds of a number of units or of a time in parts; None for any other text."""
        text = self.values[column]
        if _NUMBER.fullmatch(text):
            return float(text) * unit
        parts = _ELAPSED.fullmatch(text)
        if parts is None:
            return None
        days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        return ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds

    def _first(self, *columns: str) -> str:
        return next(self.values[column] for column in columns if column in self.values)

    def _bad(self, column: str, wanted: str) -> BadTrace:
        return BadTrace(f"line {self.line}: {column} is {shown(self.values[column])}, not {wanted}")


def _job(runs: Sequence[_Row]) -> tuple[float, TraceJob] | None:
    """Return when a job was submitted, and the job; None if it has not ended, or had no GPUs in any run."""
    ordered = sorted(runs, key=_Row.submit)
    first, last = ordered[0], ordered[-1]
    if last.state in _CONTINUED or any(run.state in _UNFINISHED for run in runs):
        return None
    held = [(run.elapsed(), gpus) for run in runs if (gpus := run.gpus())]
    seconds = sum(elapsed for elapsed, _ in held)
    if not seconds:
        return None
    gpus = max(gpus for _, gpus in held)
    return first.submit(), TraceJob(first.name, 0.0, seconds, gpus, first.share, first.limit())


def _rows(text: str) -> Iterator[_Row]:
    """Yield the rows below the header."""
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    number, header = next(lines)
    # `--parsable` ends each line with a separator, `--parsable2` does not.
    names = [name.strip() for name in header.removesuffix(SEPARATOR).split(SEPARATOR)]
    for choice in _ALTERNATIVES:
        if not set(choice).intersection(names):
            missing = f"line {number}: the column {choice[0]} is missing (columns: {some_of(names)})"
            raise BadTrace(f"{missing}; run sacct with --parsable2 --format={FORMAT}")
    for number, line in lines:
        fields = line.removesuffix(SEPARATOR).split(SEPARATOR)
        yield _Row(number, dict(zip(names, map(str.strip, _checked(fields, names, number)), strict=True)))


def _checked(fields: list[str], names: Sequence[str], number: int) -> list[str]:
    """Return the fields of a line, of which the last may be empty; names with a separator shift all behind them."""
    if len(fields) == len(names) - 1:
        fields = [*fields, ""]
    if len(fields) != len(names):
        raise BadTrace(
            f"line {number}: {len(fields)} fields, but the header has {len(names)}; leave out columns with free text, "
            f"such as JobName: --format={FORMAT}"
        )
    return fields
