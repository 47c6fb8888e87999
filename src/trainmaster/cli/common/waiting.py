"""Waits until jobs have ended by polling the queue; the exit code is the outcome. Interrupting changes no job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.output.logs import training_job_facts
from trainmaster.cli.output.progress import display_for, job_line
from trainmaster.client.api.errors import NotFound
from trainmaster.client.views.states import ENDED
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from datetime import datetime

    from trainmaster.cli.common.context import CliContext
    from trainmaster.cli.output.progress import Display
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView

INTERVAL_SECONDS = 5.0
"""Default polling interval."""

ENTERS_WITHIN_SECONDS = 180.0
"""Time for a received request to become a job before the wait gives up."""
_NOT_ENTERED = "{name} has not become a job yet"

Interval = Annotated[float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Polling interval.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Stop waiting after this time.")
]


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """Polling interval and timeout in seconds; None waits without limit."""

    interval: float = INTERVAL_SECONDS
    timeout: float | None = None


def wait_for_jobs(
    cli: CliContext, api: ApiClient, names: Sequence[str], wait_options: WaitOptions
) -> tuple[list[JobDetailView], ExitCode]:
    """Return the jobs when all have ended or the timeout has expired, and the exit code. Raises ApiError."""
    names = list(dict.fromkeys(names))
    try:
        with display_for(cli) as display:
            jobs = _poll(cli, _lookups(cli, api, names), display, wait_options)
    except KeyboardInterrupt:
        typer.echo(f"Stopped waiting; the jobs continue (`trainmaster cancel {names[0]}` cancels a job).", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return jobs, _exit_code(jobs)


def absence(api: ApiClient, name: str) -> str:
    """Return the API's message about a job that it does not have; empty if the job exists. Raises ApiError."""
    try:
        api.job(name)
    except NotFound as error:
        return error.message
    return ""


def entered(  # noqa: PLR0913 - two of them are for the error
    cli: CliContext, api: ApiClient, name: str, wait_options: WaitOptions, *, before: str, hint: str
) -> None:
    """Wait until a received request has become a job. Raises ApiError if it is refused or takes too long.

    `before` is the API's earlier message about the name (`absence`): the message changes once the request is refused.
    `hint` is the error's, if it takes too long.
    """
    started = cli.clock()
    limit = ENTERS_WITHIN_SECONDS if wait_options.timeout is None else min(wait_options.timeout, ENTERS_WITHIN_SECONDS)
    while True:
        try:
            api.job(name)
        except NotFound as error:
            if before not in ("", error.message):
                raise
            if cli.clock() - started >= limit:
                raise NotFound(_NOT_ENTERED.format(name=name), type="NotEntered", hint=hint) from None
        else:
            return
        cli.sleep(wait_options.interval)


def print_outcomes(jobs: Sequence[JobDetailView], now: datetime, region: str) -> None:
    """Print the outcome of each job in a line, and of a job that did not complete also where its logs are."""
    for job in sanitize(jobs):
        typer.echo(job_line(job, now))
        for name, value in training_job_facts(job, region) if job["jobState"] in ENDED - {"completed"} else ():
            typer.echo(f"  {name}: {value}")


def _lookups(cli: CliContext, api: ApiClient, names: Sequence[str]) -> list[Callable[[], JobDetailView]]:
    """Return a function per job that looks it up and tolerates a short outage of the API."""
    from trainmaster.client.sdk.job_cache import JobCache

    def lookup(name: str) -> Callable[[], JobDetailView]:
        cache = JobCache(api, clock=cli.clock)
        # For an unknown job, the API's error says more than None.
        return lambda: cache.look_up(name) or api.job(name)

    return [lookup(name) for name in names]


def _poll(
    cli: CliContext, lookups: Sequence[Callable[[], JobDetailView]], display: Display, wait_options: WaitOptions
) -> list[JobDetailView]:
    """Poll the jobs that have not ended, until none is left or the timeout has expired."""
    started = cli.clock()
    jobs = [look_up() for look_up in lookups]
    while True:
        display.show(sanitize(jobs))
        remaining = None if wait_options.timeout is None else started + wait_options.timeout - cli.clock()
        if all(job["jobState"] in ENDED for job in jobs) or (remaining is not None and remaining <= 0):
            return jobs
        cli.sleep(wait_options.interval if remaining is None else min(wait_options.interval, remaining))
        jobs = [job if job["jobState"] in ENDED else look_up() for job, look_up in zip(jobs, lookups, strict=True)]


def _exit_code(jobs: Sequence[JobDetailView]) -> ExitCode:
    if any(job["jobState"] in ENDED - {"completed"} for job in jobs):
        return ExitCode.JOB_FAILED
    return ExitCode.OK if all(job["jobState"] == "completed" for job in jobs) else ExitCode.TIMED_OUT
