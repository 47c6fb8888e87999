"""Tables and JSON of commands. Job tables have the form of the article's `print_queue_state`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from trainmaster.cli.output.elastic import (
    NODES_HEADERS,
    members_headers,
    members_rows,
    nodes_rows,
    rendezvous_line,
    size_text,
)
from trainmaster.cli.output.outlook import short_reason, start_range
from trainmaster.cli.output.times import elapsed_time, format_duration, format_moment, format_moments, timestamp
from trainmaster.client.kinds import is_training_job
from trainmaster.client.views.moments import zone_name
from trainmaster.client.views.states import ENDED
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.jobs.listing import INFEASIBLE, NEVER_FIT
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views.types import (
        AttemptView,
        ElasticView,
        HistoryEntryView,
        JobView,
        ReasonView,
        RendezvousView,
    )

Paint = Callable[[str], str]

HEADERS: Final = ("Job Name", "State", "Priority")
"""Columns of the article's table ("print the queue state")."""
_SCREEN_HEADERS: Final = ("Starts", "Reason")
_WIDE_HEADERS: Final = ("Position", "Pools", "Starts", "Reason")
_MIN_REASON_WIDTH = 20
_COLOURS: Final[Mapping[str, str]] = {
    "running": "green",
    "starting": "green",
    "completed": "green",
    "preempting": "yellow",
    "preempted": "yellow",
    "held": "yellow",
    INFEASIBLE: "yellow",
    "failed": "red",
    "stopped": "red",
    "cancelled": "red",
}


def plain(text: str) -> str:
    """Return a state without colour."""
    return text


def coloured(state: str) -> str:
    """Return a state in its colour; waiting states have none."""
    return typer.style(state, fg=_COLOURS[state]) if state in _COLOURS else state


def sort_jobs(jobs: Iterable[JobView]) -> list[JobView]:
    """Sort unfinished jobs by priority and the queue's order, as the article does; then finished jobs as given."""
    jobs = list(jobs)
    open_jobs = [job for job in jobs if job["jobState"] not in ENDED]
    ended = [job for job in jobs if job["jobState"] in ENDED]
    return [*sorted(open_jobs, key=lambda job: (-job["priority"], job["entryTime"], job["jobName"])), *ended]


def jobs_table(jobs: Sequence[JobView], paint: Paint = plain) -> str:
    """Return the article's table."""
    return table([_row(job, paint) for job in jobs], HEADERS)


def screen_table(jobs: Sequence[JobView], now: datetime, paint: Paint, width: int) -> str:
    """Return the article's table; if any job waits, with start and reason, cut to the width."""
    sizes, heading = _sizes(jobs)
    rows = [[*_row(job, paint), *sizes(job), start_range(job, now), short_reason(job)] for job in jobs]
    if not any(row[-1] or row[-2] for row in rows):
        return table([row[:-2] for row in rows], (*HEADERS, *heading))
    _cut_last(rows, (*HEADERS, *heading, *_SCREEN_HEADERS), width)
    return table(rows, (*HEADERS, *heading, *_SCREEN_HEADERS))


def wide_table(jobs: Sequence[JobView], now: datetime, paint: Paint = plain, width: int | None = None) -> str:
    """Return the article's table with position, pools, start and reason; reasons are cut to `width` if given."""
    sizes, heading = _sizes(jobs)
    rows = [
        [
            *_row(job, paint),
            *sizes(job),
            position_text(job),
            _pools_of(job),
            start_range(job, now),
            reason_text(job["reason"]),
        ]
        for job in jobs
    ]
    if width is not None:
        _cut_last(rows, (*HEADERS, *heading, *_WIDE_HEADERS), width)
    return table(rows, (*HEADERS, *heading, *_WIDE_HEADERS))


def _sizes(jobs: Sequence[JobView]) -> tuple[Callable[[JobView], list[str]], list[str]]:
    """Return a column of sizes if any job is elastic or has regions: its cells for a job, and its heading."""
    if not any(job.get("elastic") or not is_training_job(job) for job in jobs):
        return (lambda _: []), []
    return (lambda job: [size_text(job)]), ["Size"]


def attempts_table(attempts: Sequence[AttemptView], now: datetime) -> str:
    """Return a table of a job's attempts with their run times.

    It shows units if the queue chose them or they differ, and interruptions if there are any.
    """
    instance_type = any(attempt.get("instanceType") for attempt in attempts)
    show_units = instance_type or len({tuple(sorted(attempt["units"].items())) for attempt in attempts}) > 1
    interrupted = any(attempt["interruptions"] for attempt in attempts)
    rows = [
        [
            *(attempt["number"], attempt["trainingJobName"]),
            *([attempt_placement(attempt)] if show_units else []),
            *(attempt["outcome"], timestamp(attempt["createdAt"], now)),
            elapsed_time(attempt["startedAt"], attempt["endedAt"], now),
            *([attempt["interruptions"]] if interrupted else []),
            _told(attempt["reason"], now),
        ]
        for attempt in attempts
    ]
    headers = (
        "Attempt",
        "Training Job",
        *(["Units"] if show_units else []),
        "Outcome",
        f"Created ({zone_name(now)})",
        "Ran",
    )
    return table(rows, (*headers, *(["Interrupted"] if interrupted else []), "Reason"))


def earlier_attempts(job: JobView, now: datetime) -> str:
    """Summarise the attempts that are not listed in one line; empty if all are listed."""
    earlier = job.get("earlierAttempts")
    if not earlier:
        return ""
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(earlier["outcomes"].items()))
    since = f"the first began {format_moment(earlier['beganAt'], now)}"
    return f"{earlier['count']} not listed: {outcomes}; {format_duration(earlier['atWorkSeconds'])} at work; {since}"


