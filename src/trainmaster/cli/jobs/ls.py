"""`trainmaster ls`: lists jobs in the article's table."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.render import (
    as_json,
    coloured,
    jobs_table,
    plain,
    screen_table,
    sort_jobs,
    terminal_width,
    wide_table,
)
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.jobs.listing import INFEASIBLE
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.views.types import JobView

_OPEN = tuple(state.value for state in JobState if state not in ENDED)


def _state(word: str) -> str:
    """Return the state if it is a job state or `infeasible`. Raises `BadParameter`."""
    known = [*(state.value for state in JobState), INFEASIBLE]
    if word not in known:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(map(repr, known))}.")
    return word


State = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", parser=_state, help="Only jobs in this state; may be repeated."),
]


def ls(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    state: State = None,
    share: Annotated[str | None, typer.Option(help="Only jobs of this share.", metavar="SHARE")] = None,
    pool: Annotated[str | None, typer.Option(help="Only jobs that can run in this pool.", metavar="POOL")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Also list finished jobs, newest first.")] = False,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="Also show position, pools, start and the full reason.")
    ] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of jobs.")] = 100,
    json: Json = False,
) -> None:
    """List unfinished jobs by priority.

    On a terminal, the table also shows when waiting jobs are likely to start, and a short reason why they wait.

    States: pending, starting, running, preempting, preempted, resizing, held (unfinished); completed, failed, stopped,
    cancelled (finished). A waiting job that fits no pool, not even an empty one, is shown as infeasible;
    --state infeasible lists such jobs.
    """
    states = state or (None if show_all else _OPEN)
    cli = cli_context(context)
    with cli.api() as api:
        found = list(islice(api.all_jobs(states, share, pool), limit + 1))
    jobs = sort_jobs(found[:limit])
    typer.echo(as_json(jobs) if json else _table(cli, sanitize(jobs), wide=wide))
    if len(found) > limit:
        typer.echo(f"Only {limit} jobs are shown; there are more (see --limit).", err=True)


def _table(cli: CliContext, jobs: list[JobView], *, wide: bool) -> str:
    paint = coloured if cli.has_colours(sys.stdout) else plain
    width = terminal_width() if cli.is_terminal(sys.stdout) else None
    if wide:
        return wide_table(jobs, cli.now(), paint, width)
    return jobs_table(jobs, paint) if width is None else screen_table(jobs, cli.now(), paint, width)
