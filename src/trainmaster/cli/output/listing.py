"""The table of `ls`: the article's columns first, then user, age, run time, start, end and reason.

On a terminal, names, users, times and reasons are shortened until the lines fit, and on a narrow one some columns are
left out; elsewhere nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainmaster.cli.output.elastic import size_text
from trainmaster.cli.output.fit import ELLIPSIS, columns_of, cut, cut_middle, shrink
from trainmaster.cli.output.forms import csv_text
from trainmaster.cli.output.outlook import SOON, deadline_risk, short_reason, start_range
from trainmaster.cli.output.render import (
    displayed_state,
    plain,
    pools_text,
    position_text,
    reason_text,
    table,
    without_color,
)
from trainmaster.cli.output.times import compact_duration, compact_moment, format_moments, timestamp
from trainmaster.client.kinds import is_training_job
from trainmaster.client.views.moments import parse_timestamp
from trainmaster.client.views.states import ENDED, WAITING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from trainmaster.cli.output.render import Paint
    from trainmaster.client.views.types import JobView

_GAP: Final = 2
_SSO: Final = "AWSReservedSSO_"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table.

    Attributes:
        text: its cell for a job.
        brief: a shorter cell; None if there is none.
        cut: how longer cells are shortened; None for cells that stay whole.
        widths: the fewest columns of the terminal that it is shortened to, in each step of shortening.
    """

    heading: str
    text: Callable[[JobView, datetime], Any]
    brief: Callable[[JobView, datetime], str] | None = None
    cut: Callable[[str, int], str] | None = None
    widths: tuple[int, int, int] = (0, 0, 0)


def jobs_table(
    jobs: Sequence[JobView], now: datetime, paint: Paint = plain, *, width: int | None = None, wide: bool = False
) -> str:
    """Return the table; with a width, cells are shortened to it, and lines that are still longer are cut."""
    columns = _columns(jobs, wide=wide)
    cells = [[column.text(job, now) for column in columns] for job in jobs]
    if width is not None:
        columns, cells = _fitted(columns, cells, jobs, now, width)
    state = [column.heading for column in columns].index("State")
    painted = [[paint(cell) if index == state else cell for index, cell in enumerate(row)] for row in cells]
    text = table(painted, [column.heading for column in columns])
    return text if width is None else "\n".join(_clipped(line, width) for line in text.splitlines())


def _clipped(line: str, width: int) -> str:
    """Return the line, cut at the width; colors take no columns, and only the state has one."""
    if columns_of(without_color(line)) <= width:
        return line
    while columns_of(without_color(line)) >= width:
        line = line[:-1]
    return line + ELLIPSIS


def sort_jobs(jobs: Iterable[JobView]) -> list[JobView]:
    """Sort unfinished jobs by priority and the queue's order, as the article does; then finished jobs as given."""
    jobs = list(jobs)
    open_jobs = [job for job in jobs if job["jobState"] not in ENDED]
    ended = [job for job in jobs if job["jobState"] in ENDED]
    return [*sorted(open_jobs, key=lambda job: (-job["priority"], job["entryTime"], job["jobName"])), *ended]


def jobs_csv(jobs: Sequence[JobView], now: datetime) -> str:
    """Return the jobs as comma-separated values with all columns; times are ISO 8601 in UTC, run times in seconds."""
    return csv_text(list(_CSV), ([value(job, now) for value in _CSV.values()] for job in jobs))


def short_user(principal: str | None) -> str:
    """Return the name in a principal: `ann` of a user, `research` of a role or of a permission set of SSO."""
    name = (principal or "").rpartition(":")[2].rpartition("/")[2]
    return name.removeprefix(_SSO).rpartition("_")[0] if name.startswith(_SSO) else name


def run_seconds(job: JobView, now: datetime) -> float:
    """Return how long the job's attempts were at work, in seconds."""
    earlier = job.get("earlierAttempts")
    total = 0.0 if not earlier else earlier["atWorkSeconds"]
    for attempt in job["attempts"]:
        if attempt["startedAt"]:
            end = parse_timestamp(attempt["endedAt"]) if attempt["endedAt"] else now
            total += max((end - parse_timestamp(attempt["startedAt"])).total_seconds(), 0.0)
    return total


def _fitted(
    columns: list[_Column], cells: list[list[Any]], jobs: Sequence[JobView], now: datetime, width: int
) -> tuple[list[_Column], list[list[Any]]]:
    """Return the columns that have room and their cells, shortened step by step until the lines fit the width."""
    if _fits(_widths(columns, cells), width):
        return columns, cells
    brief = [[*row[:-1], _brief(columns[-1], job, now)] for row, job in zip(cells, jobs, strict=True)]
    if _fits(widths := _shrunk(columns, _widths(columns, brief), width, 0), width):
        return columns, _cut(columns, brief, widths)
    for fewer, step in _narrower(columns):
        brief = [[_brief(column, job, now) for column in fewer] for job in jobs]
        widths = _shrunk(fewer, _widths(fewer, brief), width, step)
        if _fits(widths, width):
            break
    return fewer, _cut(fewer, brief, widths)


def _narrower(columns: list[_Column]) -> Iterator[tuple[list[_Column], int]]:
    """Yield columns, each time fewer or with a further step of shortening, so that reasons can still be read."""
    yield columns, 1
    for dispensable, step in ((_RAN, 1), (_AGE, 1), (None, 2), (_SIZE, 2), (_USER, 2)):
        columns = [column for column in columns if column is not dispensable]
        yield columns, step


def _brief(column: _Column, job: JobView, now: datetime) -> Any:
    return (column.brief or column.text)(job, now)


