"""Waits while a job is in the queue, and shows how it gets on.

It must not follow a job that runs: that is the SDK's business. Clock and sleep are given.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from trainmaster.client.views.jobs import WAITING
from trainmaster.client.views.wording import sentence_of

if TYPE_CHECKING:
    from trainmaster.client.sdk.job_cache import KnownJobs
    from trainmaster.client.views.jobs import JobView

_ERASE = "\r\x1b[2K"
_IN_QUEUE = WAITING | {"starting"}


@dataclass
class Progress:
    """Tells how a waiting job gets on: one line that changes on a terminal, otherwise a line for each change.

    `stream` None is standard output as it is at that moment (notebooks and rich replace it). An estimate that only
    drifts is told again at most every `seconds_between`.
    """

    stream: TextIO | None = None
    in_place: bool | None = None
    clock: Callable[[], float] = time.monotonic
    seconds_between: float = 60.0
    _last: tuple[object, ...] = ()
    _told_at: float = float("-inf")
    _open: bool = False

    def __call__(self, job: JobView) -> None:
        """Tell the job's state if it waits; of one that does not, nothing."""
        if job["jobState"] not in _IN_QUEUE:
            self.finish()
        elif self._is_news(job):
            self._tell(f"{job['jobName']}: {sentence_of(job)}")

    def finish(self) -> None:
        """End a line that was being changed."""
        if self._open:
            self._write("\n")
            self._open = False

    def _is_news(self, job: JobView) -> bool:
        what = (
            job["jobName"],
            job["jobState"],
            job["position"],
            job["positionAtLeast"],
            job["reason"]["type"] if job["reason"] else None,
        )
        now = self.clock()
        drifted = self._updates() or now - self._told_at >= self.seconds_between
        if what == self._last[:-1] and (not drifted or self._last[-1] == job["estimatedStart"]):
            return False
        self._last, self._told_at = (*what, job["estimatedStart"]), now
        return True

    def _tell(self, text: str) -> None:
        self._open = self._updates()
        self._write(_ERASE + text if self._open else text + "\n")

    def _updates(self) -> bool:
        return self._out().isatty() if self.in_place is None else self.in_place

    def _out(self) -> TextIO:
        return self.stream or sys.stdout

    def _write(self, text: str) -> None:
        out = self._out()
        out.write(text)
        out.flush()


@dataclass
class QueueWait:
    """Waits until a job has left the queue, asking again every `poll_seconds` and telling `show` each time.

    Each question reads what a pass reads, so a wait that has become long asks less often: every
    `patient_poll_seconds` once `patient_after_seconds` have gone by.
    """

    known: KnownJobs
    show: Callable[[JobView], None]
    poll_seconds: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    patient_poll_seconds: float = 30.0
    patient_after_seconds: float = 600.0

    def wait(self, name: str, timeout_seconds: float | None = None) -> float:
        """Return when the job is no longer in the queue (or never was, or the time is up), with the seconds it took.

        Raises ApiError when the queue cannot be asked for longer than `known` bears with.
        """
        begun = self.clock()
        while (job := self.known.look_up(name)) is not None:
            self.show(job)
            spent = self.clock() - begun
            if job["jobState"] not in _IN_QUEUE or (timeout_seconds is not None and spent >= timeout_seconds):
                break
            patient = spent >= self.patient_after_seconds
            self.sleep(max(self.poll_seconds, self.patient_poll_seconds) if patient else self.poll_seconds)
        return self.clock() - begun
