"""`trainmaster wait`: waits until jobs have ended."""

from __future__ import annotations

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Names
from trainmaster.cli.common.waiting import INTERVAL_SECONDS, Interval, Patience, Timeout, report, wait_for
from trainmaster.cli.output.render import as_json


def wait(
    context: typer.Context,
    names: Names,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Wait until jobs have ended, showing how they get on.

    The exit code is 0 if all have completed, 1 if one failed, was stopped or cancelled, and 124 if the time was up
    before. Ctrl-C ends the waiting only: the jobs go on.
    """
    tools = tools_of(context)
    with tools.api() as api:
        jobs, code = wait_for(tools, api, names, Patience(interval, timeout))
    if json:
        typer.echo(as_json(jobs))
    else:
        report(jobs)
    raise typer.Exit(code)
