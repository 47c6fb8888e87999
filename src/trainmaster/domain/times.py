"""Format times in reasons and history, and the sentinel time `NEVER`."""

from __future__ import annotations

from datetime import UTC, datetime

NEVER = datetime.max.replace(tzinfo=UTC)
"""Stands for no time; it sorts after all times."""


def clock(moment: datetime) -> str:
    """Return a time in UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
