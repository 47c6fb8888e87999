"""`trainmaster why`: one paragraph on why a job is where it is."""

from __future__ import annotations

import sys
import textwrap

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.explanation import explanation
from trainmaster.cli.output.render import as_json, terminal_width
from trainmaster.domain.text import one_line

_MEMBERS = (
    *("jobName", "jobState", "priority", "position", "positionAtLeast", "reason", "deadline", "why", "elastic"),
    *("kind", "image"),
    *("estimatedStart", "estimatedStartLow", "estimatedStartHigh"),
)
_WIDEST = 100


def why(context: typer.Context, name: Name, json: Json = False) -> None:
    """Say why a job waits, until when, and what would help; or what else has become of it.

    The range of the start is from the same planner, run forward over how long jobs like those before it have run.
    What would help has been tried with it on the queue as it is.
    """
    tools = tools_of(context)
    with tools.api() as api:
        job = api.job(name, why=True)
    text = one_line(explanation(job, tools.now()))
    if json:
        members = {key: value for key, value in job.items() if key in _MEMBERS}
        typer.echo(as_json(members | {"explanation": text}))
    elif tools.is_terminal(sys.stdout):
        typer.echo(textwrap.fill(text, min(terminal_width(), _WIDEST), break_on_hyphens=False, break_long_words=False))
    else:
        typer.echo(text)
