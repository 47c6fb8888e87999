"""`trainmaster cancel`: cancels waiting jobs and stops running ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trainmaster.cli.common.bulk import change_jobs, state_line
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Names
from trainmaster.client.views.states import ENDED

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.client.views.types import JobView


def cancel(context: typer.Context, names: Names, json: Json = False) -> None:
    """Cancel waiting jobs, and stop running jobs for good.

    The queue does not resume a stopped job. SageMaker gives it two minutes to save its work.
    """
    cli = cli_context(context)
    with cli.api() as api:
        change_jobs(api, names, api.cancel, lambda job: _result_line(job, cli.now()), json=json)


def _result_line(job: JobView, now: datetime) -> str:
    if job["jobState"] in ENDED:
        return state_line(job, now)
    return f"{job['jobName']}: Stopping; it will not be resumed."
