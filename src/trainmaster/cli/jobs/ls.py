"""`trainmaster ls`: lists jobs in a table, or for programs."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.moments import WHEN, moment_option
from trainmaster.cli.common.names import check_name, check_pool
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.listing import jobs_csv, jobs_table, sort_jobs
from trainmaster.cli.output.render import as_json, as_yaml, colored, plain, terminal_width
from trainmaster.client.views.states import UNFINISHED
from trainmaster.client.views.types import JobState
from trainmaster.domain.compat import StrEnum
from trainmaster.domain.jobs.infeasible import INFEASIBLE
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobView

_DEFAULT_SHARE = "default"


class Form(StrEnum):
    """Forms of the output."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


def _state(word: str) -> str:
    """Return states with commas between them if each is a job state or `infeasible`. Raises `BadParameter`."""
    known = [*get_args(JobState), INFEASIBLE]
    for state in word.split(","):
        if state not in known:
            raise typer.BadParameter(f"{state!r} is not one of {', '.join(map(repr, known))}.")
    return word


State = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        parser=_state,
        help="Only jobs in this state, or in these: running,starting; may be repeated.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help=f"Only jobs that entered the queue from this time on: {WHEN}."),
]
Output = Annotated[
    Form,
    typer.Option(
        "--output",
        "-o",
        metavar="FORM",
        help="table; wide, with position, share and pools, and nothing shortened; json; yaml; or csv.",
    ),
]


def ls(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    *,
    state: State = None,
    share: Annotated[str | None, typer.Option(help="Only jobs of this share.", metavar="SHARE")] = None,
    pool: Annotated[str | None, typer.Option(help="Only jobs that can run in this pool.", metavar="POOL")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only jobs that your role or user submitted.")] = False,
    since: Since = None,
    prefix: Annotated[
        str | None, typer.Option(help="Only jobs whose names begin so, as job- or job-*.", metavar="TEXT")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind, such as training.", metavar="KIND")] = None,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Also list finished jobs, newest first.")] = False,
    output: Output = Form.TABLE,
    wide: Annotated[bool, typer.Option("--wide", "-w", help="The same as -o wide.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of jobs.")] = 100,
    json: Json = False,
) -> None:
    """List unfinished jobs by priority.

    Age is the time since the job entered the queue, Ran the time that its attempts were at work. Start is that of the
    newest attempt, or when a waiting job is likely to start. Reason says why a job waits or failed. On a terminal,
    names, users, times and reasons are shortened to its width, and a narrow one leaves out Ran, Age, Size and User.

    States: pending, starting, running, preempting, preempted, resizing, held (unfinished); completed, failed, stopped,
    cancelled (finished). A waiting job that fits no pool, not even an empty one, is shown as infeasible;
    --state infeasible lists such jobs.
    """
    states = ",".join(state).split(",") if state else (None if show_all else UNFINISHED)
    form = Form.JSON if json else Form.WIDE if wide else output
    cli = cli_context(context)
    entered, name = moment_option(since, cli.now()), None if prefix is None else prefix.removesuffix("*")
    with cli.api() as api:
        asked = api.all_jobs(states, share, pool, mine=mine, since=entered, prefix=name, kind=kind)
        found = list(islice(asked, limit + 1))
        if not found:
            _check_share(api, share)
            check_pool(api, pool)
    typer.echo(_text(cli, sort_jobs(found[:limit]), form))
    if not found and states is UNFINISHED:
        typer.echo("No unfinished jobs; --all also lists finished ones.", err=True)
    if len(found) > limit:
        typer.echo("There are more jobs than these: see --limit.", err=True)


def _check_share(api: ApiClient, share: str | None) -> None:
    """Raise NotFound for a share that does not exist."""
    if share not in (None, _DEFAULT_SHARE):
        check_name("share", str(share), {_DEFAULT_SHARE, *api.settings()["shares"]})


def _text(cli: CliContext, jobs: list[JobView], form: Form) -> str:
    if form is Form.JSON:
        return as_json(jobs)
    if form is Form.YAML:
        return as_yaml(jobs)
    if form is Form.CSV:
        return jobs_csv(sanitize(jobs), cli.now())
    paint = colored if cli.has_colors(sys.stdout) else plain
    width = terminal_width() if form is Form.TABLE and cli.is_terminal(sys.stdout) else None
    return jobs_table(sanitize(jobs), cli.now(), paint, width=width, wide=form is Form.WIDE)
