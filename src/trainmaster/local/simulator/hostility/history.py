"""The training jobs as they were, for reads that lag behind."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from trainmaster.local.simulator.service.job import TrainingJob, WarmPool

Version = tuple[datetime, TrainingJob | None]
"""A training job from that time on; None once it is deleted."""


class History:
    """Earlier versions of training jobs; versions older than the maximum lag are dropped.

    Args:
        jobs: the training jobs as they are.
    """

    def __init__(self, jobs: Mapping[str, TrainingJob]) -> None:
        self._jobs = jobs
        self._versions: dict[str, deque[Version]] = {}
        self._recorded: deque[tuple[datetime, str]] = deque()

    def record(self, name: str, now: datetime) -> None:
        """Add the current version of a training job."""
        job = self._jobs.get(name)
        self._versions.setdefault(name, deque()).append((now, None if job is None else _copied(job)))
        self._recorded.append((now, name))

    def keep(self, name: str, now: datetime) -> None:
        """Add the version before a change, if it was dropped because time no longer changed it."""
        if name in self._jobs and name not in self._versions:
            self.record(name, self._jobs[name].created)
            self._recorded[-1] = (now, name)

    def prune(self, horizon: datetime) -> None:
        """Drop the versions that no read at or after this time returns."""
        while self._recorded and self._recorded[0][0] < horizon:
            _, name = self._recorded.popleft()
            versions = self._versions.get(name)
            while versions and len(versions) > 1 and versions[1][0] <= horizon:
                versions.popleft()
            if versions and len(versions) == 1 and settled(versions[0][1]):
                del self._versions[name]

    def job_at(self, name: str, time: datetime) -> TrainingJob | None:
        """Return a training job as it was at this time; None if it did not exist."""
        versions = self._versions.get(name)
        if not versions:
            return _if_created(self._jobs.get(name), time)
        for since, job in reversed(versions):
            if since <= time:
                return job
        return _if_created(versions[0][1], time)

    def is_stale(self, time: datetime) -> bool:
        """Return whether any training job has changed since this time."""
        return bool(self._recorded) and self._recorded[-1][0] > time

    def is_job_stale(self, name: str, time: datetime) -> bool:
        """Return whether a training job has changed since this time."""
        versions = self._versions.get(name)
        return versions is not None and bool(versions) and versions[-1][0] > time

    def jobs_at(self, time: datetime) -> Iterator[TrainingJob]:
        """Yield all training jobs as they were at this time."""
        for name in {**self._jobs, **self._versions}:
            job = self.job_at(name, time)
            if job is not None:
                yield job


def settled(job: TrainingJob | None) -> bool:
    """Return True if a training job is deleted, or has ended without a warm pool: time changes it no more."""
    return job is None or (job.terminal and job.warm_pool is not WarmPool.AVAILABLE)


def _if_created(job: TrainingJob | None, time: datetime) -> TrainingJob | None:
    return job if job is not None and job.created <= time else None


def _copied(job: TrainingJob) -> TrainingJob:
    version = copy.copy(job)
    version.transitions = [replace(transition) for transition in job.transitions]
    version.tags = dict(job.tags)
    return version
