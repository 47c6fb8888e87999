"""`trainmaster scale`: changes the size bounds of an elastic job."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster.cli.common.bulk import state_line
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.common.usage import UsageError
from trainmaster.cli.output.elastic import size_text
from trainmaster.cli.output.render import as_json
from trainmaster.domain.text import sanitize

Minimum = Annotated[int | None, typer.Option("--min", metavar="N", min=1, help="Minimum number of instances.")]
Maximum = Annotated[int | None, typer.Option("--max", metavar="N", min=1, help="Maximum number of instances.")]


def scale(
    context: typer.Context, name: Name, minimum: Minimum = None, maximum: Maximum = None, json: Json = False
) -> None:
    """Change the size bounds of an elastic job.

    Both bounds are sizes of the job: its step, or its listed values, lead to them. A waiting job starts with its new
    minimum. The next pass resizes a running job that is larger than its new maximum. One that is smaller than its new
    minimum keeps its size until enough instances are idle.
    """
    if minimum is None and maximum is None:
        raise UsageError("Specify --min, --max, or both.")
    cli = cli_context(context)
    with cli.api() as api:
        job = api.change(name, min_instances=minimum, max_instances=maximum)
    shown = sanitize(job)
    typer.echo(as_json(job) if json else f"{state_line(shown, cli.now())} Size {size_text(shown)}.")
