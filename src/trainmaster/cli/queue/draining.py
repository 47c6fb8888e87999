"""`trainmaster pools drain` and `resume`. Interrupting a wait leaves the pools draining."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO

import typer

from trainmaster.cli.common.bulk import apply_to_each
from trainmaster.cli.common.context import CliContext, cli_context
from trainmaster.cli.common.exit_codes import ExitCode
from trainmaster.cli.common.options import Json
from trainmaster.cli.common.waiting import INTERVAL_SECONDS, Interval, Timeout, WaitOptions
from trainmaster.cli.output.render import as_json
from trainmaster.cli.queue.pool_options import PoolNames
from trainmaster.client.api.errors import Conflict
from trainmaster.domain.text import sanitize

if TYPE_CHECKING:
    from rich.console import Console
    from typing_extensions import Self

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import PoolView

DRAINED = "drained"


def drain(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    names: PoolNames,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until no instances are held.")] = False,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Drain pools: start no more jobs there, and let running jobs end.

    Waiting jobs that can run elsewhere do; the others wait, and nothing is preempted. The queue ends idle warm pools
    there. The exit code is 124 if the timeout expired before all pools were empty. Ctrl-C stops only the waiting.
    """
    cli = cli_context(context)
    with cli.api() as api:
        pools, code = apply_to_each(
            api, names, lambda name: api.change_pool(name, draining=True), None if json else _state_line
        )
        if wait and pools:
            pools, outcome = _wait_for(cli, api, [pool["name"] for pool in pools], WaitOptions(interval, timeout))
            code = code or outcome
            for pool in () if json else sanitize(pools):
                typer.echo(_state_line(pool["name"], pool))
    if json:
        typer.echo(as_json(pools))
    raise typer.Exit(code)


def resume(context: typer.Context, names: PoolNames, json: Json = False) -> None:
    """Resume starting jobs in drained pools."""
    with cli_context(context).api() as api:
        pools, code = apply_to_each(
            api, names, lambda name: api.change_pool(name, draining=False), None if json else _state_line
        )
    if json:
        typer.echo(as_json(pools))
    raise typer.Exit(code)


def _state_line(name: str, pool: PoolView) -> str:
    if pool["state"] == "in use":
        return f"{name}: In use; jobs start there."
    if pool["state"] == DRAINED:
        return f"{name}: Drained; no instances are held."
    return f"{name}: Draining; {_held_units(pool)} of {pool['cap']} instances are still held."


def _held_units(pool: PoolView) -> int:
    """Return the number of instances that have not come free yet."""
    return pool["used"] + pool["warm"]


def _wait_for(
    cli: CliContext, api: ApiClient, names: Sequence[str], wait_options: WaitOptions
) -> tuple[list[PoolView], ExitCode]:
    """Return the pools when all are drained or the timeout has expired; pools removed meanwhile are left out."""
    try:
        with _display_for(cli) as display:
            return _poll(cli, api, names, display, wait_options)
    except KeyboardInterrupt:
        hint = f"`trainmaster pools resume {names[0]}` ends that"
        typer.echo(f"Stopped waiting; the pools continue to drain ({hint}).", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _poll(
    cli: CliContext, api: ApiClient, names: Sequence[str], display: Display, wait_options: WaitOptions
) -> tuple[list[PoolView], ExitCode]:
    started = cli.clock()
    while True:
        pools = [pool for pool in api.pools()["pools"] if pool["name"] in names]
        for pool in pools:
            if pool["state"] == "in use":
                hint = f"Drain it again: `trainmaster pools drain {pool['name']}`."
                raise Conflict(f"{pool['name']} is no longer draining.", type="PoolResumed", hint=hint)
        display.show(sanitize(pools))
        if all(pool["state"] == DRAINED for pool in pools):
            return pools, ExitCode.OK
        remaining = None if wait_options.timeout is None else started + wait_options.timeout - cli.clock()
        if remaining is not None and remaining <= 0:
            return pools, ExitCode.TIMED_OUT
        cli.sleep(wait_options.interval if remaining is None else min(wait_options.interval, remaining))


class Display(AbstractContextManager["Display"], Protocol):
    """Shows the progress of draining until the `with` ends."""

    def show(self, pools: Sequence[PoolView]) -> None:
        """Show the current state of the pools."""


def _display_for(cli: CliContext) -> Display:
    """Return the display that fits standard error."""
    if not cli.is_terminal(sys.stderr):
        return LineDisplay(sys.stderr)
    from rich.console import Console

    return ProgressBars(Console(stderr=True, no_color=not cli.has_colors(sys.stderr)))


class LineDisplay:
    """Prints a line per change, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Return the display."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def show(self, pools: Sequence[PoolView]) -> None:
        """Print a line for each pool whose number of held instances has changed."""
        for pool in pools:
            if self._last.get(pool["name"]) != _held_units(pool):
                self._last[pool["name"]] = _held_units(pool)
                are = "instance is" if _held_units(pool) == 1 else "instances are"
                print(f"{pool['name']}: {_held_units(pool)} {are} still held.", file=self._stream, flush=True)


class ProgressBars:
    """Draws a bar per pool on a terminal and removes them at the end."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f} instances free"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            auto_refresh=False,  # drawn at each poll: what a terminal shows may also be recorded in a file
        )
        self._tasks: dict[str, Any] = {}
        self._totals: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Start drawing."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bars and restore the cursor."""
        self._progress.stop()

    def show(self, pools: Sequence[PoolView]) -> None:
        """Draw how many of the held instances have come free."""
        for pool in pools:
            name, remaining = pool["name"], _held_units(pool)
            total = self._totals[name] = max(remaining, self._totals.get(name, 0))
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=total)
            self._progress.update(self._tasks[name], total=total, completed=total - remaining)
        self._progress.refresh()
