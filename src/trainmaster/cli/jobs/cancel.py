"""`trainmaster cancel`: cancels waiting jobs and stops running ones."""

from __future__ import annotations

import typer

from trainmaster.cli.common.bulk import cancelled_line, change_jobs
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Names


def cancel(context: typer.Context, names: Names, json: Json = False) -> None:
    """Cancel waiting jobs, and stop running jobs for good.

    The queue does not resume a stopped job. SageMaker gives it two minutes to save its work.
    """
    cli = cli_context(context)
    with cli.api() as api:
        change_jobs(api, names, api.cancel, lambda job: cancelled_line(job, cli.now()), json=json)
