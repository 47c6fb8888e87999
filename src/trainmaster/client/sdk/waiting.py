"""Waits while a job is in the queue and shows its progress. The SDK follows the job once it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

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
    """Shows the progress of a waiting job: one line redrawn on a terminal, else a line per change.

    If `stream` is None, output goes to the current standard output (notebooks and rich replace it). An estimate that
    only drifts is shown at most every `min_interval_seconds`.
    """

    stream: TextIO | None = None
    in_place: bool | None = None
    clock: Callable[[], float] = time.monotonic
    min_interval_seconds: float = 60.0
    _last: tuple[object, ...] = ()
    _shown_at: float = float("-inf")
    _line_is_open: bool = False

    def __call__(self, job: JobView) -> None:
        """Show the job's state if it is in the queue; otherwise end the line."""
        if job["jobState"] not in _IN_QUEUE:
            self.finish()
        elif self._has_changed(job):
            self._show(f"{one_line(job['jobName'])}: {sentence_of(job)}")

    def finish(self) -> None:
        """End a line that is being redrawn."""
        if self._line_is_open:
            self._write("\n")
            self._line_is_open = False

    def _has_changed(self, job: JobView) -> bool:
        key = (
            job["jobName"],
            job["jobState"],
            job["position"],
            job["positionAtLeast"],
            job["reason"]["type"] if job["reason"] else None,
        )
        now = self.clock()
        drifted = self._redraws() or now - self._shown_at >= self.min_interval_seconds
        if key == self._last[:-1] and (not drifted or self._last[-1] == job["estimatedStart"]):
            return False
        self._last, self._shown_at = (*key, job["estimatedStart"]), now
        return True

    def _show(self, text: str) -> None:
        self._line_is_open = self._redraws()
        self._write(_ERASE + text if self._line_is_open else text + "\n")

    def _redraws(self) -> bool:
        return self._out().isatty() if self.in_place is None else self.in_place

    def _out(self) -> TextIO:
        return self.stream or sys.stdout

    def _write(self, text: str) -> None:
        out = self._out()
        out.write(text)
        out.flush()


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
