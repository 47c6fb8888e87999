"""`trainmaster hold` and `release`."""

from __future__ import annotations

import typer

from trainmaster.cli.common.bulk import change_jobs, state_line
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Names


def hold(context: typer.Context, names: Names, json: Json = False) -> None:
    """Hold waiting jobs until they are released.

    A held job keeps its entry time. Jobs behind it may start first.
    """
    cli = cli_context(context)
    with cli.api() as api:
        change_jobs(
            api, names, lambda name: api.change(name, hold=True), lambda job: state_line(job, cli.now()), json=json
        )


def release(context: typer.Context, names: Names, json: Json = False) -> None:
    """Release held jobs.

    They wait again, at the position of their entry time.
    """
    cli = cli_context(context)
    with cli.api() as api:
        change_jobs(
            api, names, lambda name: api.change(name, hold=False), lambda job: state_line(job, cli.now()), json=json
        )
