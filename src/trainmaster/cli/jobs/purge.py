"""`trainmaster purge`: deletes ended jobs from the queue."""

from __future__ import annotations

import typer

from trainmaster.cli.common.bulk import apply_to_each
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Names


def purge(context: typer.Context, names: Names) -> None:
    """Delete ended jobs with their requests and their histories.

    The names stay reserved: SageMaker does not accept the name of an earlier training job. Training jobs, logs and
    artifacts at AWS stay as they are. Usage of shares, statistics of run times and audit entries stay too.
    """
    with cli_context(context).api() as api:
        _, code = apply_to_each(api, names, api.purge, lambda name, _: f"{name}: Purged.")
    raise typer.Exit(code)
