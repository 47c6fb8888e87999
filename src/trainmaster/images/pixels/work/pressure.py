"""Tells the queue of throttling at an endpoint, so that fewer jobs are started there until it recovers.

It must not know how many refusals are too many, nor how far a target is lowered: `images/domain/capacity.py` does.
"""

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


class Watch:
    """Sees to it that a model which refuses too many of a worker's requests is asked less, though retries helped.

    Args:
        queue: is told.
        task: says whose model it is.
        heard: how it has answered.
    """

    def __init__(self, queue: Queue, task: Task, heard: RequestStats) -> None:
        self._queue = queue
        self._task = task
        self._heard = heard
        self._since = (0, 0)
        self._noted_at: datetime | None = None

    def look(self) -> None:
        """Tell the queue, where that is due; to be called now and then, and after the last request."""
        total = self._heard.counts()
        asked, refused = (now - then for now, then in zip(total, self._since, strict=True))
        if is_overloaded(asked, refused):
            now = self._queue.clock.now()
            if self._noted_at is not None and now - self._noted_at < THROTTLED_EVERY:
                return
            self._noted_at, self._since = now, total
            told = {"endpoint": self._task.endpoint, "requests": asked, "refused": refused}
            log.warning("a model refuses many requests", extra=told)
            note_throttling(self._queue, self._task.endpoint, self._task.variant)
        elif asked >= COUNTED_REQUESTS:
            self._since = total


def note_throttling(queue: Queue, endpoint: str, variant: str) -> None:
    """Remember that a variant asked us to slow down. Losing to others, or trouble of the table, is no trouble here."""
    if queue.endpoints is None:
        return

    def throttled(known: Endpoint | None) -> Endpoint:
        known = known or never_described(endpoint)
        pressure = throttled_at(known.pressure.get(variant, Pressure()), queue.clock.now())
        return replace(known, pressure={**known.pressure, variant: pressure})

    try:
        amend(queue.endpoints, endpoint, throttled, queue.endpoints.known([endpoint]).get(endpoint))
    except ServiceError:
        log.exception("throttling could not be noted", extra={"endpoint": endpoint})
