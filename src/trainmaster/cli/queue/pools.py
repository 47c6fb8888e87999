"""`trainmaster pools`: shows, sets, drains and removes pools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from trainmaster.cli.common.bulk import apply_to_each
from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.options import Json
from trainmaster.cli.common.subcommands import Subcommands
from trainmaster.cli.output.render import as_json, print_warnings, terminal_width
from trainmaster.cli.queue.draining import drain, resume
from trainmaster.cli.queue.pool_checks import in_words_of_pools, with_caps
from trainmaster.cli.queue.pool_options import (
    AcceleratorMemory,
    Accelerators,
    Caps,
    CountExternal,
    KindOption,
    Manufacturer,
    Memory,
    Plan,
    PoolNames,
    Price,
    Type,
    VCpus,
)
from trainmaster.cli.queue.pools_history import history_table
from trainmaster.cli.queue.pools_table import WIDTH, load_notes, pools_table, quota_notes
from trainmaster.client.api.errors import Conflict, Refused
from trainmaster.domain.capacity.instance_table import SHIPPED
from trainmaster.domain.capacity.units import Kind
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from trainmaster.cli.common.context import CliContext
    from trainmaster.cli.queue.pool_checks import PoolSettings
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import PoolSetting, PoolsView, PoolView, RemovalView

_MAX_ATTEMPTS = 5

app = typer.Typer(cls=Subcommands, invoke_without_command=True, rich_markup_mode=None, add_completion=False)
app.command()(drain)
app.command()(resume)


@app.callback()
def pools(
    context: typer.Context,
    *,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="Also show what an instance has and costs, and other settings.")
    ] = False,
    history: Annotated[
        bool,
        typer.Option("--history", help="Show recent changes to managed pools instead, newest first."),
    ] = False,
    json: Json = False,
) -> None:
    """Show, set, drain and remove pools.

    All figures are instances. Used: held by jobs, including stopping ones. Above Min: used instances that elastic
    jobs could give up and continue. Held: kept for a job that is about to start. External: used by training jobs that
    did not come from the queue. Quota: the account's quota where it is below the cap, as SageMaker last reported it;
    it limits the pool. Warm: kept by SageMaker in warm pools of ended jobs. Waiting: jobs that could run in
    the pool, even if they could also run elsewhere; 32+ means that more may wait than were counted. Weight: the pool's
    weight in the placement policy smooth-weighted-round-robin.
    """
    if context.invoked_subcommand is None:
        cli = cli_context(context)
        with cli.api() as api:
            answer = api.pools(history=history)
        if history and not json:
            typer.echo(history_table(sanitize(answer.get("history") or []), cli.now()))
        else:
            _print(cli, answer, wide=wide, json=json)


@app.command("set")
def set_caps(  # noqa: PLR0913 -- one parameter per option
    context: typer.Context,
    caps: Caps,
    *,
    instance_type: Type = None,
    kind: KindOption = None,
    plan: Plan = None,
    price: Price = None,
    vcpus: VCpus = None,
    memory: Memory = None,
    accelerators: Accelerators = None,
    accelerator: Manufacturer = None,
    accelerator_memory: AcceleratorMemory = None,
    count_external: CountExternal = None,
    json: Json = False,
) -> None:
    """Set the caps and other properties of pools; other pools stay as they are.

    You can change a cap while jobs run: jobs above a lowered cap continue. To create a pool whose name is not its
    instance type, pass --type; pools of one type differ in kind or name. Describe an instance only if the queue does
    not know its type.
    """
    caps_by_pool = _caps_of(caps)
    properties = {
        "instanceType": instance_type,
        "kind": Kind.TRAINING_PLAN if plan is not None and kind is None else kind,
        "trainingPlanArn": plan,
        "price": price,
        "vcpus": vcpus,
        "memoryGib": memory,
        "accelerators": accelerators,
        "accelerator": accelerator,
        "acceleratorMemoryGib": accelerator_memory,
        "countExternal": count_external,
    }
    cli = cli_context(context)
    with cli.api() as api:
        answer = _update_pools(api, lambda now: with_caps(now, caps_by_pool, properties))
    _print(cli, answer, json=json)
    changed = [pool for pool in answer["pools"] if pool["name"] in caps_by_pool and pool["instanceType"] not in SHIPPED]
    print_warnings(map(_unknown_type_warning, changed))


@app.command("remove")
def remove(
    context: typer.Context,
    names: PoolNames,
    *,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Remove pools even if jobs hold them (they continue) or need them (they keep waiting)."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Remove pools; waiting jobs that can run elsewhere do.

    Drain a pool that jobs hold first (`trainmaster pools drain`). A pool without which waiting jobs could never run
    stays until they are cancelled or you pass --force. A pool that a share names stays until the settings no longer
    name it.
    """
    with cli_context(context).api() as api:
        removals, code = apply_to_each(
            api, names, lambda name: api.remove_pool(name, force=force), None if json else _removal_line
        )
    if json:
        typer.echo(as_json(removals))
    raise typer.Exit(code)