def _cut(columns: Sequence[_Column], cells: Sequence[Sequence[Any]], widths: Sequence[int]) -> list[list[Any]]:
    return [
        [
            column.cut(cell, limit) if column.cut else cell
            for column, cell, limit in zip(columns, row, widths, strict=True)
        ]
        for row in cells
    ]


def _fits(widths: Sequence[int], width: int) -> bool:
    return sum(widths) + _GAP * (len(widths) - 1) <= width


def _shrunk(columns: Sequence[_Column], widths: list[int], width: int, step: int) -> list[int]:
    """Return the widths after taking from the widest columns that may be cut, until the lines fit or none is left."""
    minimums = [max(column.widths[step], len(column.heading)) if column.cut else None for column in columns]
    return shrink(widths, minimums, width - _GAP * (len(columns) - 1))


def _widths(columns: Sequence[_Column], cells: Sequence[Sequence[Any]]) -> list[int]:
    return [
        max([len(column.heading), *(columns_of(str(row[index])) for row in cells)])
        for index, column in enumerate(columns)
    ]


def _columns(jobs: Sequence[JobView], *, wide: bool) -> list[_Column]:
    sized = any(job.get("elastic") or not is_training_job(job) for job in jobs)
    return [column for column in (_WIDE if wide else _NORMAL) if sized or column is not _SIZE]


def _start(job: JobView, now: datetime) -> str:
    """Return when the newest attempt started; of a waiting job, when it is likely to start."""
    if job["jobState"] in WAITING:
        return start_range(job, now)
    return timestamp(_started_at(job), now)


def _brief_start(job: JobView, now: datetime) -> str:
    if job["jobState"] in WAITING:
        expected = job["estimatedStart"]
        return _in(parse_timestamp(expected) - now) if expected else ""
    return compact_moment(_started_at(job), now)


def _end(job: JobView, now: datetime) -> str:
    """Return when the job ended; of a running job, when it is likely to end."""
    expected = job.get("expectedEnd")
    return f"about {timestamp(expected, now)}" if expected else timestamp(job["endedAt"], now)


def _brief_end(job: JobView, now: datetime) -> str:
    expected = job.get("expectedEnd")
    if expected:
        return _in(parse_timestamp(expected) - now)
    return compact_moment(job["endedAt"], now)


def _in(delta: timedelta) -> str:
    """Return a distance from now, such as `in 59m`; `now` for the next seconds and for the past."""
    return f"in {compact_duration(delta.total_seconds())}" if delta > SOON else "now"


def _started_at(job: JobView) -> str | None:
    return job["attempts"][-1]["startedAt"] if job["attempts"] else None


def _reason(job: JobView, now: datetime) -> str:
    """Return why the job waits, or why it failed."""
    waits = "; ".join(part for part in (reason_text(job["reason"]), deadline_risk(job)) if part)
    return format_moments(waits, now) or _failure(job)


def _brief_reason(job: JobView, now: datetime) -> str:
    return format_moments(short_reason(job), now) or _failure(job)


def _failure(job: JobView) -> str:
    return (job["failureReason"] or "") if job["jobState"] in ENDED else ""


def _ran(job: JobView, now: datetime) -> str:
    started = any(attempt["startedAt"] for attempt in job["attempts"]) or job.get("earlierAttempts")
    return compact_duration(run_seconds(job, now)) if started else ""


def _age(job: JobView, now: datetime) -> str:
    return compact_duration((now - parse_timestamp(job["entryTime"])).total_seconds())


_NAME = _Column("Job Name", lambda job, _: job["jobName"], cut=cut_middle, widths=(24, 16, 10))
_STATE = _Column("State", lambda job, _: displayed_state(job))
_PRIORITY = _Column("Priority", lambda job, _: job["priority"])
_SIZE = _Column("Size", lambda job, _: size_text(job), lambda job, _: size_text(job).partition(" ")[0])
_USER = _Column("User", lambda job, _: short_user(job["submittedBy"]), cut=cut_middle, widths=(12, 8, 6))
_AGE = _Column("Age", _age)
_RAN = _Column("Ran", _ran)
_START = _Column("Start", _start, _brief_start)
_END = _Column("End", _end, _brief_end)
_REASON = _Column("Reason", _reason, _brief_reason, cut=cut, widths=(24, 16, 14))
_NORMAL: Final = (_NAME, _STATE, _PRIORITY, _SIZE, _USER, _AGE, _RAN, _START, _END, _REASON)
_WIDE: Final = (
    *(_NAME, _STATE, _PRIORITY, _SIZE),
    _Column("Position", lambda job, _: position_text(job)),
    _Column("Share", lambda job, _: job["share"]),
    *(_USER, _AGE, _RAN, _START, _END),
    _Column("Pools", lambda job, _: pools_text(job)),
    _REASON,
)
_CSV: Final[dict[str, Callable[[JobView, datetime], object]]] = {
    "jobName": lambda job, _: job["jobName"],
    "jobState": lambda job, _: displayed_state(job),
    "priority": lambda job, _: job["priority"],
    "share": lambda job, _: job["share"],
    "user": lambda job, _: short_user(job["submittedBy"]),
    "entryTime": lambda job, _: job["entryTime"],
    "startedAt": lambda job, _: _started_at(job),
    "endedAt": lambda job, _: job["endedAt"],
    "expectedEnd": lambda job, _: job.get("expectedEnd"),
    "runSeconds": lambda job, now: round(run_seconds(job, now)),
    "attempts": lambda job, _: job["attempts"][-1]["number"] if job["attempts"] else 0,
    "position": lambda job, _: job["position"],
    "estimatedStart": lambda job, _: job["estimatedStart"],
    "pools": lambda job, _: pools_text(job),
    "trainingJobName": lambda job, _: job["trainingJobName"],
    "reason": lambda job, _: reason_text(job["reason"]) or _failure(job),
}
