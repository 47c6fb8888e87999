"""`trainmaster hold`: keeps waiting jobs from starting."""

from __future__ import annotations

import typer

from trainmaster.cli.common.bulk import change_each, state_of
from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json, Names


def hold(context: typer.Context, names: Names, json: Json = False) -> None:
    """Hold waiting jobs back until they are released.

    A held job keeps its entry time; the jobs behind it may start before it.
    """
    with tools_of(context).api() as api:
        change_each(names, lambda name: api.change(name, hold=True), state_of, json=json)
