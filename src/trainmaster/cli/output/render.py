"""What commands print: the article's table, other tables, JSON.

It must not ask the API or decide anything. Tables are tabulate's, in the form of the article's `print_queue_state`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from trainmaster.cli.output.elastic import (
    MEMBERS_HEADERS,
    NODES_HEADERS,
    members_rows,
    nodes_rows,
    rendezvous_line,
    size_of,
)
from trainmaster.cli.output.outlook import brief_reason, starts_in
from trainmaster.cli.output.times import lasted, span, stamp
from trainmaster.client.views.jobs import ENDED
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.jobs.listing import INFEASIBLE, NEVER_FIT
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views.elastic import ElasticView, RendezvousView
    from trainmaster.client.views.jobs import AttemptView, HistoryEntry, JobView, Reason

Paint = Callable[[str], str]

HEADERS: Final = ("Job Name", "State", "Priority")
"""The columns of the article's table ("print the queue state")."""
_NEAR: Final = ("Starts", "Reason")
_WIDE: Final = ("Position", "Pools", "Starts", "Reason")
_SHORTEST_REASON = 20
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
    """A state without colour."""
    return text


def coloured(state: str) -> str:
    """A state in its colour; what just waits has none."""
    return typer.style(state, fg=_COLOURS[state]) if state in _COLOURS else state


def in_order(jobs: Iterable[JobView]) -> list[JobView]:
    """Unfinished jobs as the article prints them, priority down, in the queue's order; then the others as they came."""
    jobs = list(jobs)
    open_jobs = [job for job in jobs if job["jobState"] not in ENDED]
    ended = [job for job in jobs if job["jobState"] in ENDED]
    return [*sorted(open_jobs, key=lambda job: (-job["priority"], job["entryTime"], job["jobName"])), *ended]


def jobs_table(jobs: Sequence[JobView], paint: Paint = plain) -> str:
    """The article's table."""
    return _table([_row(job, paint) for job in jobs], HEADERS)


def screen_table(jobs: Sequence[JobView], now: datetime, paint: Paint, width: int) -> str:
    """The article's table; where any job waits, with when it starts and why it waits, no line wider than that."""
    sizes, heading = _sizes(jobs)
    rows = [[*_row(job, paint), *sizes(job), starts_in(job, now), brief_reason(job)] for job in jobs]
    if not any(row[-1] or row[-2] for row in rows):
        return _table([row[:-2] for row in rows], (*HEADERS, *heading))
    _cut_last(rows, (*HEADERS, *heading, *_NEAR), width)
    return _table(rows, (*HEADERS, *heading, *_NEAR))


def wide_table(jobs: Sequence[JobView], now: datetime, paint: Paint = plain, width: int | None = None) -> str:
    """The article's table with position, pools, start and reason; reasons are cut where lines would exceed `width`."""
    sizes, heading = _sizes(jobs)
    rows = [
        [*_row(job, paint), *sizes(job), position_of(job), _pools_of(job), starts_in(job, now), text_of(job["reason"])]
        for job in jobs
    ]
    if width is not None:
        _cut_last(rows, (*HEADERS, *heading, *_WIDE), width)
    return _table(rows, (*HEADERS, *heading, *_WIDE))


def _sizes(jobs: Sequence[JobView]) -> tuple[Callable[[JobView], list[str]], list[str]]:
    """A column of sizes where any job is elastic or has regions: what it has for a job, and its heading."""
    if not any(job.get("elastic") or job.get("image") for job in jobs):
        return (lambda _: []), []
    return (lambda job: [size_of(job)]), ["Size"]


def attempts_table(attempts: Sequence[AttemptView], now: datetime) -> str:
    """A job's attempts, with the time that each has run.

    Where, if the queue chose or not all have the same; how often it was interrupted, if it was.
    """
    chosen = any(attempt.get("instanceType") for attempt in attempts)
    several = chosen or len({tuple(sorted(attempt["units"].items())) for attempt in attempts}) > 1
    interrupted = any(attempt["interruptions"] for attempt in attempts)
    rows = [
        [
            *(attempt["number"], attempt["trainingJobName"]),
            *([place_of(attempt)] if several else []),
            *(attempt["outcome"], stamp(attempt["createdAt"])),
            lasted(attempt["startedAt"], attempt["endedAt"], now),
            *([attempt["interruptions"]] if interrupted else []),
            text_of(attempt["reason"]),
        ]
        for attempt in attempts
    ]
    headers = ("Attempt", "Training Job", *(["Units"] if several else []), "Outcome", "Created (UTC)", "Ran")
    return _table(rows, (*headers, *(["Interrupted"] if interrupted else []), "Reason"))


def earlier_of(job: JobView) -> str:
    """The attempts that are not listed, in one line; empty where all are."""
    earlier = job.get("earlierAttempts")
    if not earlier:
        return ""
    ways = ", ".join(f"{count} {outcome}" for outcome, count in sorted(earlier["outcomes"].items()))
    since = f"the first began {stamp(earlier['beganAt'])} UTC"
    return f"{earlier['count']} that are not listed: {ways}; at work for {span(earlier['atWorkSeconds'])}; {since}"


def members_table(elastic: ElasticView) -> str:
    """The members of an elastic job."""
    return _table(members_rows(elastic), MEMBERS_HEADERS)


