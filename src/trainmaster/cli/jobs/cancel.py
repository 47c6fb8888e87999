"""`trainmaster cancel`: takes jobs out of the queue, or has running ones stopped for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trainmaster.cli.common.bulk import change_each, state_of
from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Names
from trainmaster.client.views.jobs import ENDED

if TYPE_CHECKING:
    from trainmaster.client.views.jobs import JobView


def cancel(context: typer.Context, names: Names, json: Json = False) -> None:
    """Cancel waiting jobs, stop running ones for good.

    A stopped job is not resumed. SageMaker gives it two minutes to save its work.
    """
    with tools_of(context).api() as api:
        change_each(names, api.cancel, _told, json=json)


def _told(job: JobView) -> str:
    if job["jobState"] in ENDED:
        return state_of(job)
    return f"{job['jobName']}: Is being stopped; it will not be resumed."
