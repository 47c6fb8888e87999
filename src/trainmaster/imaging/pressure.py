"""Tells the queue of throttling at an endpoint, so that fewer jobs are started there until it recovers.

It must not know how far a target is lowered: `domain/image/capacity.py` does.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from trainmaster.domain.errors import ServiceTrouble
from trainmaster.domain.image.capacity import pressed
from trainmaster.domain.image.endpoint import Pressure, never_described
from trainmaster.imaging.task import Queue

log = logging.getLogger(__name__)

_TRIES = 3


def note_throttling(queue: Queue, endpoint: str, variant: str) -> None:
    """Remember that a variant asked us to slow down. Losing to others, or trouble of the table, is no trouble here."""
    if queue.endpoints is None:
        return
    try:
        for _ in range(_TRIES):
            before = queue.endpoints.known([endpoint]).get(endpoint)
            now = before or never_described(endpoint)
            pressure = pressed(now.pressure.get(variant, Pressure()), queue.clock.now())
            after = replace(now, pressure={**now.pressure, variant: pressure})
            if after == before or queue.endpoints.remember(after, before):
                return
    except ServiceTrouble:
        log.exception("throttling could not be noted", extra={"endpoint": endpoint})