def rendezvous_table(view: RendezvousView) -> str:
    """A rendezvous with its nodes; empty where no node has come."""
    line = rendezvous_line(view)
    return f"{line}\n{_table(nodes_rows(view['nodes']), NODES_HEADERS)}" if view["nodes"] else line


def history_table(history: Sequence[HistoryEntry], paint: Paint = plain) -> str:
    """A job's transitions."""
    rows = [
        [stamp(entry["at"]), paint(entry["to"]), entry["attempt"] or "", text_of(entry["reason"])] for entry in history
    ]
    return _table(rows, ("Time (UTC)", "State", "Attempt", "Reason"))


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, one a line; those without a value are left out."""
    from tabulate import tabulate

    return tabulate([[_cell(each) for each in row] for row in rows if row[1]], tablefmt="plain", disable_numparse=True)


def position_of(job: JobView) -> str:
    """The place in the queue: `3`; `1000+` where it is too deep to count."""
    if job["position"] is not None:
        return str(job["position"])
    return f"{job['positionAtLeast']}+" if job["positionAtLeast"] is not None else ""


def demand_of(job: JobView) -> str:
    """What the job asks of pools: `2 x ml.p5.48xlarge`, joined by `+`, alternatives by `or`.

    Of a job that asks for resources, where no pool has them, what it asks for.
    """
    if not job["demand"]:
        return asks_of(job)
    return " or ".join(" + ".join(_units(pool, count) for pool, count in one.items()) for one in job["demand"])


def _pools_of(job: JobView) -> str:
    """Where the job is, else where it could be; of one that no pool could hold, what it asks for."""
    at_work = [attempt for attempt in job["attempts"] if attempt["outcome"] == "active"]
    if at_work:
        return place_of(at_work[-1])
    return (asks_of(job) if state_of(job) == INFEASIBLE else "") or demand_of(job)


def asks_of(job: JobView) -> str:
    """What the job asks of instances: `2 x (accelerators=8,vcpus=96)`; empty where it names types or pools only."""
    asked = job.get("resources")
    if asked is None:
        return ""
    text = Resources(
        accelerators=asked["accelerators"],
        accelerator_memory_gib=asked["acceleratorMemoryGib"],
        vcpus=asked["vcpus"],
        memory_gib=asked["memoryGib"],
        accelerator=asked["accelerator"],
    )
    return f"{job['instances']} x ({text})"


def place_of(attempt: AttemptView) -> str:
    """What an attempt has of pools, with the instance type that the queue chose where its pool has another name."""
    units, chosen = attempt["units"], attempt.get("instanceType")
    kind = f" ({chosen})" if chosen and chosen not in units else ""
    return " + ".join(_units(pool, count) for pool, count in units.items()) + kind


def state_of(job: JobView) -> str:
    """The job's state; `infeasible`, which follows from the pools and is stored nowhere, where none could hold it."""
    reason = job["reason"]
    return INFEASIBLE if reason is not None and reason["type"] in NEVER_FIT else job["jobState"]


def text_of(reason: Reason | str | None) -> str:
    """A reason's words."""
    if reason is None:
        return ""
    return one_line(reason if isinstance(reason, str) else reason["message"])


def as_json(value: Any) -> str:
    """JSON for scripts and people; what a terminal would obey is escaped."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=2, ensure_ascii=not readable)
    return text if text.replace("\n", "").isprintable() else json.dumps(value, indent=2)


def warn(warnings: Iterable[str]) -> None:
    """Warnings on standard error, a line each, so that output stays data."""
    for warning in warnings:
        typer.echo(f"Warning: {' '.join(one_line(warning).split())}", err=True)


def complain(line: str) -> None:
    """An error on standard error."""
    typer.echo(f"Error: {one_line(line)}", err=True)


def terminal_width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns


def _row(job: JobView, paint: Paint) -> list[Any]:
    return [job["jobName"], paint(state_of(job)), job["priority"]]


def _units(pool: str, count: int) -> str:
    return pool if count == 1 else f"{count} x {pool}"


def _cut_last(rows: list[list[Any]], headers: Sequence[str], width: int) -> None:
    """Cut the last column so that no line is wider; never to less than a few words."""
    others = _table([row[:-1] for row in rows], headers[:-1]).splitlines()
    room = max(width - len(others[1]) - 2, _SHORTEST_REASON)
    for row in rows:
        if len(row[-1]) > room:
            row[-1] = row[-1][: room - 1].rstrip() + "…"


def _cell(value: Any) -> Any:
    """A text without what a terminal would obey, such as a model's words in a reason; our own colours stay."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(part if _COLOUR.fullmatch(part) else one_line(part) for part in _COLOUR.split(value))


_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def _table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """Tabulate, which would take a job named `1e5` for a number: only columns of integers are numbers here."""
    from tabulate import tabulate

    rows = [[_cell(each) for each in row] for row in rows]
    texts = [index for index in range(len(headers)) if not all(isinstance(row[index], int) for row in rows)]
    # Positions are texts because of `1000+`, and line up as numbers nevertheless.
    right = {index for index, heading in enumerate(headers) if heading == "Position" or index not in texts}
    align = ["right" if index in right else "left" for index in range(len(headers))]
    return tabulate(rows, headers=headers, disable_numparse=texts, colalign=align if rows else None)
