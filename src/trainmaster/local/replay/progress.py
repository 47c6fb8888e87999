"""A bar on standard error while a replay runs, where that is a terminal; else nothing. It must not slow anything."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_STEPS = 200
"""How often a bar is moved at most: moving it takes longer than to play a job."""


class Bar:
    """A progress bar for one thing after the other; a context manager, so that the terminal is left as it was."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self._progress: Progress | None = None
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=console, transient=True)
        self._task: TaskID | None = None
        self._what = ""
        self._every = 1
        self._shown = 0

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()

    def begin(self, what: str, total: int | None) -> None:
        """Begin with the next thing; `total` None where nobody knows."""
        self._what, self._every, self._shown = what, max(1, (total or _STEPS) // _STEPS), 0
        if self._progress is not None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(what, total=total)

    def show(self, what: str, done: int, total: int | None) -> None:
        """So much of a thing is done; it begins when it is first told of."""
        if what != self._what:
            self.begin(what, total)
        self.at(done)

    def at(self, done: int) -> None:
        """So much of it is done."""
        if self._progress is not None and self._task is not None and done - self._shown >= self._every:
            self._shown = done
            self._progress.update(self._task, completed=done)
