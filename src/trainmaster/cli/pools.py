"""`trainmaster pools`: shows the pools, and sets and removes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from trainmaster.cli.options import Json
from trainmaster.cli.render import as_json, pools_table
from trainmaster.cli.tools import tools_of
from trainmaster.client.errors import Conflict, NotFound
from trainmaster.domain.capacity import Kind
from trainmaster.domain.instances import accelerators_of

if TYPE_CHECKING:
    from trainmaster.client.api import ApiClient
    from trainmaster.client.views import PoolSetting, PoolsView, PoolView

Settings = dict[str, "PoolSetting"]
_TRIES = 5

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def pools(context: typer.Context, json: Json = False) -> None:
    """Show the pools, or set their caps.

    All figures are instances. Used are those that jobs hold, stopping ones included; held are those kept for a job
    that is about to start; foreign are those of training jobs that did not come from the queue; warm are those that
    SageMaker keeps in warm pools of jobs that have ended.
    """
    if context.invoked_subcommand is None:
        with tools_of(context).api() as api:
            _print(api.pools(), json=json)


@app.command("set")
def set_caps(  # noqa: PLR0913, PLR0917 -- one option for each thing that can be set of a pool
    context: typer.Context,
    caps: Annotated[
        list[str], typer.Argument(metavar="POOL=CAP", help="Pools, by instance type or name, and how many instances.")
    ],
    instance_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="The instance type of pools that have another name.")
    ] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="How SageMaker gives the instances.")] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="ARN", help="The training plan; makes it a pool of that kind.")
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price", metavar="DOLLARS", min=0, help="For an hour of one instance.")
    ] = None,
    accelerators: Annotated[
        int | None,
        typer.Option("--accelerators", metavar="N", min=0, help="Of one instance; 0: as known of the type."),
    ] = None,
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
    """Set the caps of pools, and what else is given; pools that are not named stay as they are.

    A cap can be changed while jobs run: jobs that hold more than a lowered cap run on. A pool that has another name
    than its instance type is made with --type; several of one type differ in kind or name.
    """
    wanted = dict(_cap_of(text) for text in caps)
    given = {
        "instanceType": instance_type,
        "kind": Kind.TRAINING_PLAN if plan is not None and kind is None else kind,
        "trainingPlanArn": plan,
        "price": price,
        "accelerators": accelerators,
        "countForeign": count_foreign,
    }

    def change(now: Settings) -> Settings:
        return now | {name: _setting(name, cap, given, now.get(name)) for name, cap in wanted.items()}

    with tools_of(context).api() as api:
        _print(_changed(api, change), json=json)


@app.command("remove")
def remove(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="POOL", help="The pools' names.")],
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
    settings: Settings = {pool["name"]: _as_set(pool) for pool in now["pools"]}
    return api.set_pools(change(settings).values(), now["version"])


def _as_set(pool: PoolView) -> PoolSetting:
    """What has to be sent to keep a pool as it is."""
    setting: PoolSetting = {
        "instanceType": pool["instanceType"],
        "cap": pool["cap"],
        "countForeign": pool["countForeign"],
    }
    if pool["name"] != pool["instanceType"]:
        setting["name"] = pool["name"]
    if pool["kind"] != Kind.ON_DEMAND:
        setting["kind"] = pool["kind"]
    if pool["trainingPlanArn"] is not None:
        setting["trainingPlanArn"] = pool["trainingPlanArn"]
    if pool["price"]:
        setting["price"] = pool["price"]
    # What is known of a type may be corrected later; only what somebody has set is kept.
    if pool["accelerators"] != accelerators_of(pool["instanceType"]):
        setting["accelerators"] = pool["accelerators"]
    return setting


def _setting(name: str, cap: int, given: Mapping[str, Any], now: PoolSetting | None) -> PoolSetting:
    changes = {key: value for key, value in given.items() if value is not None}
    setting: dict[str, Any] = {**(now or {"instanceType": name}), "cap": cap, **changes}
    if setting["instanceType"] != name:
        setting["name"] = name
    return cast("PoolSetting", setting)


def _cap_of(text: str) -> tuple[str, int]:
    name, _, cap = text.partition("=")
    if not name or not (cap.isascii() and cap.isdigit()):
        raise typer.BadParameter(f"{text!r} is not POOL=CAP, such as ml.p5.48xlarge=2", param_hint="'POOL=CAP'")
    return name, int(cap)


def _print(answer: PoolsView, *, json: bool) -> None:
    typer.echo(as_json(answer) if json else pools_table(answer["pools"]))
