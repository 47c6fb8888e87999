"""`trainmaster wait`: waits until jobs have ended."""

from __future__ import annotations

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Names
from trainmaster.cli.common.waiting import (
    INTERVAL_SECONDS,
    Interval,
    Timeout,
    WaitOptions,
    print_outcomes,
    wait_for_jobs,
)
from trainmaster.cli.output.render import as_json


def wait(
    context: typer.Context,
    names: Names,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Wait until jobs have ended, and show their progress.

    The exit code is 0 if all jobs completed, 1 if any job failed, was stopped or was cancelled, and 124 if the timeout
    expired first. Ctrl-C stops only the waiting; the jobs continue.
    """
    cli = cli_context(context)
    with cli.api() as api:
        jobs, code = wait_for_jobs(cli, api, names, WaitOptions(interval, timeout))
        if json:
            typer.echo(as_json(jobs))
        else:
            print_outcomes(jobs, cli.now(), api.region)
    raise typer.Exit(code)
