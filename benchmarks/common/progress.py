"""Progress bars: which section runs, how far it has come, and what it is at. It must not know any section."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

S = TypeVar("S")
T = TypeVar("T")


class Watch:
    """Bars on a console, one for each section."""

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
        """Another section; the one before is done."""
        self._finish()
        self._task = self._progress.add_task(section, total=None, at="")

    def say(self, what: str) -> None:
        """What the section is at."""
        self._progress.update(self._task, at=what)

    def about(self, whom: str) -> Callable[[str], None]:
        """A way to say what is being done to somebody."""
        return lambda what: self.say(f"{whom}: {what}")

    def counting(self, whom: str) -> Callable[[int], None]:
        """A way to say how many are done."""
        return lambda count: self.say(f"{whom}: {count} ended")

    def over(self, things: Sequence[T]) -> Iterator[T]:
        """The things, one step of the bar for each."""
        self._progress.update(self._task, total=len(things), completed=0)
        for thing in things:
            self.say(str(thing))
            yield thing
            self._progress.advance(self._task)

    def over_cores(self, work: Callable[[S], T], things: Sequence[S], processes: int | None) -> Iterator[T]:
        """What the work makes of each thing, in order, one step of the bar for each; so many processes at once."""
        self._progress.update(self._task, total=len(things), completed=0)
        # By spawning: a fork of a process with threads (the bar's) may hang (Python's library, multiprocessing).
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for result in pool.imap(work, things):
                yield result
                self._progress.advance(self._task)

    def _finish(self) -> None:
        for task in self._progress.tasks:
            if not task.finished:
                self._progress.update(task.id, total=task.total or 1, completed=task.total or 1, at="")
