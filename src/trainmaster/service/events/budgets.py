"""Notice the budgets that shares have nearly spent, with what their running attempts have used so far.

Passes have read all that this needs, so it costs a write only when a threshold is reached.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from trainmaster.domain.errors import ServiceError
from trainmaster.domain.events.types import EventType
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.shares.thresholds import Reached, reached
from trainmaster.planner.sharing.limits import used_in_period
from trainmaster.service.context import ManagerContext

log = logging.getLogger(__name__)


def publish_thresholds(context: ManagerContext, snapshot: Snapshot) -> None:
    """Publish each threshold that a share has reached and that was not told in this period.

    Errors of AWS leave it to a later pass.

    Args:
        context: the manager's dependencies.
        snapshot: as the pass has read it.
    """
    if EventType.BUDGET not in context.publication.events:
        return
    found = [each for each in _reached(snapshot, context.clock.now()) if each.untold(snapshot.records.told)]
    if not found:
        return
    try:
        context.store.publish_thresholds(found)
    except ServiceError as error:
        log.warning("could not publish budget thresholds; the next pass retries", extra={"cause": str(error)})


def _reached(snapshot: Snapshot, now: datetime) -> Iterator[Reached]:
    for name, share in snapshot.policy.shares.items():
        if share.budget is not None:
            used = used_in_period(snapshot, name, share.budget, now)
            if (found := reached(name, share.budget, used, now)) is not None:
                yield found
