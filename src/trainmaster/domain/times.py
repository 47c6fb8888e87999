"""Format times in reasons and history; the sentinel time `NEVER`; tolerances for what SageMaker reports late."""

from __future__ import annotations

from datetime import datetime, timedelta

from trainmaster.domain.compat import UTC

NEVER = datetime.max.replace(tzinfo=UTC)
"""Stands for no time; it sorts after all times."""

YEARS = range(1970, 9000)
"""Years of the times that the queue accepts and stores: no sum with a duration of them overflows."""

VISIBLE_AFTER = timedelta(minutes=10)
"""AWS promises no read-after-write: for this time after a CreateTrainingJob call, "not found" means "unknown"."""

SAME_TIME = timedelta(minutes=1)
"""Times of SageMaker's clock and the queue's that differ by no more than this may be the same moment."""

ROUNDING = timedelta(seconds=2)
"""Times of one clock that differ by no more than this may be the same moment, since some are whole seconds."""


def clock(moment: datetime) -> str:
    """Return a time in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
