"""`trainmaster resized`: reports the outcome of a custom resize."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trainmaster.cli.common.bulk import state_line
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.render import as_json
from trainmaster.domain.text import sanitize

Token = Annotated[str, typer.Option("--token", metavar="TOKEN", help="Token of the resize request.")]
Done = Annotated[
    int | None, typer.Option("--done", metavar="N", min=1, help="The resize is done: the job has N instances.")
]
Refused = Annotated[
    str | None, typer.Option("--refused", metavar="REASON", help="The resize is refused, for this reason.")
]


def resized(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    name: Name,
    *,
    token: Token,
    done: Done = None,
    refused: Refused = None,
    json: Json = False,
) -> None:
    """Report that a custom resize is done or refused.

    For jobs with trainmaster:resize-by=custom, which you resize when the queue requests it.
    """
    if (done is None) == (refused is None):
        raise typer.BadParameter("Use either --done or --refused")
    answer: dict[str, Any] = {"token": token}
    answer |= {"outcome": "refused", "reason": refused} if done is None else {"outcome": "done", "instances": done}
    cli = cli_context(context)
    with cli.api() as api:
        job = api.answer_resize(name, answer)
    typer.echo(as_json(job) if json else state_line(sanitize(job), cli.now()))
