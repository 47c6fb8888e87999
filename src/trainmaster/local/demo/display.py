"""Output of the demo: tables on standard output, and a status line on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status
from tabulate import tabulate

from trainmaster.local.demo.queue import Row

if TYPE_CHECKING:
    from typing_extensions import Self


class Display:
    """The output of the demo; a context manager, because of the moving status line on a terminal."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Status | None = self._console.status("") if self._console.is_terminal else None
        self._step = ""

    def __enter__(self) -> Self:
        """Start the status line."""
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the status line."""
        if self._status:
            self._status.stop()

    def step(self, text: str) -> None:
        """Show the current step: in the status line, or on a line of its own without a terminal."""
        self._step = text
        if self._status:
            self._status.update(text)
        else:
            self._console.print(f"{text} ...", highlight=False)

    def states(self, jobs: Iterable[Row]) -> None:
        """Add the states of the jobs to the status line."""
        if self._status:
            now = ", ".join(f"{job['jobName']} {job['jobState']}" for job in jobs)
            self._status.update(f"{self._step}  [dim]{now}[/dim]")

    def queue(self, caption: str, jobs: Iterable[Row]) -> None:
        """Print the article's table below a caption."""
        rows = [[job["jobName"], job["jobState"], job["priority"]] for job in jobs]
        self._print_table(caption, tabulate(rows, headers=["Job Name", "State", "Priority"]))

    def show_text(self, caption: str) -> None:
        """Print a line of text."""
        sys.stdout.write(f"{caption}\n")
        sys.stdout.flush()

    def training_jobs(self, caption: str, rows: Sequence[Sequence[object]]) -> None:
        """Print a table of training jobs below a caption."""
        self._print_table(caption, tabulate(rows, headers=["Training Job", "Instances", "Status"]))

    def attempts(self, caption: str, rows: Sequence[Sequence[object]]) -> None:
        """Print a table of attempts below a caption."""
        self._print_table(caption, tabulate(rows, headers=["Job Name", "Attempt", "Training Job", "Outcome", "Steps"]))

    def _print_table(self, caption: str, table: str) -> None:
        sys.stdout.write(f"\n{caption}\n\n{table}\n")
        sys.stdout.flush()
