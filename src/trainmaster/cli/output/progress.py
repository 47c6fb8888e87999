"""What a person sees while jobs are waited for: a line each that changes on a terminal, elsewhere a line per change.

It must not ask the API or sleep: it is given views and shows them, on standard error, so that output stays data.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from trainmaster.cli.output.outlook import starts_in
from trainmaster.cli.output.render import position_of, text_of
from trainmaster.client.views.jobs import ENDED
from trainmaster.client.views.wording import sentence_of, tries
from trainmaster.domain.text import one_line
from trainmaster.images.cli.requests import done_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.constrain import Constrain
    from rich.table import Table
    from rich.text import Text

    from trainmaster.cli.common.context import Tools
    from trainmaster.client.views.jobs import JobView

_HEADINGS = ("", "Job Name", "State", "Position", "Starts", "Attempts", "Reason")
_BAR_WIDTH = 20
_STYLES = {"completed": "green", "failed": "red", "stopped": "red", "cancelled": "red", "running": "green"}


class Display(AbstractContextManager["Display"], Protocol):
    """Shows jobs until the `with` ends."""

    def show(self, jobs: Sequence[JobView]) -> None:
        """The jobs as they are now."""


def display_for(tools: Tools) -> Display:
    """The display that fits standard error."""
    if not tools.is_terminal(sys.stderr):
        return Lines(sys.stderr)
    from rich.console import Console

    return Moving(Console(stderr=True, no_color=not tools.colours(sys.stderr)), tools.now)


def told(job: JobView) -> str:
    """A job in one line: name, state, and what becomes of it."""
    attempts = tries(job)
    return one_line(f"{job['jobName']}: {sentence_of(job)}") + (f" Attempt {attempts}." if attempts > 1 else "")


class Lines:
    """A line for each change of a job, for logs; an estimate that merely drifts is no change."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last: dict[str, tuple[object, ...]] = {}

    def __enter__(self) -> Self:
        """Nothing to begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def show(self, jobs: Sequence[JobView]) -> None:
        """Write a line for each job that has changed since."""
        for job in jobs:
            news = (job["jobState"], position_of(job), text_of(job["reason"]), tries(job), done_of(job))
            if self._last.get(job["jobName"]) != news:
                self._last[job["jobName"]] = news
                print(told(job), file=self._stream, flush=True)


class Moving:
    """A table on a terminal that is drawn in place and vanishes at the end."""

    def __init__(self, console: Console, now: Callable[[], datetime]) -> None:
        from rich.live import Live

        self._now = now
        self._live = Live(console=console, refresh_per_second=8, transient=True)
        self._spinners: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe it and give the cursor back."""
        self._live.stop()

    def show(self, jobs: Sequence[JobView]) -> None:
        """Draw the jobs."""
        self._live.update(self.picture(jobs), refresh=True)

    def picture(self, jobs: Sequence[JobView]) -> Constrain:
        """The jobs as a table that leaves some columns free.

        A terminal echoes Ctrl-C as `^C`: in a full line that would wrap, and the wiping miss a line.
        """
        from rich.constrain import Constrain

        return Constrain(self._table(jobs), self._live.console.width - len("^C") - 1)

    def _table(self, jobs: Sequence[JobView]) -> Table:
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
        with_bars = any(job.get("image") for job in jobs)
        for heading in (*_HEADINGS, *(["Regions", ""] if with_bars else [])):
            # Where room is short, those that may wrap give way; their cells are cut instead.
            table.add_column(heading, no_wrap=heading not in ("Job Name", "Reason"))
        for job in jobs:
            table.add_row(self._mark(job), *_cells(job, self._now()), *(_bar(job) if with_bars else []))
        return table

    def _mark(self, job: JobView) -> Any:
        """A spinner that goes on through redraws; a mark for a job that has ended."""
        from rich.spinner import Spinner

        if job["jobState"] in ENDED:
            return _text("✓" if job["jobState"] == "completed" else "✗", _STYLES[job["jobState"]])
        return self._spinners.setdefault(job["jobName"], Spinner("dots"))


def _cells(job: JobView, now: datetime) -> list[Text]:
    return [
        _text(job["jobName"]),
        _text(job["jobState"], _STYLES.get(job["jobState"], "yellow")),
        _text(position_of(job)),
        _text(starts_in(job, now)),
        _text(str(tries(job) or "")),
        _text(text_of(job["reason"]) or job["failureReason"] or "", "dim"),
    ]


def _bar(job: JobView) -> list[Any]:
    """How far an image job's regions are: a bar, and in figures; nothing for other jobs."""
    from rich.progress_bar import ProgressBar

    image = job.get("image")
    if image is None:
        return [_text(""), _text("")]
    regions = image["regions"]
    done = regions["done"] + regions["failed"]
    return [ProgressBar(total=regions["total"], completed=done, width=_BAR_WIDTH), _text(done_of(job))]


def _text(content: str, style: str = "") -> Text:
    """A cell that is cut rather than wrapped, and never read as markup."""
    from rich.text import Text

    return Text(content, style=style, no_wrap=True, overflow="ellipsis")
