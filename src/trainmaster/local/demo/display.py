"""How the demonstration looks: tables on standard output; on a terminal also a line that says what goes on.

It must not ask the queue anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status
from tabulate import tabulate

from trainmaster.local.demo.queue import Row


class Display:
    """Where the demonstration is told; a context manager, for the line that moves."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Status | None = self._console.status("") if self._console.is_terminal else None
        self._step = ""

    def __enter__(self) -> Self:
        """Begin to show what goes on."""
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        if self._status:
            self._status.stop()

    def step(self, text: str) -> None:
        """Say what is being done: in the moving line, or as a line of its own where nothing moves."""
        self._step = text
        if self._status:
            self._status.update(text)
        else:
            self._console.print(f"{text} ...", highlight=False)

    def states(self, jobs: Iterable[Row]) -> None:
        """Say behind the step how the jobs are."""
        if self._status:
            now = ", ".join(f"{job['jobName']} {job['jobState']}" for job in jobs)
            self._status.update(f"{self._step}  [dim]{now}[/dim]")

    def queue(self, caption: str, jobs: Iterable[Row]) -> None:
        """The article's table, with a sentence above."""
        rows = [[job["jobName"], job["jobState"], job["priority"]] for job in jobs]
        self._print_table(caption, tabulate(rows, headers=["Job Name", "State", "Priority"]))

    def show_text(self, caption: str) -> None:
        """A sentence that stays."""
        sys.stdout.write(f"{caption}\n")
        sys.stdout.flush()

    def training_jobs(self, caption: str, rows: Sequence[Sequence[object]]) -> None:
        """A table of training jobs."""
        self._print_table(caption, tabulate(rows, headers=["Training Job", "Instances", "Status"]))

    def attempts(self, caption: str, rows: Sequence[Sequence[object]]) -> None:
        """A table of every attempt."""
        self._print_table(caption, tabulate(rows, headers=["Job Name", "Attempt", "Training Job", "Outcome", "Steps"]))

    def _print_table(self, caption: str, table: str) -> None:
        sys.stdout.write(f"\n{caption}\n\n{table}\n")
        sys.stdout.flush()
