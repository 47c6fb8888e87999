"""Tables, JSON and YAML of commands."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import typer

from trainmaster.cli.output.elastic import (
    NODES_HEADERS,
    members_headers,
    members_rows,
    nodes_rows,
    rendezvous_line,
)
from trainmaster.cli.output.fit import columns_of
from trainmaster.cli.output.own_words import in_own_words
from trainmaster.cli.output.times import elapsed_time, format_duration, format_moment, format_moments, timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.jobs.infeasible import INFEASIBLE, NEVER_FIT
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

_COLOR = re.compile(r"\x1b\[[0-9;]*m")
Paint = Callable[[str], str]
PRINT_YAML: ContextVar[bool] = ContextVar("PRINT_YAML", default=False)
"""True if the command prints YAML instead of JSON."""

_COLORS: Final[Mapping[str, str]] = {
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
    """Return a state without color."""
    return text


def without_color(text: str) -> str:
    """Return the text without colors."""
    return _COLOR.sub("", text)


def colored(state: str) -> str:
    """Return a state in its color; waiting states have none."""
    return typer.style(state, fg=_COLORS[state]) if state in _COLORS else state


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


def pools_text(job: JobView) -> str:
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
    from trainmaster.domain.capacity.resources import Resources

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
    """Return JSON for scripts and people, with control characters escaped; YAML if the command has `-o yaml`."""
    if PRINT_YAML.get():
        return as_yaml(value)
    return _readable(lambda ascii_only: json.dumps(value, indent=2, ensure_ascii=ascii_only))


def as_yaml(value: Any) -> str:
    """Return YAML in the order of the JSON, with control characters escaped."""
    import yaml

    return _readable(
        lambda ascii_only: yaml.safe_dump(value, allow_unicode=not ascii_only, sort_keys=False, width=math.inf)
    ).rstrip("\n")


def _readable(dump: Callable[[bool], str]) -> str:
    """Return the text in ASCII only, if the terminal cannot show others or they may control it."""
    if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8":
        text = dump(False)
        if text.replace("\n", "").isprintable():
            return text
    return dump(True)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on standard error, one per line, so that standard output stays data."""
    for warning in warnings:
        typer.echo(f"Warning: {in_own_words(' '.join(one_line(warning).split()))}", err=True)


def print_error(line: str) -> None:
    """Print an error on standard error."""
    typer.echo(f"Error: {one_line(line)}", err=True)


def print_usage_error(lines: str) -> None:
    """Print a usage error on standard error, each of its lines without control characters."""
    typer.echo("\n".join(map(one_line, f"Error: {lines}".split("\n"))), err=True)


def terminal_width() -> int:
    """Return the number of columns of the terminal."""
    return shutil.get_terminal_size().columns


def _units(pool: str, count: int) -> str:
    return pool if count == 1 else f"{count} x {pool}"


def table(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    """Format a table: columns of integers, and positions, are aligned at the right."""
    # Positions are strings because of `1000+`, but align like numbers.
    right = [
        heading == "Position" or (bool(rows) and all(isinstance(row[index], int) for row in rows))
        for index, heading in enumerate(headers)
    ]
    cells = [list(headers), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(map(_shown_columns, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(map(_padded, row, widths, right)).rstrip() for row in cells)


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def _padded(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - _shown_columns(cell))
    return blanks + cell if right else cell + blanks


def _shown_columns(cell: str) -> int:
    return columns_of(without_color(cell))
