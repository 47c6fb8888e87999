"""Read rows of jobs tolerantly: a row that cannot be read is reported and left out, and costs no other job its turn.

Only the queue's functions write the table, so such a row is damaged, misplaced or of an unknown kind. Values are
checked against the types of the fields, because the planner would meet a wrong one in the middle of a pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from trainmaster.adapters.dynamodb.rows import WAIT, Key, Row, finished_at, job_of, lane_of, place, waiting_key
from trainmaster.domain.errors import UnreadableRow
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, Job
from trainmaster.domain.jobs.listing import ended_place
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.value_types import check_fields, is_time

log = logging.getLogger(__name__)
KEPT_READS = 4
"""Reads of the queue for which a job is known after the last one that met its row."""
_MAX_CAUSE = 200
_T = TypeVar("_T")
ReadJobs: TypeAlias = Callable[[Iterable[Row]], Iterator[Job]]
"""Yields the jobs of the rows that can be read."""


def read_job(row: Row) -> Job:
    """Return the job of a live row. Raises `UnreadableRow`, also for one that the queue cannot have written there."""
    try:
        job = job_of(row)
        _verify(row, job)
    except Exception as error:
        raise _unreadable(row, error) from error
    return job


def read(row: Row, parse: Callable[[Row], _T]) -> _T:
    """Return what `parse` makes of a row; the values of dataclasses are checked.

    Raises `UnreadableRow` for any error, which is the row's.
    """
    try:
        value = parse(row)
        for part in value if isinstance(value, tuple) else (value,):
            check_fields(part)
    except UnreadableRow:
        raise
    except Exception as error:
        raise _unreadable(row, error) from error
    return value


def _unreadable(row: Row, error: Exception) -> UnreadableRow:
    return UnreadableRow(f"The row {name_of(row)} cannot be read: {repr(error)[:_MAX_CAUSE]}.")


def readable_jobs(rows: Iterable[Row], report: Callable[[str], object] | None = None) -> Iterator[Job]:
    """Yield the jobs of the rows that can be read; see `readable`."""
    return _readable(rows, read_job, report)


class KnownJobs:
    """The jobs of the rows of the last few reads, so that rows that have not changed are not read again.

    Nearly all jobs of a deep queue are the same in the next pass; a job is a value, so both may share it. Of one read
    alone, a pass that finds its pools full would forget most: it reads fewer jobs than one that finds them free.
    """

    def __init__(self) -> None:
        self._reads = 0
        self._jobs: dict[str, tuple[int, Row, Job]] = {}

    def reader(self, report: Callable[[str], object]) -> ReadJobs:
        """Return the function for one read of the queue: `readable_jobs`, and the known jobs of unchanged rows."""
        self._reads = number = self._reads + 1
        jobs = self._jobs = {key: known for key, known in self._jobs.items() if number - known[0] <= KEPT_READS}

        def read_rows(rows: Iterable[Row]) -> Iterator[Job]:
            for row in rows:
                key = row["sk"]["S"]
                known = jobs.get(key)
                if known is not None and known[1] == row:
                    jobs[key] = (number, *known[1:])
                    yield known[2]
                    continue
                for job in readable_jobs([row], report):
                    jobs[key] = (number, row, job)
                    yield job

        return read_rows


def readable(
    rows: Iterable[Row], parse: Callable[[Row], _T], report: Callable[[str], object] | None = None
) -> Iterator[_T]:
    """Yield the values of the rows that can be read; log the others, and pass their keys to `report`."""
    return _readable(rows, lambda row: read(row, parse), report)


def _readable(
    rows: Iterable[Row], checked: Callable[[Row], _T], report: Callable[[str], object] | None
) -> Iterator[_T]:
    for row in rows:
        try:
            value = checked(row)
        except UnreadableRow as error:
            log.warning("a row is left out", extra={"row": name_of(row), "cause": str(error)})
            if report is not None:
                report(name_of(row))
            continue
        yield value


def read_or(row: Row | None, parse: Callable[[Row], _T], default: _T) -> _T:
    """Return what `parse` makes of a row, and the default if there is none or it cannot be read."""
    return default if row is None else next(readable([row], parse), default)


def name_of(row: Row) -> str:
    """Return the key of a row as text."""
    return f"{row['pk']['S']}/{row['sk']['S']}"


def _verify(row: Row, job: Job) -> None:
    """Raise `ValueError` for a job that the queue could not have written into this row."""
    if not _is_consistent(job):
        raise ValueError("the job's values contradict each other")
    if not _is_in_place(row, job):
        raise ValueError("the row belongs in another place")


def _is_in_place(row: Row, job: Job) -> bool:
    """Return whether the row has the key that the job's state gives it; a waiting one's lane may be an earlier one."""
    key: Key = (row["pk"]["S"], row["sk"]["S"])
    if (job.state in ENDED) != ("finishedIn" in row):
        return False
    if job.state in ENDED and row["finishedAt"]["S"] != finished_at(ended_place(job)):
        return False
    return key == ((WAIT, waiting_key(lane_of(row), job.order)) if job.state in WAITING else place(job))


def _is_consistent(job: Job) -> bool:
    demand, attempt = job.demand, job.attempt
    if not is_time(job.entry_time) or abs(job.priority) > MAX_PRIORITY:
        return False
    for units in demand.alternatives:
        if min(units.values(), default=1) <= 0:
            return False
    # An attempt that has lost its base, or whose last parts of work end, holds 0 of a pool.
    if job.state in ACTIVE and (attempt is None or min(attempt.units.values(), default=0) < 0):
        return False
    if demand.resources is None:
        return bool(demand.alternatives) and all(demand.alternatives)
    return demand.instances > 0 and demand.listed >= 0
