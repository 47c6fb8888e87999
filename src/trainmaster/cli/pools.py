"""`trainmaster pools`: shows the pools, and sets and removes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.options import Json
from trainmaster.cli.render import as_json, pools_table
from trainmaster.cli.tools import tools_of
from trainmaster.client.errors import Conflict, NotFound

if TYPE_CHECKING:
    from trainmaster.client.api import ApiClient
    from trainmaster.client.views import PoolSetting, PoolsView

Settings = dict[str, "PoolSetting"]
_TRIES = 5

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def pools(context: typer.Context, json: Json = False) -> None:
    """Show the pools, or set their caps.

    All figures are instances. Used are those that jobs hold, stopping ones included; held are those kept for a job
    that is about to start; foreign are those of training jobs that did not come from the queue.
    """
    if context.invoked_subcommand is None:
        with tools_of(context).api() as api:
            _print(api.pools(), json=json)


@app.command("set")
def set_caps(
    context: typer.Context,
    caps: Annotated[list[str], typer.Argument(metavar="TYPE=CAP", help="Instance types and how many of each.")],
    count_foreign: Annotated[
        bool | None,
        typer.Option(
            "--count-foreign/--no-count-foreign",
            help="Whether training jobs that did not come from the queue count; without it as before.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Set the caps of pools; those that are not named stay as they are.

    A cap can be changed while jobs run: jobs that hold more than a lowered cap run on.
    """
    wanted = dict(_cap_of(text) for text in caps)

    def change(now: Settings) -> Settings:
        return now | {name: _setting(name, cap, count_foreign, now.get(name)) for name, cap in wanted.items()}

    with tools_of(context).api() as api:
        _print(_changed(api, change), json=json)


@app.command("remove")
def remove(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="TYPE", help="The pools' instance types.")],
    json: Json = False,
) -> None:
    """Remove pools.

    Jobs that can run in no other pool then wait until there is one again.
    """

    def change(now: Settings) -> Settings:
        for name in names:
            if name not in now:
                raise NotFound(f"There is no pool {name}.", type="PoolNotFound", hint="See `trainmaster pools`.")
        return {name: setting for name, setting in now.items() if name not in names}

    with tools_of(context).api() as api:
        _print(_changed(api, change), json=json)


def _changed(api: ApiClient, change: Callable[[Settings], Settings]) -> PoolsView:
    """The API replaces all pools at once: what was read is changed, and again where somebody else was faster."""
    for _ in range(_TRIES - 1):
        try:
            return _change_once(api, change)
        except Conflict:
            continue
    return _change_once(api, change)


def _change_once(api: ApiClient, change: Callable[[Settings], Settings]) -> PoolsView:
    now = api.pools()
    settings: Settings = {
        pool["name"]: {
            "instanceType": pool["instanceType"],
            "cap": pool["cap"],
            "countForeign": pool["countForeign"],
        }
        for pool in now["pools"]
    }
    return api.set_pools(change(settings).values(), now["version"])


def _setting(name: str, cap: int, count_foreign: bool | None, now: PoolSetting | None) -> PoolSetting:
    setting: PoolSetting = {**now, "cap": cap} if now else {"instanceType": name, "cap": cap}
    return setting if count_foreign is None else {**setting, "countForeign": count_foreign}


def _cap_of(text: str) -> tuple[str, int]:
    name, _, cap = text.partition("=")
    if not name or not (cap.isascii() and cap.isdigit()):
        raise typer.BadParameter(f"{text!r} is not TYPE=CAP, such as ml.p5.48xlarge=2", param_hint="'TYPE=CAP'")
    return name, int(cap)


def _print(answer: PoolsView, *, json: bool) -> None:
    typer.echo(as_json(answer) if json else pools_table(answer["pools"]))
