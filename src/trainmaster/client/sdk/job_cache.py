"""Caches jobs that this process has looked up: their last views, for outages of the API, and their transitions."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainmaster.client.api.errors import NotFound, Unreachable
from trainmaster.client.views.states import WAITING
from trainmaster.client.views.wording import attempt_count
from trainmaster.domain.jobs.names import attempt_name

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.views.types import JobDetailView

_MAX_JOBS = 64
_Transitions = list[dict[str, Any]]


@dataclass
class JobCache:
    """The jobs that were looked up, newest last.

    During an outage of the API a cached job stays valid for up to `max_age_seconds`: a waiter that has waited for days
    must not fail because of a minute without responses.
    """

    api: ApiClient
    clock: Callable[[], float] = time.monotonic
    max_age_seconds: float = 900.0
    _views: OrderedDict[str, tuple[JobDetailView, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look_up(self, name: str) -> JobDetailView | None:
        """Return the current job from the API, None if the queue does not have it. Raises ApiError."""
        try:
            job = self.api.job(name)
        except NotFound:
            self.forget(name)
            return None
        except Unreachable as error:
            return self._cached_or_raise(name, error)
        self._store(name, job)
        return job

    def cached(self, name: str) -> JobDetailView | None:
        """Return the last view of the job of this name or with an attempt of this name, without an API call."""
        found = self.seen(name)
        return found[0] if found else None

    def seen(self, name: str) -> tuple[JobDetailView, float] | None:
        """Return the view as `cached` does, and the clock's time at which it was fetched."""
        with self._lock:
            if name in self._views:
                return self._views[name]
            return next((view for view in self._views.values() if name in attempt_names(view[0])), None)

    def _store(self, name: str, job: JobDetailView) -> None:
        with self._lock:
            self._views[name] = (job, self.clock())
            self._views.move_to_end(name)
            while len(self._views) > _MAX_JOBS:
                self._views.popitem(last=False)

    def forget(self, name: str) -> None:
        """Drop the job's view."""
        with self._lock:
            self._views.pop(name, None)

    def _cached_or_raise(self, name: str, error: Unreachable) -> JobDetailView:
        """Return the last view if it is recent enough; otherwise raise the error."""
        with self._lock:
            job, fetched_at = self._views.get(name, (None, 0.0))
        if job is None or self.clock() - fetched_at > self.max_age_seconds:
            raise error
        return job


def attempt_names(job: JobDetailView) -> list[str]:
    """Return the names of the job's attempts on SageMaker, oldest first, and of what the newest one continues as."""
    names = [attempt["trainingJobName"] for attempt in job["attempts"]]
    newest = job["trainingJobName"]
    return [*names, newest] if names and newest and newest not in names else names


def all_attempt_names(job: JobDetailView) -> list[str]:
    """Return the names of all the job's attempts, also of those that are not listed."""
    unlisted = range(1, attempt_count(job) - len(job["attempts"]) + 1)
    return [*(attempt_name(job["jobName"], number) for number in unlisted), *attempt_names(job)]


@dataclass
class TransitionLog:
    """The transitions of each job so far: those of earlier stages, and all. A stage is a training job or a wait.

    SDK 2 prints only transitions beyond those it has printed, so an attempt with a new list would print nothing.
    """

    _entries: OrderedDict[str, tuple[str, _Transitions, _Transitions]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def extend(self, job: JobDetailView, transitions: _Transitions) -> _Transitions:
        """Return the transitions of earlier stages, followed by those of the current stage so far.

        As at SageMaker, each but the last has an end.
        """
        stage = f"{attempt_count(job)} {job['jobState'] in WAITING} {job['trainingJobName']}"
        with self._lock:
            last_stage, earlier, latest = self._entries.pop(job["jobName"], (stage, [], []))
            earlier = earlier if stage == last_stage else latest
            self._entries[job["jobName"]] = (stage, earlier, earlier + transitions)
            while len(self._entries) > _MAX_JOBS:
                self._entries.popitem(last=False)
        found = earlier + transitions
        ends = [{"EndTime": following["StartTime"]} for following in found[1:]]
        return [end | each for end, each in zip([*ends, {}], found, strict=True)]
