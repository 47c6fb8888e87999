"""`trainmaster uninstall`: deletes the stack of the queue; the table stays."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.client.api.errors import ApiError, Conflict, Refused

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext

_ACTIVE = ("starting", "running", "resizing", "preempting")
_SHOWN = 5


def uninstall(
    context: typer.Context,
    *,
    confirm: Annotated[
        str | None, typer.Option("--confirm", metavar="STACK", help="Name of the stack, instead of the question.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also while jobs run, or where the queue does not answer.")
    ] = False,
) -> None:
    """Delete the stack of the queue, and say what stays.

    The table with all jobs and settings stays, and a later deployment with the same queue name adopts it. The command
    asks for the name of the stack, and refuses while jobs run: SageMaker goes on with them, and no manager follows.
    """
    from trainmaster.cli.deployment.steps import account_of, follow, open_stack
    from trainmaster.deployment.bundle import Sources

    cli = cli_context(context)
    account = account_of(cli)
    stack = open_stack(cli, account)
    name, found = stack.name, stack.existing()
    if not force and found["StackStatus"] not in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"):
        _check_idle(cli)
    kept = stack.retained(Sources.here().document())
    _announce(name, kept)
    _confirm(cli, name, confirm)
    follow(cli, stack.delete(), quiet=False)
    typer.echo(f"Deleted the stack {name}.")


def _check_idle(cli: CliContext) -> None:
    """Raise Conflict while jobs run, or if the queue does not tell."""
    try:
        with cli.api() as api:
            found = [job["jobName"] for job in islice(api.all_jobs(state=_ACTIVE), _SHOWN + 1)]
    except ApiError as error:
        message = f"The queue does not tell whether jobs run: {error.message}"
        raise Conflict(message, hint="Correct that, or delete the stack all the same with --force.") from error
    if found:
        more = " and others" if len(found) > _SHOWN else ""
        message = f"These jobs run: {', '.join(found[:_SHOWN])}{more}."
        raise Conflict(
            message, hint="Wait for them or cancel them (`trainmaster cancel`); --force leaves them to SageMaker."
        )


def _announce(name: str, kept: list[tuple[str, str]]) -> None:
    typer.echo(f"The stack {name} will be deleted: the API, the manager, its queues, alarms and logs.", err=True)
    typer.echo("These resources stay:" if kept else "No resource of it stays.", err=True)
    for kind, resource in kept:
        typer.echo(f"  {kind}  {resource}", err=True)


def _confirm(cli: CliContext, name: str, confirmed: str | None) -> None:
    """Demand the name of the stack. Raises Refused."""
    if confirmed is None:
        if not cli.has_keyboard():
            raise Refused("Nothing was deleted: there is no terminal to confirm it on.", hint=f"Add --confirm {name}.")
        confirmed = typer.prompt("Enter the name of the stack to delete it", err=True)
    if confirmed != name:
        typer.echo(f"Nothing was deleted: {confirmed!r} is not {name!r}.", err=True)
        raise typer.Exit(ExitCode.INVALID)
