"""Whose turn it is in a tick, which looks at some things every few minutes: from the minute and the names alone.

So no state is kept, and the ticks share the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime


def is_turn(name: str, now: datetime, period: int) -> bool:
    """Return whether it is the turn of a name, which it is once in so many minutes."""
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
