"""Waits until jobs have ended, asking the queue again and again, and tells the outcome by the exit code.

It must not change a job: when the waiting is interrupted, the jobs go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.exit_codes import Code
from trainmaster.cli.output.progress import display_for, told
from trainmaster.client.api.errors import NotFound
from trainmaster.client.views.jobs import ENDED

if TYPE_CHECKING:
    from trainmaster.cli.common.context import Tools
    from trainmaster.cli.output.progress import Display
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.jobs import JobDetail

INTERVAL_SECONDS = 5.0
"""How often the queue is asked, where nothing else is said."""

ENTERS_WITHIN_SECONDS = 180.0
"""How long an image may take to be looked at, before something is taken to be wrong."""
_NOT_ENTERED = "{name} has not become a job yet"
_WHERE = "Its image takes long to read, or it was refused: then it is in the image dead-letter queue, with the reason."

Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="How often the queue is asked.")
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Give up waiting after this time.")
]


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to ask and how long to wait, in seconds; None is for ever."""

    interval: float = INTERVAL_SECONDS
    timeout: float | None = None


def wait_for(tools: Tools, api: ApiClient, names: Sequence[str], patience: Patience) -> tuple[list[JobDetail], Code]:
    """The jobs when all have ended or the time is up, and the exit code that tells it. Raises ApiError."""
    names = list(dict.fromkeys(names))
    try:
        with display_for(tools) as display:
            jobs = _follow(tools, _lookups(tools, api, names), display, patience)
    except KeyboardInterrupt:
        typer.echo(f"No longer waiting; nothing was cancelled (`trainmaster cancel {names[0]}` does).", err=True)
        raise
    return jobs, _outcome(jobs)


def absence(api: ApiClient, name: str) -> str:
    """What the queue says of a job that it does not know; empty of one that it does. Raises ApiError."""
    try:
        api.job(name)
    except NotFound as error:
        return error.message
    return ""


def entered(tools: Tools, api: ApiClient, name: str, patience: Patience, before: str) -> None:
    """Wait until a request that was received has become a job. Raises ApiError where it is refused, or takes long.

    `before` is what the queue said of it before (`absence`): it says something else once the request is refused.
    """
    begun = tools.clock()
    longest = ENTERS_WITHIN_SECONDS if patience.timeout is None else min(patience.timeout, ENTERS_WITHIN_SECONDS)
    while True:
        try:
            api.job(name)
        except NotFound as error:
            if before not in ("", error.message):
                raise
            if tools.clock() - begun >= longest:
                raise NotFound(_NOT_ENTERED.format(name=name), type="NotEntered", hint=_WHERE) from None
        else:
            return
        tools.sleep(patience.interval)


def report(jobs: Sequence[JobDetail]) -> None:
    """The outcome of each job, a line each."""
    for job in jobs:
        typer.echo(told(job))


def _lookups(tools: Tools, api: ApiClient, names: Sequence[str]) -> list[Callable[[], JobDetail]]:
    """A way to ask for each job, which bears with an outage of the API for a while."""
    from trainmaster.client.sdk.job_cache import JobCache

    def lookup(name: str) -> Callable[[], JobDetail]:
        known = JobCache(api, clock=tools.clock)
        # Of one that it does not know the API says more than that.
        return lambda: known.look_up(name) or api.job(name)

    return [lookup(name) for name in names]


def _follow(
    tools: Tools, lookups: Sequence[Callable[[], JobDetail]], display: Display, patience: Patience
) -> list[JobDetail]:
    """Ask for those that have not ended yet, until none is left or the time is up."""
    begun = tools.clock()
    jobs = [look_up() for look_up in lookups]
    while True:
        display.show(jobs)
        left = None if patience.timeout is None else begun + patience.timeout - tools.clock()
        if all(job["jobState"] in ENDED for job in jobs) or (left is not None and left <= 0):
            return jobs
        tools.sleep(patience.interval if left is None else min(patience.interval, left))
        jobs = [job if job["jobState"] in ENDED else look_up() for job, look_up in zip(jobs, lookups, strict=True)]


def _outcome(jobs: Sequence[JobDetail]) -> Code:
    if any(job["jobState"] in ENDED - {"completed"} for job in jobs):
        return Code.JOB_FAILED
    return Code.OK if all(job["jobState"] == "completed" for job in jobs) else Code.TIMED_OUT
