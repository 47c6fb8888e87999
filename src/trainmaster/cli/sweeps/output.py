"""Shows sweeps: the table of trials, the best at the top, and the progress of a sweep that the command follows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from trainmaster.cli.output.forms import csv_text
from trainmaster.cli.output.listing import run_seconds
from trainmaster.cli.output.render import colored, displayed_state, plain, table
from trainmaster.cli.output.times import format_duration
from trainmaster.client.sweeps.trials import varied
from trainmaster.client.views.states import ENDED
from trainmaster.client.views.wording import attempt_count
from trainmaster.domain.text import one_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.sweeps.run import SweepProgress
    from trainmaster.client.sweeps.sweep import Objective, Trial
    from trainmaster.client.sweeps.trials import TrialResult


def results_table(cli: CliContext, results: Sequence[TrialResult], objective: Objective | None) -> str:
    """Return the trials as a table."""
    paint = colored if cli.has_colors(sys.stdout) else plain
    names = varied(results)
    now = cli.now()
    rows = [
        [
            one_line(result.name),
            paint(displayed_state(sanitize(result.job))),
            *([] if objective is None else [number_text(result.metric)]),
            *(one_line(result.values.get(name, "")) for name in names),
            str(attempt_count(result.job) or ""),
            format_duration(run_seconds(result.job, now)) if result.job["attempts"] else "",
        ]
        for result in results
    ]
    metric = [] if objective is None else [one_line(objective.metric)]
    return table(rows, ["Trial", "State", *metric, *map(one_line, names), "Attempts", "Ran"])


def results_csv(results: Sequence[TrialResult], objective: Objective | None, now: datetime) -> str:
    """Return the trials as comma-separated values; run times are in seconds."""
    names = varied(results)
    metric = "metric" if objective is None else objective.metric
    rows = [
        [
            result.name,
            result.state,
            "" if result.metric is None else result.metric,
            *(result.values.get(name, "") for name in names),
            attempt_count(result.job),
            round(run_seconds(result.job, now)),
        ]
        for result in results
    ]
    headers = ["trial", "state", one_line(metric), *map(one_line, names), "attempts", "ran_s"]
    return csv_text(headers, [list(map(_printable, row)) for row in rows])


def result_members(result: TrialResult) -> dict[str, Any]:
    """Return a trial for `--json`."""
    return {
        "jobName": result.name,
        "jobState": result.state,
        "metric": result.metric,
        "hyperParameters": dict(result.values),
        "attempts": result.job["attempts"],
        "failureReason": result.job["failureReason"],
    }


def planned_table(trials: Sequence[Trial]) -> str:
    """Return the trials that a sweep would submit."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.values))
    rows = [[trial.name, *(one_line(trial.values[name]) for name in names)] for trial in trials]
    return table(rows, ["Trial", *map(one_line, names)])


def progress_line(name: str, progress: SweepProgress) -> str:
    """Return the progress of a sweep in one line."""
    states = progress.states
    ended = {state: count for state, count in states.items() if state in ENDED and count}
    waiting = states["pending"] + states["preempted"] + states["held"]
    kinds = ", ".join(f"{count} {state}" for state, count in sorted(ended.items()))
    done = f"{sum(ended.values())} of {progress.total} trials have ended" + (f" ({kinds})" if kinds else "")
    working = states.total() - waiting - sum(ended.values())
    best = "" if progress.best is None else f"; best so far {number_text(progress.best.metric)} of {progress.best.name}"
    return one_line(f"{name}: {done}, {working} at work, {waiting} waiting{best}.")


def number_text(value: float | None) -> str:
    """Return a metric's value with six significant digits; empty for None."""
    return "" if value is None else f"{value:.6g}"


@contextmanager
def progress_display(cli: CliContext, name: str) -> Iterator[Callable[[SweepProgress], None]]:
    """Return a function that shows progress on standard error: a bar on a terminal, else a line for each change."""
    if not cli.is_terminal(sys.stderr):
        shown: list[str] = []
        yield lambda progress: _print_changed(shown, progress_line(name, progress))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, no_color=not cli.has_colors(sys.stderr))
    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task(name, total=None)

        def show(progress: SweepProgress) -> None:
            ended = sum(count for state, count in progress.states.items() if state in ENDED)
            bar.update(task, completed=ended, total=progress.total, description=progress_line(name, progress))
            bar.refresh()

        yield show


def _print_changed(shown: list[str], line: str) -> None:
    if shown[-1:] != [line]:
        shown[:] = [line]
        typer.echo(line, err=True)


def _printable(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value
