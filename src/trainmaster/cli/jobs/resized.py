"""`trainmaster resized`: the answer of whoever carries out a custom resize."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trainmaster.cli.common.bulk import state_of
from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Name
from trainmaster.cli.output.render import as_json

Token = Annotated[str, typer.Option("--token", metavar="TOKEN", help="Of the resize, as it was asked.")]
Done = Annotated[int | None, typer.Option("--done", metavar="N", min=1, help="It is done: the job has N instances.")]
Refused = Annotated[str | None, typer.Option("--refused", metavar="REASON", help="It is not done, and why.")]


def resized(  # noqa: PLR0913 - an option each
    context: typer.Context,
    name: Name,
    *,
    token: Token,
    done: Done = None,
    refused: Refused = None,
    json: Json = False,
) -> None:
    """Say that you have resized a job, or will not.

    For jobs whose size somebody else changes when asked (trainmaster:resize-by=custom).
    """
    if (done is None) == (refused is None):
        raise typer.BadParameter("give one of --done and --refused")
    answer: dict[str, Any] = {"token": token}
    answer |= {"outcome": "refused", "reason": refused} if done is None else {"outcome": "done", "instances": done}
    with tools_of(context).api() as api:
        job = api.answer_resize(name, answer)
    typer.echo(as_json(job) if json else state_of(job))
