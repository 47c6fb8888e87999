"""Reports throttling at an endpoint to the queue, which starts fewer jobs there until it recovers."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

from trainmaster.domain.errors import ServiceError
from trainmaster.images.domain.capacity import COUNTED_REQUESTS, THROTTLED_EVERY, is_overloaded, throttled_at
from trainmaster.images.domain.endpoint import Endpoint, Pressure, never_described
from trainmaster.images.pixels.work.request_stats import RequestStats
from trainmaster.images.pixels.work.task import Queue, Task
from trainmaster.images.ports import amend

log = logging.getLogger(__name__)


class OverloadMonitor:
    """Reports a model that rejects too many of a worker's requests, even if retries succeed.

    Args:
        queue: receives the reports.
        task: the job of the model.
        stats: statistics of its answers.
    """

    def __init__(self, queue: Queue, task: Task, stats: RequestStats) -> None:
        self._queue = queue
        self._task = task
        self._stats = stats
        self._since = (0, 0)
        self._noted_at: datetime | None = None

    def look(self) -> None:
        """Report overload if it is due; call this now and then, and after the last request."""
        total = self._stats.counts()
        asked, refused = (now - then for now, then in zip(total, self._since, strict=True))
        if is_overloaded(asked, refused):
            now = self._queue.clock.now()
            if self._noted_at is not None and now - self._noted_at < THROTTLED_EVERY:
                return
            self._noted_at, self._since = now, total
            log_fields = {"endpoint": self._task.endpoint, "requests": asked, "refused": refused}
            log.warning("a model rejects many requests", extra=log_fields)
            note_throttling(self._queue, self._task.endpoint, self._task.variant)
        elif asked >= COUNTED_REQUESTS:
            self._since = total


def note_throttling(queue: Queue, endpoint: str, variant: str) -> None:
    """Store that a variant is throttled. Conflicts and errors of the table are ignored."""
    if queue.endpoints is None:
        return

    def throttled(known: Endpoint | None) -> Endpoint:
        known = known or never_described(endpoint)
        pressure = throttled_at(known.pressure.get(variant, Pressure()), queue.clock.now())
        return replace(known, pressure={**known.pressure, variant: pressure})

    try:
        amend(queue.endpoints, endpoint, throttled, queue.endpoints.known([endpoint]).get(endpoint))
    except ServiceError:
        log.exception("throttling could not be stored", extra={"endpoint": endpoint})
