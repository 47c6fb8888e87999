"""`trainmaster priority`: changes the priority of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.cli.common.bulk import state_line
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.render import as_json
from trainmaster.domain.jobs.priorities import MAX_PRIORITY
from trainmaster.domain.text import sanitize

Value = Annotated[
    int,
    typer.Argument(metavar="VALUE", min=-MAX_PRIORITY, max=MAX_PRIORITY, help="An integer; may be negative."),
]


def priority(context: typer.Context, name: Name, value: Value, json: Json = False) -> None:
    """Change the priority of a job.

    Jobs of higher priority start first and may preempt jobs of lower priority. The job keeps its entry time, which
    orders jobs of equal priority.
    """
    cli = cli_context(context)
    with cli.api() as api:
        job = api.change(name, priority=value)
    typer.echo(as_json(job) if json else f"{state_line(sanitize(job), cli.now())} Priority {job['priority']}.")
