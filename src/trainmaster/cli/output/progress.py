"""Progress of waiting jobs on standard error: a table redrawn on a terminal, else a line per change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from trainmaster.cli.kinds import kind_of_job
from trainmaster.cli.output.outlook import start_range
from trainmaster.cli.output.render import position_text, reason_text
from trainmaster.cli.output.times import job_sentence
from trainmaster.client.views.changes import JobChanges
from trainmaster.client.views.states import ENDED
from trainmaster.client.views.wording import attempt_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.constrain import Constrain
    from rich.table import Table
    from rich.text import Text
    from typing_extensions import Self

    from trainmaster.cli.common.context import CliContext
    from trainmaster.client.views.types import JobView

_HEADINGS = ("", "Job Name", "State", "Position", "Starts", "Attempts", "Reason")
_BAR_WIDTH = 20
_STYLES = {"completed": "green", "failed": "red", "stopped": "red", "cancelled": "red", "running": "green"}


class Display(AbstractContextManager["Display"], Protocol):
    """Shows jobs until the `with` ends."""

    def show(self, jobs: Sequence[JobView]) -> None:
        """Show the current state of the jobs."""


def display_for(cli: CliContext) -> Display:
    """Return the display that fits standard error."""
    if not cli.is_terminal(sys.stderr):
        return LineDisplay(sys.stderr, cli.now, cli.clock)
    from rich.console import Console

    return LiveTable(Console(stderr=True, no_color=not cli.has_colors(sys.stderr)), cli.now)


def job_line(job: JobView, now: datetime) -> str:
    """Return a job in one line: name, state and number of attempts."""
    attempts = attempt_count(job)
    return f"{job['jobName']}: {job_sentence(job, now)}" + (f" Attempt {attempts}." if attempts > 1 else "")


class LineDisplay:
    """Prints a line per change of a job, for logs; `JobChanges` defines a change."""

    def __init__(self, stream: TextIO, now: Callable[[], datetime], clock: Callable[[], float]) -> None:
        self._stream, self._now = stream, now
        self._changes = JobChanges(clock)

    def __enter__(self) -> Self:
        """Return the display."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def show(self, jobs: Sequence[JobView]) -> None:
        """Print a line for each job that has changed."""
        for job in jobs:
            if self._changes.is_due(job, _progress_text(job)):
                print(job_line(job, self._now()), file=self._stream, flush=True)


class LiveTable:
    """Draws a table in place on a terminal, when it changes, and removes it at the end.

    Nothing moves by itself: what a terminal shows may also be recorded in a file.
    """

    def __init__(self, console: Console, now: Callable[[], datetime]) -> None:
        from rich.live import Live

        self._now = now
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn: tuple[object, ...] = ()

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the table and restore the cursor."""
        self._live.stop()

    def show(self, jobs: Sequence[JobView]) -> None:
        """Draw the jobs if they or the width of the terminal have changed."""
        new = (self._live.console.width, *(_plain(job, self._now()) for job in jobs))
        if new != self._drawn:
            self._drawn = new
            self._live.update(self.renderable(jobs), refresh=True)

    def renderable(self, jobs: Sequence[JobView]) -> Constrain:
        """Return the jobs as a table that leaves some columns free.

        A terminal echoes Ctrl-C as `^C`: in a full line that would wrap, and clearing would miss a line.
        """
        from rich.constrain import Constrain

        return Constrain(self._table(jobs), self._live.console.width - len("^C") - 1)

    def _table(self, jobs: Sequence[JobView]) -> Table:
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
        kinds = [kind for job in jobs if (kind := kind_of_job(job)) is not None]
        bars = [kinds[0].PARTS_HEADING, ""] if kinds else []
        for heading in (*_HEADINGS, *bars):
            # On narrow terminals, columns that may wrap shrink first; their cells are cut.
            table.add_column(heading, no_wrap=heading not in ("Job Name", "Reason"))
        for job in jobs:
            table.add_row(_mark(job), *_cells(job, self._now()), *(_progress_bar(job) if bars else []))
        return table


def _mark(job: JobView) -> Text:
    if job["jobState"] not in ENDED:
        return _text("")
    return _text("✓" if job["jobState"] == "completed" else "✗", _STYLES[job["jobState"]])


def _plain(job: JobView, now: datetime) -> tuple[str, ...]:
    return (_progress_text(job), *(cell.plain for cell in _cells(job, now)))


def _progress_text(job: JobView) -> str:
    kind = kind_of_job(job)
    return "" if kind is None else kind.progress(job)


def _cells(job: JobView, now: datetime) -> list[Text]:
    return [
        _text(job["jobName"]),
        _text(job["jobState"], _STYLES.get(job["jobState"], "yellow")),
        _text(position_text(job)),
        _text(start_range(job, now)),
        _text(str(attempt_count(job) or "")),
        _text(reason_text(job["reason"]) or job["failureReason"] or "", "dim"),
    ]


def _progress_bar(job: JobView) -> list[Any]:
    """Return a bar and figures for the progress of a job of another kind; empty for training jobs."""
    from rich.progress_bar import ProgressBar

    kind = kind_of_job(job)
    if kind is None:
        return [_text(""), _text("")]
    done, total = kind.parts(job)
    return [ProgressBar(total=total, completed=done, width=_BAR_WIDTH), _text(kind.progress(job))]


def _text(content: str, style: str = "") -> Text:
    """Return a cell that is cut instead of wrapped, and is not read as markup."""
    from rich.text import Text

    return Text(content, style=style, no_wrap=True, overflow="ellipsis")