def _removal_line(name: str, removal: RemovalView) -> str:
    at_least = "at least " if removal["more"] else ""
    parts = [
        f"{len(removal['running'])} running jobs continue there" if removal["running"] else "",
        f"{at_least}{removal['moved']} waiting jobs can run elsewhere" if removal["moved"] else "",
        f"{at_least}{removal['stranded']} waiting jobs can no longer run anywhere" if removal["stranded"] else "",
    ]
    details = "; ".join(filter(None, parts))
    return f"{name}: Removed." + (f" {details[0].upper()}{details[1:]}." if details else "")


def _update_pools(api: ApiClient, change: Callable[[PoolSettings], PoolSettings]) -> PoolsView:
    """Read, change and replace all pools; retry if they changed in between."""
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return _change_once(api, change)
        except Conflict as error:
            if error.type != "VersionConflict":
                raise
    return _change_once(api, change)


def _change_once(api: ApiClient, change: Callable[[PoolSettings], PoolSettings]) -> PoolsView:
    now = api.pools()
    settings: PoolSettings = {
        pool["name"]: cast("PoolSetting", pool["setting"])
        for pool in now["pools"]
        if pool["kind"] != Kind.SERVICE.value
    }
    changed = change(settings)
    try:
        return api.set_pools(changed.values(), now["version"])
    except Refused as error:
        raise in_words_of_pools(error, [*changed]) from error


def _unknown_type_warning(pool: PoolView) -> str:
    return (
        f"{pool['name']}: this version does not know {pool['instanceType']}. "
        "If SageMaker does not know it either, jobs fail to start there."
    )


def _caps_of(texts: Sequence[str]) -> dict[str, int]:
    caps: dict[str, int] = {}
    for name, cap in map(_cap_of, texts):
        if name in caps:
            raise typer.BadParameter(f"{name!r} is specified twice", param_hint="'POOL=CAP'")
        caps[name] = cap
    return caps


def _cap_of(text: str) -> tuple[str, int]:
    name, _, cap = text.partition("=")
    if name and cap and "=" in text and not (cap.isascii() and cap.isdigit()):
        wrong = f"The cap of {name} is {cap!r}: it must be a whole number from 0, such as {name}=2"
        raise typer.BadParameter(wrong)
    if not name or not cap:
        raise typer.BadParameter(f"{text!r} is not POOL=CAP, such as ml.p5.48xlarge=2", param_hint="'POOL=CAP'")
    return name, int(cap)


def _print(cli: CliContext, answer: PoolsView, *, wide: bool = False, json: bool) -> None:
    width = min(WIDTH, terminal_width()) if cli.is_terminal(sys.stdout) else WIDTH
    pools = sanitize(answer["pools"])
    typer.echo(as_json(answer) if json else pools_table(pools, cli.now(), wide=wide, width=width))
    for note in () if json else (*quota_notes(pools, cli.now()), *load_notes(pools, cli.now())):
        typer.echo(note)
