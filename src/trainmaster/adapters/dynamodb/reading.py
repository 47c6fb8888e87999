"""Read rows of jobs tolerantly: a row that cannot be read is reported and left out, and costs no other job its turn.

Only the queue's functions write the table, so such a row is damaged, misplaced or of an unknown kind. Values are
checked against the types of the fields, because the planner would meet a wrong one in the middle of a pass.
"""

from __future__ import annotations

import logging
import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from trainmaster.adapters.dynamodb.rows import WAIT, Key, Row, finished_at, job_of, lane_of, place, waiting_key
from trainmaster.domain.errors import UnreadableRow
from trainmaster.domain.jobs.job import ACTIVE, ENDED, WAITING, Job
from trainmaster.domain.jobs.listing import ended_place

log = logging.getLogger(__name__)
_MAX_CAUSE = 200
_T = TypeVar("_T")
_Check: TypeAlias = Callable[[Any], bool]


def read_job(row: Row) -> Job:
    """Return the job of a live row. Raises `UnreadableRow`, also for one that the queue cannot have written there."""
    job = read(row, job_of)
    read(row, lambda _: _verify(row, job))
    return job


def read(row: Row, parse: Callable[[Row], _T]) -> _T:
    """Return what `parse` makes of a row; the values of dataclasses are checked.

    Raises `UnreadableRow` for any error, which is the row's.
    """
    try:
        value = parse(row)
        for part in value if isinstance(value, tuple) else (value,):
            _check_fields(part)
    except UnreadableRow:
        raise
    except Exception as error:
        raise UnreadableRow(f"The row {name_of(row)} cannot be read: {repr(error)[:_MAX_CAUSE]}.") from error
    return value


def readable_jobs(rows: Iterable[Row], report: Callable[[str], object] | None = None) -> Iterator[Job]:
    """Yield the jobs of the rows that can be read; see `readable`."""
    return readable(rows, read_job, report)


def readable(
    rows: Iterable[Row], parse: Callable[[Row], _T], report: Callable[[str], object] | None = None
) -> Iterator[_T]:
    """Yield the values of the rows that can be read; log the others, and pass their keys to `report`."""
    for row in rows:
        try:
            value = read(row, parse)
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
    demand = job.demand
    asks = demand.alternatives if demand.resources is None else (demand.instances,)
    counts = [count for units in demand.alternatives for count in units.values()]
    return (
        bool(asks)
        and all(asks)
        and all(count > 0 for count in counts)
        # An attempt that has lost its base, or whose last parts of work end, holds 0 of a pool.
        and all(count >= 0 for count in job.units.values())
        and demand.listed >= 0
        and (job.state not in ACTIVE or job.attempt is not None)
    )


def _check_fields(value: Any) -> None:
    """Raise `TypeError` if a field of a dataclass's value has a value of another type."""
    if is_dataclass(value) and (field := _first_wrong(value)) is not None:
        raise TypeError(f"{field} has a value of another type")


def _first_wrong(value: Any) -> str | None:
    """Return the first field of a dataclass's value that has a value of another type; most have their default."""
    for name, default, check in _checks(value.__class__):
        found = getattr(value, name)
        if found is not default and not check(found):
            return name
    return None


@cache
def _checks(kind: type) -> tuple[tuple[str, Any, _Check], ...]:
    """Return the name, the default and a check of each field of a dataclass."""
    hints = get_type_hints(kind)
    return tuple((field.name, field.default, _check_of(hints[field.name])) for field in fields(kind))


@cache
def _check_of(hint: Any) -> _Check:
    """Return a function that tells whether a value has a type."""
    origin, inside = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        optional, checks = types.NoneType in inside, [_check_of(each) for each in inside if each is not types.NoneType]
        return lambda value: optional if value is None else any(check(value) for check in checks)
    if origin is tuple:
        item = _check_of(inside[0])
        return lambda value: type(value) is tuple and all(map(item, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(_check_of, inside)
        return lambda value: isinstance(value, dict) and all(key(each) and item(value[each]) for each in value)
    if is_dataclass(origin) and isinstance(origin, type):
        return lambda value: isinstance(value, origin) and _first_wrong(value) is None
    return _SCALARS.get(hint) or (lambda value: isinstance(value, origin))


_SCALARS: Mapping[Any, _Check] = {
    Any: lambda _: True,
    int: lambda value: type(value) is int,
    float: lambda value: type(value) in (int, float) and math.isfinite(value),
}
