"""How times are written in reasons and history."""

from __future__ import annotations

from datetime import datetime


def clock(moment: datetime) -> str:
    """UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
