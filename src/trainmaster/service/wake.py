"""Waking the manager so that one pass serves a burst of changes."""

from __future__ import annotations

import logging

from trainmaster.domain.errors import ServiceTrouble
from trainmaster.domain.plan import Snapshot
from trainmaster.ports import Publisher, Store

log = logging.getLogger(__name__)


def wake(store: Store, publisher: Publisher) -> Snapshot:
    """Ask for a pass that follows the one in force; returns what was read to know it.

    Why it cannot be lost: the pass number is read, strongly, after our own commit. A pass with a higher number
    begins, and so reads, after that. All who read the same number ask for the same pass, so one message serves a
    burst. Where even the message fails, the next tick does it: that is no reason to fail the caller's request.
    """
    snapshot = store.survey()
    try:
        publisher.wake(snapshot.pass_number)
    except ServiceTrouble as error:
        log.warning("could not wake the manager; the next tick will", extra={"cause": str(error)})
    return snapshot
