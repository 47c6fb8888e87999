"""A progress bar on standard error during a replay, if that is a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from typing_extensions import Self


_STEPS = 200
"""Maximum updates of a bar: an update takes longer than replaying a job."""


class Bar:
    """A progress bar for consecutive steps; a context manager that restores the terminal."""

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
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def begin(self, what: str, total: int | None) -> None:
        """Begin the next step; `total` is None if it is unknown."""
        self._what, self._every, self._shown = what, max(1, (total or _STEPS) // _STEPS), 0
        if self._progress is not None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(what, total=total)

    def show(self, what: str, done: int, total: int | None) -> None:
        """Show the progress of a step, beginning it if it is not the current one."""
        if what != self._what:
            self.begin(what, total)
        self.at(done)

    def at(self, done: int) -> None:
        """Set the progress of the current step."""
        if self._progress is not None and self._task is not None and done - self._shown >= self._every:
            self._shown = done
            self._progress.update(self._task, completed=done)
