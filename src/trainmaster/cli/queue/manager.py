"""`trainmaster pause`, `resume` and `restore`: the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.render import as_json, table
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import ManagerStateView, RestoreDifferenceView, RestoreReportView

_HEADERS = ("Job", "Training job", "Difference", "In the table", "SageMaker", "Adoption")
_POLL_SECONDS = 5.0
_MAX_POLLS = 120


def pause(
    context: typer.Context,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For people who meet the pause.")] = "maintenance",
    json: Json = False,
) -> None:
    """Pause the manager: no pass begins, and events are ignored.

    Running training jobs go on, and jobs can be submitted.
    """
    with cli_context(context).api() as api:
        state = api.pause(reason)
    typer.echo(as_json(state) if json else "The manager is paused.")


def resume(context: typer.Context, json: Json = False) -> None:
    """Resume the manager."""
    with cli_context(context).api() as api:
        state = api.resume()
    typer.echo(as_json(state) if json else "The manager goes on.")


def restore(
    context: typer.Context,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the differences.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Adopt the differences without asking.")] = False,
    json: Json = False,
) -> None:
    """Compare a restored table with SageMaker, adopt the differences, and resume the manager.

    The manager must be paused: see docs/how-to/restore.md.
    """
    cli = cli_context(context)
    with cli.api() as api:
        found = _compared(cli, api, adopt=False)
        if dry_run or not found["differences"]:
            _print(found, json=json)
            if not dry_run:
                _resumed(api)
            return
        if not json:
            _print(found, json=False)
        if not yes and not typer.confirm("Adopt these differences, and resume the manager?"):
            raise typer.Exit(1)
        done = _compared(cli, api, adopt=True)
        if json:
            _print(done, json=True)
        if done["failed"]:
            typer.echo("Not adopted: " + "; ".join(sanitize(done["failed"])), err=True)
            typer.echo("The manager stays paused. Repeat the command, or resume it: trainmaster resume", err=True)
            raise typer.Exit(1)
        _resumed(api)


def _compared(cli: CliContext, api: ApiClient, *, adopt: bool) -> RestoreReportView:
    """Return the comparison once the manager has made it."""
    state: ManagerStateView = api.restore(adopt=adopt)
    for _ in range(_MAX_POLLS):
        report = state["restore"]
        if report is not None and report["comparedAt"] is not None:
            return report
        cli.sleep(_POLL_SECONDS)
        state = api.manager()
    typer.echo("The manager has not compared them within ten minutes: see its log.", err=True)
    raise typer.Exit(1)


def _resumed(api: ApiClient) -> None:
    api.resume()
    typer.echo("The manager goes on.", err=True)


def _print(report: RestoreReportView, *, json: bool) -> None:
    if json:
        typer.echo(as_json(report))
    elif report["differences"]:
        typer.echo(table([_row(each) for each in sanitize(report["differences"])], _HEADERS))
        if report["leftOut"]:
            typer.echo(f"{report['leftOut']} more are not listed.")
    else:
        typer.echo("The table and SageMaker agree.")


def _row(each: RestoreDifferenceView) -> tuple[str, ...]:
    stored, status = each["stored"] or "-", each["status"] or "-"
    return (each["job"], each["trainingJob"], each["kind"], stored, status, each["action"])
