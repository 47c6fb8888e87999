"""`trainmaster release`: lets held jobs wait for their start again."""

from __future__ import annotations

import typer

from trainmaster.cli.common.bulk import change_each, state_of
from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Names


def release(context: typer.Context, names: Names, json: Json = False) -> None:
    """Release held jobs.

    They wait again, at the place that their entry time gives them.
    """
    with tools_of(context).api() as api:
        change_each(names, lambda name: api.change(name, hold=False), state_of, json=json)
