"""Resize jobs of any framework: stop the attempt with time to checkpoint, and continue as another one.

Every pass stops and launches attempts of any job anyway; this hook only ends a growth for which SageMaker accepts the
training job but provides no instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.launch import stop
from trainmaster.service.observe import poll

SIGTERM_TO_SIGKILL = timedelta(seconds=120)
"""The time that SageMaker gives a stopped training job to save its work (StopTrainingJob)."""


@dataclass(frozen=True, slots=True)
class RestartHook:
    """Implements `ports.ResizeHook`."""

    context: ManagerContext

    def advance(self, job: Job, *, retry: bool) -> Job:  # noqa: ARG002 -- part of the protocol
        """Return a growth that has not started in time to the size before it; see `ports.ResizeHook.advance`."""
        if not self._is_overdue(job):
            return job
        # The event of its start may have been lost.
        polled = poll(self.context, job)
        if not self._is_overdue(polled):
            return polled
        now = self.context.clock.now()
        smaller = lifecycle.abandon_resize(polled, now, "SageMaker did not provide the instances in time")
        stored = commit(self.context, polled, smaller)
        return stop(self.context, stored) if stored == smaller else stored

    def _is_overdue(self, job: Job) -> bool:
        attempt = job.attempt
        if job.state is not JobState.RESIZING or attempt is None or attempt.resizing is None or job.stop_asked:
            return False
        waits = attempt.resizing.grows and attempt.started_at is None
        return attempt.launched and waits and self.context.clock.now() >= attempt.resizing.until
