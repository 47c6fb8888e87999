"""Times in text, turns of minutes, the sentinel time `NEVER`, and tolerances for what SageMaker reports late."""

from __future__ import annotations

from collections.abc import Iterable
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


def is_turn(name: str, now: datetime, period: int) -> bool:
    """Return whether it is the turn of a name, which it is once in so many minutes; no state is kept for that."""
    return (_minute(now) + sum(name.encode())) % period == 0


def names_in_turn(names: Iterable[str], now: datetime, period: int, limit: int) -> frozenset[str]:
    """Return the names whose turn it is: as many in each minute, and at most `limit`, so that the period may be longer.

    Args:
        names: all of them.
        now: UTC.
        period: minutes in which each has its turn, if there are at most `period * limit`.
        limit: maximum in one minute.
    """
    ordered = sorted(names)
    period = max(period, -(-len(ordered) // limit))
    return frozenset(ordered[_minute(now) % period :: period])


def _minute(now: datetime) -> int:
    return int(now.timestamp()) // 60
