"""`trainmaster ls`: lists jobs in the article's table."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.render import (
    as_json,
    coloured,
    in_order,
    jobs_table,
    plain,
    screen_table,
    terminal_width,
    wide_table,
)
from trainmaster.domain.jobs.job import ENDED, JobState
from trainmaster.domain.jobs.listing import INFEASIBLE

if TYPE_CHECKING:
    from trainmaster.cli.common.context import Tools
    from trainmaster.client.views.jobs import JobView

_OPEN = tuple(state.value for state in JobState if state not in ENDED)


def _state(word: str) -> str:
    """A state, or what one that waits is shown as. Raises `BadParameter`."""
    known = [*(state.value for state in JobState), INFEASIBLE]
    if word not in known:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(map(repr, known))}.")
    return word


State = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", parser=_state, help="Only jobs in this state; may be repeated."),
]


def ls(  # noqa: PLR0913 - an option each
    context: typer.Context,
    *,
    state: State = None,
    share: Annotated[str | None, typer.Option(help="Only jobs of this share.", metavar="SHARE")] = None,
    pool: Annotated[str | None, typer.Option(help="Only jobs that can run in this pool.", metavar="POOL")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Finished jobs, too, the newest first.")] = False,
    wide: Annotated[bool, typer.Option("--wide", "-w", help="Position, pools, start and whole reason, too.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many jobs.")] = 100,
    json: Json = False,
) -> None:
    """List the jobs that have not finished, by priority.

    On a terminal it says also when waiting jobs will probably start, and why they wait, in a few words.

    States are: pending, starting, running, preempting, preempted, resizing, held (unfinished); completed, failed,
    stopped, cancelled (finished). A waiting job that no pool could hold, even when empty, is shown as infeasible,
    and listed by --state infeasible.
    """
    states = state or (None if show_all else _OPEN)
    tools = tools_of(context)
    with tools.api() as api:
        found = list(islice(api.all_jobs(states, share, pool), limit + 1))
    jobs = in_order(found[:limit])
    typer.echo(as_json(jobs) if json else _table(tools, jobs, wide=wide))
    if len(found) > limit:
        typer.echo(f"There are more than these {limit}: see --limit.", err=True)


def _table(tools: Tools, jobs: list[JobView], *, wide: bool) -> str:
    paint = coloured if tools.colours(sys.stdout) else plain
    width = terminal_width() if tools.is_terminal(sys.stdout) else None
    if wide:
        return wide_table(jobs, tools.now(), paint, width)
    return jobs_table(jobs, paint) if width is None else screen_table(jobs, tools.now(), paint, width)
