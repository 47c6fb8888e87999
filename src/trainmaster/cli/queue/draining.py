"""`trainmaster pools drain` and `resume`: nothing more is started in a pool, and again; waits until it is empty.

It must not stop a job or remove a pool: when the waiting is interrupted, the pools go on draining.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self, TextIO

import typer

from trainmaster.cli.common.bulk import changed_each
from trainmaster.cli.common.context import Tools, tools_of
from trainmaster.cli.common.exit_codes import Code
from trainmaster.cli.common.options import Json
from trainmaster.cli.common.waiting import INTERVAL_SECONDS, Interval, Patience, Timeout
from trainmaster.cli.output.render import as_json
from trainmaster.cli.queue.pool_options import PoolNames
from trainmaster.client.api.errors import Conflict

if TYPE_CHECKING:
    from rich.console import Console

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.pools import PoolView

DRAINED = "drained"


def drain(  # noqa: PLR0913 - an option each
    context: typer.Context,
    names: PoolNames,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing holds them any more.")] = False,
    interval: Interval = INTERVAL_SECONDS,
    timeout: Timeout = None,
    json: Json = False,
) -> None:
    """Start nothing more in pools, and let what runs there end.

    Jobs that can run elsewhere do; those that cannot wait, and nobody is preempted. Warm pools there are ended. The
    exit code is 124 if the time was up before all were empty. Ctrl-C ends the waiting only.
    """
    tools = tools_of(context)
    with tools.api() as api:
        pools, code = changed_each(names, lambda name: api.change_pool(name, draining=True), None if json else _told)
        if wait and pools:
            pools, outcome = _wait_for(tools, api, [pool["name"] for pool in pools], Patience(interval, timeout))
            code = code or outcome
            for pool in () if json else pools:
                typer.echo(_told(pool["name"], pool))
    if json:
        typer.echo(as_json(pools))
    raise typer.Exit(code)


def resume(context: typer.Context, names: PoolNames, json: Json = False) -> None:
    """Start jobs in pools again that were being drained."""
    with tools_of(context).api() as api:
        pools, code = changed_each(names, lambda name: api.change_pool(name, draining=False), None if json else _told)
    if json:
        typer.echo(as_json(pools))
    raise typer.Exit(code)


def _told(name: str, pool: PoolView) -> str:
    if pool["state"] == "in use":
        return f"{name}: In use; jobs are started there."
    if pool["state"] == DRAINED:
        return f"{name}: Drained; nothing holds it any more."
    return f"{name}: Is being drained; {_left(pool)} of {pool['cap']} instances are still held."


def _left(pool: PoolView) -> int:
    """Instances that have to come free."""
    return pool["used"] + pool["warm"]


def _wait_for(tools: Tools, api: ApiClient, names: Sequence[str], patience: Patience) -> tuple[list[PoolView], Code]:
    """The pools when all are drained or the time is up. One that somebody removes meanwhile is waited for no more."""
    try:
        with _display_for(tools) as display:
            return _follow(tools, api, names, display, patience)
    except KeyboardInterrupt:
        again = f"`trainmaster pools resume {names[0]}` ends that"
        typer.echo(f"No longer waiting; what is being drained goes on draining ({again}).", err=True)
        raise


def _follow(
    tools: Tools, api: ApiClient, names: Sequence[str], display: Display, patience: Patience
) -> tuple[list[PoolView], Code]:
    begun = tools.clock()
    while True:
        pools = [pool for pool in api.pools()["pools"] if pool["name"] in names]
        for pool in pools:
            if pool["state"] == "in use":
                hint = f"Drain it again: `trainmaster pools drain {pool['name']}`."
                raise Conflict(f"{pool['name']} is not being drained any more.", type="PoolResumed", hint=hint)
        display.show(pools)
        if all(pool["state"] == DRAINED for pool in pools):
            return pools, Code.OK
        left = None if patience.timeout is None else begun + patience.timeout - tools.clock()
        if left is not None and left <= 0:
            return pools, Code.TIMED_OUT
        tools.sleep(patience.interval if left is None else min(patience.interval, left))


class Display(AbstractContextManager["Display"], Protocol):
    """Shows how far pools are drained until the `with` ends."""

    def show(self, pools: Sequence[PoolView]) -> None:
        """The pools as they are now."""


def _display_for(tools: Tools) -> Display:
    """The display that fits standard error."""
    if not tools.is_terminal(sys.stderr):
        return Lines(sys.stderr)
    from rich.console import Console

    return Bars(Console(stderr=True, no_color=not tools.colours(sys.stderr)))


class Lines:
    """A line for each change, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Nothing to begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def show(self, pools: Sequence[PoolView]) -> None:
        """Write a line for each pool of which more has come free since."""
        for pool in pools:
            if self._last.get(pool["name"]) != _left(pool):
                self._last[pool["name"]] = _left(pool)
                are = "instance is" if _left(pool) == 1 else "instances are"
                print(f"{pool['name']}: {_left(pool)} {are} still held.", file=self._stream, flush=True)


class Bars:
    """A bar for each pool on a terminal, which vanish at the end."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f} instances free"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, Any] = {}
        self._most: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe the bars and give the cursor back."""
        self._progress.stop()

    def show(self, pools: Sequence[PoolView]) -> None:
        """Draw how much of what was held has come free."""
        for pool in pools:
            name, left = pool["name"], _left(pool)
            most = self._most[name] = max(left, self._most.get(name, 0))
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=most)
            self._progress.update(self._tasks[name], total=most, completed=most - left)
        self._progress.refresh()
