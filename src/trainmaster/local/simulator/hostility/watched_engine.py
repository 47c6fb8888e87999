"""The ideal engine, with a report of each training job that has changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from trainmaster.local.simulator.hostility.history import settled
from trainmaster.local.simulator.service.engine import Engine, Request, Response
from trainmaster.local.simulator.service.job import Stage, TrainingJob, WarmPool

READS = frozenset({"DescribeTrainingJob", "DescribeTrainingPlan", "ListTrainingJobs", "ListTags"})


class Mark(NamedTuple):
    """The parts of a training job that change with any visible part of it, except its tags."""

    stage: Stage
    stage_number: int
    status: str
    keep_alive: int
    warm_pool: WarmPool | None
    last_modified: datetime


OnCall = Callable[[str, datetime], None]
"""Called with the name of a training job before a call that may change it, and the time."""
OnChange = Callable[[str, Mark | None, datetime], None]
"""Called with the name of a training job, its mark before the change, and the time."""


class WatchedEngine(Engine):
    """An engine over the state of another one; both may be used in turn.

    Args:
        ideal: the other engine.
        on_call: called before each call that may change a training job.
        on_change: called after each change of a training job.
    """

    def __init__(self, ideal: Engine, on_call: OnCall, on_change: OnChange) -> None:
        super().__init__(ideal.state, ideal.account, ideal.profile_for)
        self.operations = ideal.operations
        self._on_call = on_call
        self._on_change = on_change
        self._marks = {name: _mark(job) for name, job in self.state.jobs.items() if not settled(job)}

    def call(self, operation: str, request: Request, now: datetime) -> Response:
        """Carry out one operation. Raises `ApiError`, in which case nothing has changed."""
        if operation in READS:
            return super().call(operation, request, now)
        name = request.get("TrainingJobName") or request["ResourceArn"].rpartition("/")[2]
        self._on_call(name, now)
        answer = super().call(operation, request, now)
        self._report(now, name)
        return answer

    def step(self, now: datetime) -> bool:
        """Run the first timer that is due; return False if none is."""
        stepped = super().step(now)
        if stepped:
            self._report(now)
        return stepped

    def exited(self, name: str, run: int, failure: str | None, now: datetime) -> None:
        """Process the exit of a command."""
        super().exited(name, run, failure, now)
        self._report(now)

    def interrupt(self, name: str, now: datetime) -> None:
        """Interrupt a spot job. Raises `ValueError` if it has no running instances."""
        super().interrupt(name, now)
        self._report(now)

    def capacity_changed(self, now: datetime) -> None:
        """Retry the jobs that wait for capacity."""
        super().capacity_changed(now)
        self._report(now)

    def _report(self, now: datetime, called: str | None = None) -> None:
        """Report the jobs whose marks have changed, and the job of a call."""
        jobs = self.state.jobs
        changed = [name for name, mark in self._marks.items() if name not in jobs or _mark(jobs[name]) != mark]
        if called is not None and called not in changed:
            changed.append(called)
        for name in changed:
            self._on_change(name, self._marks.get(name), now)
            job = jobs.get(name)
            if job is None or settled(job):
                self._marks.pop(name, None)
            else:
                self._marks[name] = _mark(job)


def _mark(job: TrainingJob) -> Mark:
    return Mark(job.stage, job.stage_number, job.status, job.keep_alive, job.warm_pool, job.last_modified)
