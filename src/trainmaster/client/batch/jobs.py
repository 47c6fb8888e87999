"""Finds jobs for clients that poll: few jobs one by one, many from pages of all active jobs that are kept for seconds.

SageMaker's SDK describes each job every 5 seconds. For a sweep of hundreds, that would be more requests than the API
admits.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from trainmaster.client.api.errors import NotFound, Unreachable
from trainmaster.client.kinds import is_training_job
from trainmaster.client.views.states import ENDED, WAITING

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView, JobView

_ACTIVE = ("starting", "running", "preempting", "resizing", *sorted(WAITING))
_PAGE_SIZE = 100
_FRESH_SECONDS = 3.0
"""Age up to which the pages are used; below the 5 seconds between two polls of the SDK."""
_RECENT_SECONDS = 10.0
"""Time for which a job counts as polled."""
_FEW_JOBS = 3
"""Number of polled jobs up to which each is asked for by itself."""
_MAX_KNOWN = 2048
_MAX_AGE_SECONDS = 900.0
"""Age up to which a job is answered from memory while the API does not respond."""


@dataclass
class PolledJobs:
    """The jobs that a client follows. All methods raise ApiError and are thread-safe: pollers share one request."""

    api: ApiClient
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[str, tuple[JobDetailView, float]] = field(default_factory=OrderedDict)
    _polled: dict[str, float] = field(default_factory=dict)
    _active: tuple[float, dict[str, JobView]] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def find(self, name: str) -> JobDetailView | None:
        """Return the training job of this name; None if the queue has none."""
        with self._lock:
            try:
                job = self._find(name)
            except NotFound:
                self._known.pop(name, None)
                return None
            except Unreachable:
                known, at = self._known.get(name, (None, 0.0))
                if known is None or self.clock() - at > _MAX_AGE_SECONDS:
                    raise
                return known
        return job if is_training_job(cast("JobView", job)) else None

    def active(self) -> list[JobView]:
        """Return all training jobs that have not ended, as of a few seconds ago at most."""
        with self._lock:
            return list(self._read_active().values())

    def add(self, job: JobView, request: dict[str, Any]) -> None:
        """Remember a job that was just submitted with this request."""
        detail: Any = {**job, "history": [], "jobDetails": request, "redacted": [], "why": None}
        with self._lock:
            self._active = None
            self._keep(detail)

    def forget(self, name: str) -> None:
        """Have the job read again, since it was changed."""
        with self._lock:
            self._active = None
            self._known.pop(name, None)

    def _find(self, name: str) -> JobDetailView:
        known = self._known.get(name, (None, 0.0))[0]
        if known is not None and known["jobState"] in ENDED:
            return known
        if known is not None and self._are_many(name) and (view := self._read_active().get(name)) is not None:
            return self._keep(cast("JobDetailView", {**known, **view}))
        return self._keep(self.api.job(name))

    def _are_many(self, name: str) -> bool:
        """Note that the job is polled; return whether all pages are fewer requests than the polled jobs are."""
        now = self.clock()
        self._polled = {each: at for each, at in self._polled.items() if now - at < _RECENT_SECONDS} | {name: now}
        pages = len(self._active[1]) // _PAGE_SIZE + 1 if self._active else 1
        return len(self._polled) > max(_FEW_JOBS, pages)

    def _read_active(self) -> dict[str, JobView]:
        if self._active is None or self.clock() - self._active[0] >= _FRESH_SECONDS:
            jobs = {job["jobName"]: job for job in self._pages() if is_training_job(job)}
            self._active = (self.clock(), jobs)
        return self._active[1]

    def _pages(self) -> list[JobView]:
        jobs: list[JobView] = []
        cursor: str | None = None
        while True:
            page = self.api.jobs(_ACTIVE, limit=_PAGE_SIZE, cursor=cursor)
            jobs += page["jobs"]
            cursor = page["nextCursor"]
            if cursor is None:
                return jobs

    def _keep(self, job: JobDetailView) -> JobDetailView:
        self._known[job["jobName"]] = (job, self.clock())
        self._known.move_to_end(job["jobName"])
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return job