def members_table(elastic: ElasticView, now: datetime) -> str:
    """Return a table of the members of an elastic job."""
    return table(members_rows(elastic, now), members_headers(now))


def rendezvous_table(view: RendezvousView) -> str:
    """Return a rendezvous with its nodes; empty if no node has joined."""
    line = rendezvous_line(view)
    return f"{line}\n{table(nodes_rows(view['nodes']), NODES_HEADERS)}" if view["nodes"] else line


def history_table(history: Sequence[HistoryEntryView], now: datetime, paint: Paint = plain) -> str:
    """Return a table of a job's transitions."""
    rows = [
        [timestamp(entry["at"], now), paint(entry["to"]), entry["attempt"] or "", _told(entry["reason"], now)]
        for entry in history
    ]
    return table(rows, (f"Time ({zone_name(now)})", "State", "Attempt", "Reason"))


def _told(reason: str | None, now: datetime) -> str:
    return format_moments(reason or "", now)


def facts_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, one per line, without those that have no value."""
    from tabulate import tabulate

    return tabulate([row for row in rows if row[1]], tablefmt="plain", disable_numparse=True)


def position_text(job: JobView) -> str:
    """Return the position in the queue: `3`, or `1000+` if it is too deep to count."""
    if job["position"] is not None:
        return str(job["position"])
    return f"{job['positionAtLeast']}+" if job["positionAtLeast"] is not None else ""


def demand_text(job: JobView) -> str:
    """Return the job's demand: `2 x ml.p5.48xlarge`, joined by `+`, alternatives by `or`.

    If no pool has the requested resources, return these.
    """
    if not job["demand"]:
        return requested_resources(job)
    return " or ".join(" + ".join(_units(pool, count) for pool, count in one.items()) for one in job["demand"])


def _pools_of(job: JobView) -> str:
    """Return where the job runs, else where it could run; if it fits no pool, the requested resources."""
    at_work = [attempt for attempt in job["attempts"] if attempt["outcome"] == "active"]
    if at_work:
        return attempt_placement(at_work[-1])
    return (requested_resources(job) if displayed_state(job) == INFEASIBLE else "") or demand_text(job)


def requested_resources(job: JobView) -> str:
    """Return the requested resources: `2 x (accelerators=8,vcpus=96)`; empty if it names types or pools."""
    resources = job.get("resources")
    if resources is None:
        return ""
    text = Resources(
        accelerators=resources["accelerators"],
        accelerator_memory_gib=resources["acceleratorMemoryGib"],
        vcpus=resources["vcpus"],
        memory_gib=resources["memoryGib"],
        accelerator=resources["accelerator"],
    )
    return f"{job['instances']} x ({text})"


def attempt_placement(attempt: AttemptView) -> str:
    """Return an attempt's units, with the instance type if the queue chose it and the pool's name differs."""
    units, instance_type = attempt["units"], attempt.get("instanceType")
    kind = f" ({instance_type})" if instance_type and instance_type not in units else ""
    return " + ".join(_units(pool, count) for pool, count in units.items()) + kind


def displayed_state(job: JobView) -> str:
    """Return the job's state, or `infeasible` if it fits no pool; that follows from the pools and is not stored."""
    reason = job["reason"]
    return INFEASIBLE if reason is not None and reason["type"] in NEVER_FIT else job["jobState"]


def reason_text(reason: ReasonView | str | None) -> str:
    """Return a reason as text."""
    if reason is None:
        return ""
    return reason if isinstance(reason, str) else reason["message"]


def as_json(value: Any) -> str:
    """Return JSON for scripts and people, with control characters escaped."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not readable)
    return text if text.replace("\n", "").isprintable() else json.dumps(value, indent=2)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on standard error, one per line, so that standard output stays data."""
    for warning in warnings:
        typer.echo(f"Warning: {' '.join(one_line(warning).split())}", err=True)


def print_error(line: str) -> None:
    """Print an error on standard error."""
    typer.echo(f"Error: {one_line(line)}", err=True)


def terminal_width() -> int:
    """Return the number of columns of the terminal."""
    return shutil.get_terminal_size().columns


def _row(job: JobView, paint: Paint) -> list[Any]:
    return [job["jobName"], paint(displayed_state(job)), job["priority"]]


def _units(pool: str, count: int) -> str:
    return pool if count == 1 else f"{count} x {pool}"


def _cut_last(rows: list[list[Any]], headers: Sequence[str], width: int) -> None:
    """Cut the last column so that lines fit the width, but keep at least a few words."""
    others = table([row[:-1] for row in rows], headers[:-1]).splitlines()
    width_left = max(width - len(others[1]) - 2, _MIN_REASON_WIDTH)
    for row in rows:
        if len(row[-1]) > width_left:
            row[-1] = row[-1][: width_left - 1].rstrip() + "…"


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """Format a table. Only columns of integers count as numbers, since tabulate takes a name such as `1e5` for one."""
    from tabulate import tabulate

    text_columns = [index for index in range(len(headers)) if not all(isinstance(row[index], int) for row in rows)]
    # Positions are strings because of `1000+`, but align like numbers.
    right_aligned = {
        index for index, heading in enumerate(headers) if heading == "Position" or index not in text_columns
    }
    align = ["right" if index in right_aligned else "left" for index in range(len(headers))]
    return tabulate(rows, headers=headers, disable_numparse=text_columns, colalign=align if rows else None)
