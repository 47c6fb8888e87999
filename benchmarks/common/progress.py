"""Progress bars of the sections of a benchmark."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

S = TypeVar("S")
T = TypeVar("T")


class ProgressBars:
    """Progress bars on a console, one for each section."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, TextColumn("[dim]{task.fields[at]}"), console=console)
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, section: str) -> None:
        """Begin a section, and finish the one before."""
        self._finish()
        self._task = self._progress.add_task(section, total=None, at="")

    def update(self, what: str) -> None:
        """Show the current step."""
        self._progress.update(self._task, at=what)

    def prefixed(self, prefix: str) -> Callable[[str], None]:
        """Return a function that shows a step with a prefix."""
        return lambda what: self.update(f"{prefix}: {what}")

    def counting(self, prefix: str) -> Callable[[int], None]:
        """Return a function that shows how many jobs have ended."""
        return lambda count: self.update(f"{prefix}: {count} ended")

    def over(self, things: Sequence[T]) -> Iterator[T]:
        """Yield the items, and advance the bar after each."""
        self._progress.update(self._task, total=len(things), completed=0)
        for thing in things:
            self.update(str(thing))
            yield thing
            self._progress.advance(self._task)

    def over_cores(self, work: Callable[[S], T], things: Sequence[S], processes: int | None) -> Iterator[T]:
        """Yield the results of `work` in order, and advance the bar after each; processes work in parallel."""
        self._progress.update(self._task, total=len(things), completed=0)
        # Spawn: a fork of a process with threads, such as the bar's, may hang (Python library, multiprocessing).
        with multiprocessing.get_context("spawn").Pool(processes, logging.disable, (logging.CRITICAL,)) as pool:
            for result in pool.imap(work, things):
                yield result
                self._progress.advance(self._task)

    def _finish(self) -> None:
        for task in self._progress.tasks:
            if not task.finished:
                self._progress.update(task.id, total=task.total or 1, completed=task.total or 1, at="")
