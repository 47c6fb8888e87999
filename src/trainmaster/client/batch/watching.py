"""Waits for a job and shows its position, its reason and estimated start while it waits, and its logs while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, cast

from trainmaster.client.api.errors import Forbidden, Unreachable
from trainmaster.client.logs import LogReader, host_of
from trainmaster.client.sdk.job_cache import attempt_names
from trainmaster.client.sdk.waiting import Progress, print_line
from trainmaster.client.views.states import ENDED, WAITING
from trainmaster.client.views.wording import sentence_of
from trainmaster.domain.text import one_line

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobDetailView, JobView


@dataclass
class AttemptLogLines:
    """Prints what the containers of all attempts of a job write, each line once; `client` is of CloudWatch Logs.

    Waiting goes on without logs for callers who may not read them.
    """

    client: Callable[[], Any]
    stream: TextIO | None = None
    _reader: LogReader | None = None
    _is_denied: bool = False

    def __call__(self, job: JobDetailView) -> None:
        """Print the new lines."""
        if self._is_denied or not job["attempts"]:
            return
        try:
            for name in attempt_names(job):
                self._print(name)
        except Forbidden as error:
            self._is_denied = True
            print_line(f"{one_line(job['jobName'])}: no logs are shown. {error}", self.stream)
        except Unreachable:
            return  # the next call prints these lines

    def _print(self, training_job: str) -> None:
        self._reader = self._reader or LogReader(self.client())
        for stream in self._reader.streams(training_job):
            for line in self._reader.unread(stream):
                print_line(f"[{host_of(stream)}] {line.text.rstrip()}", self.stream)


@dataclass
class JobWatch:
    """Waits for the end of a job of the queue.

    Attributes:
        find: returns a job, None if it was purged.
        logs: prints the new lines of a job's logs.
        progress: shows jobs that wait.
        stream: where other changes of the job are printed; None for the current standard output.
    """

    find: Callable[[str], JobDetailView | None]
    logs: Callable[[JobDetailView], None]
    progress: Progress = field(default_factory=Progress)
    stream: TextIO | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _state: str | None = None

    def wait(self, name: str, timeout_seconds: float | None = None, poll_seconds: float = 5.0) -> None:
        """Return when the job has ended or the time is up. Raises ApiError."""
        end = None if timeout_seconds is None else self.clock() + timeout_seconds
        try:
            while (job := self.find(name)) is not None and not self._has_ended(job):
                if end is not None and self.clock() >= end:
                    return
                self.sleep(poll_seconds)
        finally:
            self.progress.finish()
        if job is not None and job["attempts"]:
            self.sleep(poll_seconds)  # the last lines reach CloudWatch Logs after the end
            self.logs(job)

    def _has_ended(self, job: JobDetailView) -> bool:
        """Show the job; return whether it has ended."""
        view = cast("JobView", job)
        self.progress(view)
        if job["jobState"] != self._state and job["jobState"] not in (*WAITING, "starting"):
            print_line(f"{one_line(job['jobName'])}: {sentence_of(view)}", self.stream)
        self._state = job["jobState"]
        self.logs(job)
        return job["jobState"] in ENDED
