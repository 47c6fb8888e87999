"""Decides which changes of jobs are worth a line in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainmaster.client.views.wording import attempt_count

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobView

DETAIL_INTERVAL_SECONDS = 60.0
"""Minimum time between two lines of a job whose state has not changed."""


@dataclass
class JobChanges:
    """The last lines of jobs: a new state is a change, a new position or reason one at most every minute.

    An estimated start that drifts is no change.
    """

    clock: Callable[[], float] = time.monotonic
    _last: dict[str, tuple[tuple[object, ...], tuple[object, ...], float]] = field(default_factory=dict)

    def is_due(self, job: JobView, progress: str = "") -> bool:
        """Return whether to print a line for the job now; `progress` is a detail of another kind's jobs."""
        state = (job["jobState"], attempt_count(job))
        reason = job["reason"]["message"] if job["reason"] else None
        details, now = (job["position"], job["positionAtLeast"], reason, progress), self.clock()
        before, details_before, at = self._last.get(job["jobName"], ((), (), 0.0))
        if state == before and (details == details_before or now - at < DETAIL_INTERVAL_SECONDS):
            return False
        self._last[job["jobName"]] = (state, details, now)
        return True
