"""Wakes the manager so that one pass serves a burst of changes."""

from __future__ import annotations

import logging

from trainmaster.domain.errors import ServiceError
from trainmaster.ports.runtime import Publisher
from trainmaster.ports.store import Store

log = logging.getLogger(__name__)


def wake(store: Store, publisher: Publisher) -> None:
    """Request a pass that begins after the change that the caller has just committed.

    The request cannot be lost: the pass number is read, strongly consistent, after the commit, so a pass with a higher
    number begins, and reads, after it. All callers that read the same number request the same pass, so one message
    serves a burst. Raises `ServiceError` if the number cannot be read.
    """
    wake_after(publisher, store.current_pass())


def wake_after(publisher: Publisher, pass_number: int) -> None:
    """Request the pass after this one; the number must be read after the caller's commit.

    A failure to send is logged and not raised: the next tick runs a pass anyway.
    """
    try:
        publisher.wake(pass_number)
    except ServiceError as error:
        log.warning("could not wake the manager; the next tick will", extra={"cause": str(error)})
