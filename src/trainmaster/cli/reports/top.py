"""`trainmaster top`: shows the live queue on the whole terminal."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from trainmaster.cli.common.context import cli_context
from trainmaster.cli.common.usage import UsageError
from trainmaster.cli.output.explanation import pause_sentence
from trainmaster.cli.output.fit import cut
from trainmaster.cli.output.listing import jobs_table, sort_jobs
from trainmaster.cli.output.render import colored, plain
from trainmaster.cli.queue.pools_table import pools_table
from trainmaster.client.api.errors import ApiError
from trainmaster.client.views.states import UNFINISHED
from trainmaster.domain.text import one_line, sanitize

if TYPE_CHECKING:
    from trainmaster.cli.output.render import Paint
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobView, ManagerPauseView, PoolView

_PAGE: Final = 100
"""Jobs that one poll reads, those at the head of the queue."""
_QUIT: Final = ("q", "Q")
_REDRAW_SECONDS: Final = 1.0


def top(
    context: typer.Context,
    interval: Annotated[
        int, typer.Option("--interval", "-n", metavar="SECONDS", min=1, max=3_600, help="Seconds between two reads.")
    ] = 5,
) -> None:
    """Show the live queue on the whole terminal: pools, then unfinished jobs as in `trainmaster ls`.

    q or Ctrl-C quits. While nothing changes, a read is two short requests.
    """
    cli = cli_context(context)
    if not (cli.is_terminal(sys.stdout) and sys.stdin.isatty()):
        raise UsageError("top needs a terminal; `trainmaster ls` and `trainmaster pools` print to pipes and files.")
    paint = colored if cli.has_colors(sys.stdout) else plain
    with cli.api() as api:
        feed = Feed(api, cli.now)
        feed.read()
        if feed.problem is not None:
            raise feed.problem
        with _stops_as_interrupt(), _keys() as pressed:
            try:
                _show(feed, pressed, interval, paint, cli.clock)
            except KeyboardInterrupt:
                return


@dataclass(slots=True)
class Feed:
    """The newest jobs and pools that were read.

    Attributes:
        now: the time of day.
        jobs: the first unfinished jobs.
        more: whether there are more.
        pause: who paused the manager, when and why; None if it works.
        as_of: the time of the newest read that succeeded.
        problem: why the newest read failed; None if it did not.
    """

    api: ApiClient
    now: Callable[[], datetime]
    jobs: list[JobView] = field(default_factory=list)
    pools: list[PoolView] = field(default_factory=list)
    more: bool = False
    pause: ManagerPauseView | None = None
    as_of: datetime | None = None
    problem: ApiError | None = None
    _tag: str | None = None

    def read(self) -> None:
        """Read the jobs and the pause, and the pools if anything has changed; a failure leaves what was read before."""
        try:
            page, tag = self.api.read_if_changed(
                "/jobs", self._tag, query={"state": ",".join(UNFINISHED), "limit": _PAGE}
            )
            if page is not None:
                self.pools = self.api.pools()["pools"]
                self.jobs, self.more = sort_jobs(page["jobs"]), page["nextCursor"] is not None
            self.pause = self.api.manager()["pause"]
            self._tag, self.as_of, self.problem = tag, self.now(), None
        except ApiError as error:
            self.problem = error


def screen(feed: Feed, now: datetime, size: tuple[int, int], paint: Paint = plain) -> str:
    """Return the lines of the screen: a headline, the pools and the jobs, cut at its width and height."""
    width, height = size
    pools = pools_table(sanitize(feed.pools), now, width=width).splitlines()
    heads = [_headline(feed, now), *([pause_sentence(sanitize(feed.pause), now)] if feed.pause else [])]
    lines = [*heads, "", *pools[: max(height // 2 - 1 - len(heads), 3)], ""]
    lines = [cut(line, width) for line in lines]
    listed = jobs_table(sanitize(feed.jobs), now, paint, width=width) if feed.jobs else "No unfinished jobs."
    jobs = listed.splitlines()
    room = max(height - len(lines), 1)
    if len(jobs) > room or feed.more:
        hidden = f"{max(len(jobs) - room + 1, 0)}{'+' if feed.more else ''} more"
        jobs = [*jobs[: room - 1], hidden]
    return "\n".join([*lines, *jobs])


def _headline(feed: Feed, now: datetime) -> str:
    counts = Counter(job["jobState"] for job in feed.jobs)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "idle"
    if feed.problem is not None:
        since = "" if feed.as_of is None else f" since {feed.as_of:%H:%M:%S}"
        return f"{now:%H:%M:%S}  Not updated{since}: {one_line(feed.problem.message)}"
    return f"{now:%H:%M:%S}  {states}{' and more' if feed.more else ''}  (q quits)"


def _show(feed: Feed, pressed: Callable[[float], str], interval: int, paint: Paint, clock: Callable[[], float]) -> None:
    """Redraw every second and read every `interval` seconds, until a key quits."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)

    def drawn() -> Any:
        text = screen(feed, feed.now(), (console.width, console.height), paint)
        return Text.from_ansi(text, no_wrap=True, overflow="crop")

    due = clock() + interval
    with Live(drawn(), console=console, screen=True, auto_refresh=False) as live:
        while pressed(min(max(due - clock(), 0.0), _REDRAW_SECONDS)) not in _QUIT:
            if clock() >= due:
                feed.read()
                due = clock() + interval
            live.update(drawn(), refresh=True)


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits so many seconds for a key and returns it, or ""; restores the terminal afterwards."""
    try:
        import termios
        import tty
    except ImportError as error:
        raise UsageError("top needs a POSIX terminal; `trainmaster console` works everywhere.") from error
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def pressed(seconds: float) -> str:
        ready, _, _ = select.select([terminal], [], [], seconds)
        return os.read(terminal, 1).decode(errors="replace") or "q" if ready else ""

    try:
        tty.setcbreak(terminal)
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _stops_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that the screen is restored."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
