"""Resizes of jobs of any framework: the attempt is stopped with time to checkpoint, and goes on as another one.

Stopping, and launching the next attempt, are what every pass does for any job; what is left is a growth that SageMaker
accepts and does not provide. It must not decide on a size.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.service.context import ManagerContext, commit
from trainmaster.service.launch import poll, stop

SIGTERM_TO_SIGKILL = timedelta(seconds=120)
"""What a stopped training job has to save its work (API reference, StopTrainingJob)."""


@dataclass(frozen=True, slots=True)
class RestartHook:
    """See `ports.ResizeHook`."""

    context: ManagerContext

    def advance(self, job: Job) -> Job:
        """A growth that has not come to work in time goes back to the size before; see `ports.ResizeHook.advance`."""
        if not self._is_overdue(job):
            return job
        # The report of its work may have been lost.
        seen = poll(self.context, job)
        if not self._is_overdue(seen):
            return seen
        now = self.context.clock.now()
        smaller = lifecycle.give_up(seen, now, "SageMaker has not had the instances in time")
        stands = commit(self.context, seen, smaller)
        return stop(self.context, stands) if stands == smaller else stands

    def _is_overdue(self, job: Job) -> bool:
        attempt = job.attempt
        if job.state is not JobState.RESIZING or attempt is None or attempt.resizing is None or job.stop_asked:
            return False
        came = not attempt.resizing.grows or attempt.started_at is not None
        return attempt.launched and not came and self.context.clock.now() >= attempt.resizing.until
