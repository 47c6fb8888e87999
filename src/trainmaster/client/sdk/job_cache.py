"""What this process knows of the queue's jobs: the last view of each, and for how long it may be relied on.

It asks the API and must not change anything there. Clock is given; memory is bounded.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainmaster.client.api.errors import NotFound, Unreachable

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.jobs import JobDetail

_MOST = 64


@dataclass
class KnownJobs:
    """The jobs that were asked for, newest last.

    A job that is known stays known through an outage of the API of up to `patience_seconds`: a waiter that has waited
    for days must not fail because a minute of answers is missing.
    """

    api: ApiClient
    clock: Callable[[], float] = time.monotonic
    patience_seconds: float = 900.0
    _views: OrderedDict[str, tuple[JobDetail, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look_up(self, name: str) -> JobDetail | None:
        """The job as it is now, None if the queue does not know it. Raises ApiError."""
        try:
            job = self.api.job(name)
        except NotFound:
            self._forget(name)
            return None
        except Unreachable as error:
            return self._still_good(name, error)
        self._keep(name, job)
        return job

    def remembered(self, name: str) -> JobDetail | None:
        """The last view of the job that has this name or an attempt of this name, without asking the API."""
        with self._lock:
            if name in self._views:
                return self._views[name][0]
            return next((job for job, _ in self._views.values() if name in attempt_names(job)), None)

    def _keep(self, name: str, job: JobDetail) -> None:
        with self._lock:
            self._views[name] = (job, self.clock())
            self._views.move_to_end(name)
            while len(self._views) > _MOST:
                self._views.popitem(last=False)

    def _forget(self, name: str) -> None:
        with self._lock:
            self._views.pop(name, None)

    def _still_good(self, name: str, error: Unreachable) -> JobDetail:
        """The last view, if it is young enough; otherwise the error is the answer."""
        with self._lock:
            job, seen = self._views.get(name, (None, 0.0))
        if job is None or self.clock() - seen > self.patience_seconds:
            raise error
        return job


def attempt_names(job: JobDetail) -> list[str]:
    """The names under which SageMaker knows the job, oldest first."""
    return [attempt["trainingJobName"] for attempt in job["attempts"]]
