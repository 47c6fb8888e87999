"""`trainmaster sweep`: submits sweeps of hyperparameters, and shows and cancels their trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainmaster.cli.common.bulk import cancelled_line
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.common.options import Json, Options, Priority
from trainmaster.cli.common.request import option_tags
from trainmaster.cli.common.subcommands import Subcommands
from trainmaster.cli.output.forms import Form, Output
from trainmaster.cli.output.render import as_json, as_yaml, print_warnings
from trainmaster.cli.sweeps.options import (
    Changes,
    Maximize,
    Minimize,
    SweepFile,
    SweepName,
    objective_of_options,
    read_sweep,
    sweep_options,
)
from trainmaster.cli.sweeps.output import (
    planned_table,
    progress_display,
    result_members,
    results_csv,
    results_table,
)
from trainmaster.client.sweeps.metrics import FinalMetrics
from trainmaster.client.sweeps.run import INTERVAL_SECONDS, SweepRun
from trainmaster.client.sweeps.trials import cancel_trials, objective_of, read_trials, results_of
from trainmaster.domain.text import one_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.sweeps.sweep import Objective, Sweep
    from trainmaster.client.sweeps.trials import TrialResult
    from trainmaster.client.views.types import JobView, SubmissionView

app = typer.Typer(cls=Subcommands, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


@app.callback()
def sweep() -> None:
    """Submit sweeps of hyperparameters, and show and cancel their trials.

    A sweep is a group of jobs with one request and different hyperparameters. The queue starts them by priority, at
    most --max-concurrent at a time.
    """


@app.command("submit")
@sweep_options
def submit(  # noqa: PLR0913 -- one parameter per option
    context: typer.Context,
    file: SweepFile,
    *,
    changes: Changes,
    priority: Priority = None,
    option: Options = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the trials of a grid or a random search, and submit nothing.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all trials have ended, then show them.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Polling interval.")
    ] = INTERVAL_SECONDS,
    json: Json = False,
) -> None:
    """Submit the trials of a sweep.

    Trials that the queue has already are not submitted again: the same command continues a sweep after Ctrl-C. With
    --strategy optuna or --early-stop, the command waits, since it acts on what trials report. With --wait, the exit
    code is 0 if each trial completed or was stopped early. Ctrl-C stops only the waiting; the trials continue.
    """
    planned = read_sweep(file, priority, option_tags(option or ()), changes)
    cli = cli_context(context)
    if dry_run:
        _print_planned(planned, json=json)
        return
    with cli.api() as api:
        run = SweepRun(api, planned, client=lambda service: cli.aws_client(api, service), sleep=cli.sleep, now=cli.now)
        answers = _submit(run, json=json)
        if not (wait or planned.early_stopping or planned.strategy == "optuna"):
            typer.echo(as_json(answers)) if json else _print_next(planned)
            return
        results = _wait(cli, run, interval)
        _print(cli, planned.name, results, planned.objective, Form.JSON if json else Form.TABLE)
    raise typer.Exit(_exit_code(results, run))


@app.command("show")
def show(  # noqa: PLR0913 -- one parameter per option
    context: typer.Context,
    name: SweepName,
    *,
    minimize: Minimize = None,
    maximize: Maximize = None,
    output: Output = Form.TABLE,
    json: Json = False,
) -> None:
    """Show the trials of a sweep: completed ones first, the best at the top.

    The metric is the one that the sweep was submitted with, or that of --minimize or --maximize, which must be one of
    the request's metric definitions. The columns have the hyperparameters that differ.
    """
    cli = cli_context(context)
    with cli.api() as api:
        jobs = read_trials(api, name)
        objective = objective_of_options(minimize, maximize) or objective_of(jobs)
        results = results_of(jobs, objective, FinalMetrics(lambda: cli.aws_client(api, "sagemaker")))
    _print(cli, name, results, objective, Form.JSON if json else output)


@app.command("cancel")
def cancel(context: typer.Context, name: SweepName, json: Json = False) -> None:
    """Cancel the waiting trials of a sweep, and stop the running ones for good."""
    cli = cli_context(context)
    cancelled: list[JobView] = []

    def tell(job: JobView) -> None:
        cancelled.append(job)
        if not json:
            typer.echo(cancelled_line(sanitize(job), cli.now()))

    with cli.api() as api:
        if not cancel_trials(api, name, f"the sweep {name} was cancelled", tell):
            read_trials(api, name)  # raises NotFound for an unknown sweep
    if json:
        typer.echo(as_json(cancelled))
    elif not cancelled:
        typer.echo("All trials had ended.", err=True)


def _submit(run: SweepRun, *, json: bool) -> list[SubmissionView]:
    """Submit the trials and print how many were new. Ctrl-C ends it with the number so far."""
    counts = Counter[bool]()
    warnings: dict[str, None] = {}

    def tell(answer: SubmissionView) -> None:
        counts[answer["submittedBefore"]] += 1
        warnings.update(dict.fromkeys(answer["warnings"]))

    try:
        answers = run.submit(tell)
    except KeyboardInterrupt:
        line = f"Interrupted: {counts[False]} trials were submitted and stay in the queue; the same command continues."
        typer.echo(line, err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    print_warnings(warnings)
    if not json:
        before = f"; {counts[True]} were in the queue already" if counts[True] else ""
        typer.echo(f"Submitted {counts[False]} trials of {run.sweep.name}{before}.")
    return answers


def _wait(cli: CliContext, run: SweepRun, interval: float) -> list[TrialResult]:
    try:
        with progress_display(cli, run.sweep.name) as show_progress:
            return run.wait(interval, show_progress)
    except KeyboardInterrupt:
        line = (
            "Stopped waiting; the trials continue. The same command continues the sweep, and "
            f"`trainmaster sweep cancel {run.sweep.name}` cancels it."
        )
        typer.echo(line, err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _print(cli: CliContext, name: str, results: Sequence[TrialResult], objective: Objective | None, form: Form) -> None:
    members = {
        "sweep": name,
        "objective": None if objective is None else {"metric": objective.metric, "goal": objective.goal},
        "trials": [result_members(result) for result in results],
    }
    if form is Form.JSON:
        typer.echo(as_json(members))
    elif form is Form.YAML:
        typer.echo(as_yaml(members))
    elif form is Form.CSV:
        typer.echo(results_csv(results, objective, cli.now()))
    else:
        typer.echo(results_table(cli, results, objective))


def _print_planned(planned: Sweep, *, json: bool) -> None:
    if planned.strategy == "optuna":
        raise typer.BadParameter("a search that learns has no trials beforehand", param_hint="'--dry-run'")
    trials = planned.planned()
    requests: list[Any] = [planned.request_of(trial) for trial in trials]
    typer.echo(as_json(requests) if json else planned_table(trials))


def _print_next(planned: Sweep) -> None:
    limit = "" if planned.max_concurrent is None else f"At most {planned.max_concurrent} run at once. "
    typer.echo(one_line(f"{limit}`trainmaster sweep show {planned.name}` shows them."))


def _exit_code(results: Sequence[TrialResult], run: SweepRun) -> ExitCode:
    good = all(result.state == "completed" or result.name in run.stopped for result in results)
    return ExitCode.OK if good else ExitCode.JOB_FAILED
