"""`trainmaster settings replay`: replays the last days' jobs with a draft of the settings, on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from trainmaster.cli.common.context import CliContext, cli_context
from trainmaster.cli.common.request import read_object
from trainmaster.cli.output.render import as_json, table
from trainmaster.cli.output.times import compact_duration, timestamp
from trainmaster.client.views.moments import zone_name
from trainmaster.domain.compat import UTC
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from datetime import datetime

_DAYS: Final = 7.0
_HINT: Final = "Use the format of `trainmaster settings --json`."
_Draft = Annotated[
    str, typer.Argument(metavar="FILE", help="The draft: a complete document in JSON (- reads standard input).")
]
_Days = Annotated[float, typer.Option(metavar="N", help="Jobs of the last N days, at most 28.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
_HEADERS: Final = (
    *("Jobs", "Ended", "Wait p50", "Wait p95", "Completion p50", "Completion p95"),
    *("Preempted", "Lost h", "$"),
)
_TIMES: Final = ("waitP50Seconds", "waitP95Seconds", "completionP50Seconds", "completionP95Seconds")
_OF_JOBS: Final = ("Job", "Share", "Priority", "Wait", "Completion", "Preempted")
_LEFT_OUT: Final = {
    "notVisible": "that you may not see",
    "gone": "deleted meanwhile",
    "otherKinds": "of other kinds than training",
    "held": "held by a person",
    "unfit": "that the pools of now cannot take",
}


def replay_settings(context: typer.Context, source: _Draft, days: _Days = _DAYS, json: _Json = False) -> None:
    """Replay the last days' jobs with a draft of the settings, beside the settings in force.

    The command reads the jobs that you may see from the API, and runs them twice in a process on this machine: the
    queue's planner and service over a store in memory and a simulated SageMaker. Nothing in AWS changes. Each cell has
    the value with the settings in force and, if it differs, the value with the draft. Settings that the draft omits
    take their defaults, as with `settings set`.
    """
    from trainmaster.client.replay.period import Period
    from trainmaster.client.replay.process import ReplayProcess

    draft = read_object(source, "settings", _HINT)
    draft.pop("$schema", None)
    cli = cli_context(context)
    process = ReplayProcess()
    with cli.api() as api, _progress(cli) as show:
        period = Period(api, cli.now().astimezone(UTC), days)
        document = period.document(draft, lambda done, total: show("Reading jobs", done / total))
        report = process.run(document, lambda part: show("Replaying them", part))
    typer.echo(as_json(report) if json else replay_text(sanitize(report), cli.now()))


def replay_text(report: Mapping[str, Any], now: datetime) -> str:
    """Return the report as tables, with what it lacks and what it assumes."""
    period = f"{timestamp(report['since'], now)} to {timestamp(report['at'], now)} ({zone_name(now)})"
    head = f"{report['changedJobs']} of {report['jobs']} jobs change with the draft; {period}"
    changed = [_job_row(job) for job in report["changed"]]
    parts = [head, table(list(_rows(report)), ("", *_HEADERS))]
    parts += [table(changed, _OF_JOBS)] if changed else []
    return "\n\n".join([*parts, "\n".join([*_notes(report), *report["assumptions"]])])


def _rows(report: Mapping[str, Any]) -> Iterator[list[object]]:
    """Yield a row for all jobs, for each share, and for each priority."""
    before, after = report["inForce"], report["draft"]
    yield ["all", *_cells(before["total"], after["total"])]
    for kind, label in (("shares", "share {}"), ("priorities", "priority {}")):
        for one, other in zip(before[kind], after[kind], strict=True):
            yield [label.format(one["name"]), *_cells(one, other)]


def _cells(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[object]:
    columns: Sequence[tuple[str, Callable[[Any], str]]] = (
        ("ended", str),
        *((name, _time) for name in _TIMES),
        ("preemptions", str),
        ("lostInstanceHours", "{:,.1f}".format),
        ("dollars", "{:,.2f}".format),
    )
    return [before["jobs"], *(_pair(before[name], after[name], words) for name, words in columns)]


def _job_row(job: Mapping[str, Any]) -> list[object]:
    one, other = job["inForce"], job["draft"]
    times = (_pair(one[name], other[name], _time) for name in ("waitSeconds", "completionSeconds"))
    return [job["jobName"], job["share"], job["priority"], *times, _pair(one["preemptions"], other["preemptions"], str)]


def _pair(before: Any, after: Any, words: Callable[[Any], str]) -> str:
    """Return both values, or one if they read the same."""
    one, other = words(before), words(after)
    return one if one == other else f"{one} -> {other}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else compact_duration(seconds)


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences about what the replay leaves out."""
    missing = report["leftOut"]
    parts = [f"{missing[name]} {words}" for name, words in _LEFT_OUT.items() if missing.get(name)]
    if parts:
        yield f"Jobs that are not replayed: {', '.join(parts)}."
    if missing.get("beyondLimit"):
        yield "The period is shorter than asked for, because a replay has a maximum number of jobs."
    real = report["recorded"]["waitP50Seconds"]
    if real is not None:
        yield f"The real median wait was {_time(real)}."


@contextmanager
def _progress(cli: CliContext) -> Iterator[Callable[[str, float], None]]:
    """Yield a function that shows a step and its finished part on standard error, if that is a terminal."""
    if not cli.is_terminal(sys.stderr):
        yield lambda _step, _part: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True, no_color=not cli.has_colors(sys.stderr))
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Reading jobs", total=1.0)
        yield lambda step, part: bar.update(task, description=step, completed=part)
