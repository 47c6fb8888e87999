"""`trainmaster priority`: gives a job another priority."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.cli.common.bulk import state_of
from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.render import as_json
from trainmaster.domain.jobs.job import PRIORITY_LIMIT

Value = Annotated[
    int,
    typer.Argument(metavar="VALUE", min=-PRIORITY_LIMIT, max=PRIORITY_LIMIT, help="An integer, negative ones, too."),
]


def priority(context: typer.Context, name: Name, value: Value, json: Json = False) -> None:
    """Give a job another priority.

    Jobs of higher priority run first and preempt those of lower. The job keeps its entry time, by which it stands
    among jobs of equal priority.
    """
    with tools_of(context).api() as api:
        job = api.change(name, priority=value)
    typer.echo(as_json(job) if json else f"{state_of(job)} Priority {job['priority']}.")
