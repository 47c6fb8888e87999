"""Waits while a job is in the queue and shows its progress. The SDK follows the job once it runs."""

from __future__ import annotations

import shutil
import sys
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from trainmaster.client.views.changes import JobChanges
from trainmaster.client.views.states import WAITING
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.client.sdk.job_cache import JobCache
    from trainmaster.client.views.types import JobView

_ERASE = "\r\x1b[2K"
_IN_QUEUE = WAITING | {"starting"}


@dataclass
class Progress:
    """Shows the progress of a waiting job: a line per state, redrawn on a terminal, else a line per change.

    If `stream` is None, output goes to the current standard output (notebooks and rich replace it). On a terminal, a
    line is cut to the terminal's width, since only one that does not wrap can be redrawn. `JobChanges` defines a
    change.
    """

    stream: TextIO | None = None
    in_place: bool | None = None
    clock: Callable[[], float] = time.monotonic
    columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns
    _changes: JobChanges = field(init=False)
    _drawn: str = ""
    _state: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        self._changes = JobChanges(self.clock)

    def __call__(self, job: JobView) -> None:
        """Show the job's state if it is in the queue; otherwise end the line."""
        if job["jobState"] not in _IN_QUEUE:
            self.finish()
            return
        text = f"{one_line(job['jobName'])}: {sentence_of(job)}"
        if self._redraws():
            self._redraw(job, cut(text, self.columns() - 1))
        elif self._changes.is_due(job):
            self._write(text + "\n")

    def finish(self) -> None:
        """End a line that is being redrawn."""
        if self._drawn:
            self._write("\n")
            self._drawn = ""

    def _redraw(self, job: JobView, text: str) -> None:
        """Replace the last line of the same state by the text."""
        state = (job["jobName"], job["jobState"])
        if state != self._state:
            self.finish()
            self._state = state
        if text != self._drawn:
            self._write(_ERASE + text)
            self._drawn = text

    def _redraws(self) -> bool:
        return self._out().isatty() if self.in_place is None else self.in_place

    def _out(self) -> TextIO:
        return self.stream or sys.stdout

    def _write(self, text: str) -> None:
        _write(text, self._out())


def print_line(text: str, stream: TextIO | None = None) -> None:
    """Write a line to the stream; None for the current standard output."""
    _write(text + "\n", stream or sys.stdout)


def _write(text: str, out: TextIO) -> None:
    out.write(text)
    out.flush()


@dataclass
class SteadyMessage:
    """The status message of jobs that wait, for an SDK that prints each change of it: as rare as a line of a log."""

    clock: Callable[[], float] = time.monotonic
    _changes: JobChanges = field(init=False)
    _last: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._changes = JobChanges(self.clock)

    def __call__(self, job: JobView) -> str:
        """Return the job's sentence as of its last change."""
        if self._changes.is_due(job):
            self._last[job["jobName"]] = sentence_of(job)
        return self._last[job["jobName"]]


def cut(text: str, columns: int) -> str:
    """Return the text cut to so many columns of a terminal, with an ellipsis if it is cut."""
    if sum(map(_width, text)) <= columns:
        return text
    used, kept = 1, []
    for character in text:
        used += _width(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept) + "\N{HORIZONTAL ELLIPSIS}"


def _width(character: str) -> int:
    """Return the columns of a character: wide ones, such as Chinese, take two."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass
class QueueWait:
    """Waits until a job has left the queue: looks it up every `poll_seconds` and passes it to `show`.

    Each look-up reads as much as a pass does, so after `slow_after_seconds` the interval becomes `slow_poll_seconds`.
    """

    cache: JobCache
    show: Callable[[JobView], None]
    poll_seconds: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    slow_poll_seconds: float = 30.0
    slow_after_seconds: float = 600.0

    def wait(self, name: str, timeout_seconds: float | None = None) -> float:
        """Return when the job is not in the queue (or the time is up), with the seconds waited.

        Raises ApiError if the API is unavailable for longer than the cache tolerates.
        """
        started = self.clock()
        while (job := self.cache.look_up(name)) is not None:
            self.show(job)
            elapsed = self.clock() - started
            if job["jobState"] not in _IN_QUEUE or (timeout_seconds is not None and elapsed >= timeout_seconds):
                break
            slow = elapsed >= self.slow_after_seconds
            self.sleep(max(self.poll_seconds, self.slow_poll_seconds) if slow else self.poll_seconds)
        return self.clock() - started
