"""`trainmaster pools`: shows the pools, sets, drains and removes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from trainmaster.cli.common.bulk import changed_each
from trainmaster.cli.common.context import tools_of
from trainmaster.cli.common.options import Json
from trainmaster.cli.output.render import as_json, terminal_width, warn
from trainmaster.cli.queue.draining import drain, resume
from trainmaster.cli.queue.pool_options import (
    AcceleratorMemory,
    Accelerators,
    Caps,
    CountForeign,
    Maker,
    Memory,
    Plan,
    PoolNames,
    Price,
    TheKind,
    Type,
    VCpus,
)
from trainmaster.cli.queue.pools_history import history_table
from trainmaster.cli.queue.pools_table import WIDTH, pools_table
from trainmaster.client.api.errors import Conflict
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.units import Kind

if TYPE_CHECKING:
    from trainmaster.cli.common.context import Tools
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.pools import PoolSetting, PoolsView, PoolView, RemovalView

Settings = dict[str, "PoolSetting"]
_TRIES = 5

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.command()(drain)
app.command()(resume)


@app.callback()
def pools(
    context: typer.Context,
    *,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="What an instance has and costs, and what else is set, too.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history", help="What the queue has lately done to pools that it made, instead; newest first."),
    ] = False,
    json: Json = False,
) -> None:
    """Show the pools, or set, drain and remove them.

    All figures are instances. Used are those that jobs hold, stopping ones included; beyond least are those of them
    that elastic jobs could give back and run on; held are those kept for a job
    that is about to start; foreign are those of training jobs that did not come from the queue; warm are those that
    SageMaker keeps in warm pools of jobs that have ended. Waiting are the jobs that could run there, though perhaps
    elsewhere, too: 32+ where more may wait than were counted. The weight is the pool's part in the placement policy
    smooth-weighted-round-robin.
    """
    if context.invoked_subcommand is None:
        tools = tools_of(context)
        with tools.api() as api:
            answer = api.pools(history=history)
        if history and not json:
            typer.echo(history_table(answer.get("history") or []))
        else:
            _print(tools, answer, wide=wide, json=json)


@app.command("set")
def set_caps(  # noqa: PLR0913 -- one option for each thing that can be set of a pool
    context: typer.Context,
    caps: Caps,
    *,
    instance_type: Type = None,
    kind: TheKind = None,
    plan: Plan = None,
    price: Price = None,
    vcpus: VCpus = None,
    memory: Memory = None,
    accelerators: Accelerators = None,
    accelerator: Maker = None,
    accelerator_memory: AcceleratorMemory = None,
    count_foreign: CountForeign = None,
    json: Json = False,
) -> None:
    """Set the caps of pools, and what else is given; pools that are not named stay as they are.

    A cap can be changed while jobs run: jobs that hold more than a lowered cap run on. A pool that has another name
    than its instance type is made with --type; several of one type differ in kind or name. What an instance has needs
    to be said only of types that the queue does not know.
    """
    wanted = _caps_of(caps)
    given = {
        "instanceType": instance_type,
        "kind": Kind.TRAINING_PLAN if plan is not None and kind is None else kind,
        "trainingPlanArn": plan,
        "price": price,
        "vcpus": vcpus,
        "memoryGib": memory,
        "accelerators": accelerators,
        "accelerator": accelerator,
        "acceleratorMemoryGib": accelerator_memory,
        "countForeign": count_foreign,
    }
    tools = tools_of(context)
    with tools.api() as api:
        answer = _changed(api, lambda now: _with(now, wanted, given))
    _print(tools, answer, json=json)
    changed = [pool for pool in answer["pools"] if pool["name"] in wanted and pool["instanceType"] not in SHIPPED]
    warn(_unknown_type(pool) if _known(pool) else _unknown(pool) for pool in changed)


@app.command("remove")
def remove(
    context: typer.Context,
    names: PoolNames,
    *,
    force: Annotated[
        bool,
        typer.Option("--force", help="Though jobs hold it, which run on, or can run nowhere else, which wait on."),
    ] = False,
    json: Json = False,
) -> None:
    """Remove pools; jobs that wait for them and can run elsewhere do.

    A pool that jobs hold is drained first (`trainmaster pools drain`). One without which waiting jobs could never run
    stays until those are cancelled, unless forced; and one that a share names, until the settings do not.
    """
    with tools_of(context).api() as api:
        done, code = changed_each(names, lambda name: api.remove_pool(name, force=force), None if json else _removed)
    if json:
        typer.echo(as_json(done))
    raise typer.Exit(code)


def _removed(name: str, done: RemovalView) -> str:
    least = "at least " if done["more"] else ""
    told = [
        f"{len(done['running'])} jobs run on there" if done["running"] else "",
        f"{least}{done['moved']} waiting jobs can run elsewhere" if done["moved"] else "",
        f"{least}{done['stranded']} waiting jobs can run nowhere now" if done["stranded"] else "",
    ]
    concerned = "; ".join(filter(None, told))
    return f"{name}: Removed." + (f" {concerned[0].upper()}{concerned[1:]}." if concerned else "")


def _changed(api: ApiClient, change: Callable[[Settings], Settings]) -> PoolsView:
    """The API replaces all pools at once: what was read is changed, and again where somebody else was faster."""
    for _ in range(_TRIES - 1):
        try:
            return _change_once(api, change)
        except Conflict as error:
            if error.type != "VersionConflict":
                raise
    return _change_once(api, change)


def _change_once(api: ApiClient, change: Callable[[Settings], Settings]) -> PoolsView:
    now = api.pools()
    settings: Settings = {pool["name"]: pool["setting"] for pool in now["pools"] if pool["kind"] != Kind.ENDPOINT}
    return api.set_pools(change(settings).values(), now["version"])


def _with(now: Settings, wanted: Mapping[str, int], given: Mapping[str, Any]) -> Settings:
    """The settings with these caps, and what else is given for each of these pools."""
    for name in wanted:
        _check_type(name, given["instanceType"], now)
    return now | {name: _setting(name, cap, given, now.get(name)) for name, cap in wanted.items()}


def _setting(name: str, cap: int, given: Mapping[str, Any], now: PoolSetting | None) -> PoolSetting:
    changes = {key: value for key, value in given.items() if value is not None}
    setting: dict[str, Any] = {**(now or {"instanceType": name}), "cap": cap, **changes}
    if setting["instanceType"] != name:
        setting["name"] = name
    return cast("PoolSetting", setting)


def _check_type(name: str, instance_type: str | None, now: Settings) -> None:
    """A new pool has the name of its type, or is given one."""
    if instance_type is None and name not in now and not name.startswith("ml."):
        wrong = f"there is no pool {name!r}; to make it, give its instance type with --type"
        raise typer.BadParameter(wrong, param_hint="'POOL=CAP'")


def _known(pool: PoolView) -> bool:
    return bool(pool["vcpus"] or pool["memoryGib"] or pool["accelerators"])


def _unknown(pool: PoolView) -> str:
    return (
        f"{pool['name']}: nobody knows what an {pool['instanceType']} has, so no job that asks for resources runs "
        "there. Is that the type you meant? If so, say it with --vcpus, --memory-gib and --accelerators."
    )


def _unknown_type(pool: PoolView) -> str:
    return (
        f"{pool['name']}: this version knows no {pool['instanceType']}. "
        "Where SageMaker knows none either, jobs that are started there fail."
    )


def _caps_of(texts: Sequence[str]) -> dict[str, int]:
    caps: dict[str, int] = {}
    for name, cap in map(_cap_of, texts):
        if name in caps:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="'POOL=CAP'")
        caps[name] = cap
    return caps


def _cap_of(text: str) -> tuple[str, int]:
    name, _, cap = text.partition("=")
    if not name or not (cap.isascii() and cap.isdigit()):
        raise typer.BadParameter(f"{text!r} is not POOL=CAP, such as ml.p5.48xlarge=2", param_hint="'POOL=CAP'")
    return name, int(cap)


def _print(tools: Tools, answer: PoolsView, *, wide: bool = False, json: bool) -> None:
    width = min(WIDTH, terminal_width()) if tools.is_terminal(sys.stdout) else WIDTH
    typer.echo(as_json(answer) if json else pools_table(answer["pools"], wide=wide, width=width))
