"""How times are written in reasons and history, and the time that never comes. It must not know what time it is."""

from __future__ import annotations

from datetime import UTC, datetime

NEVER = datetime.max.replace(tzinfo=UTC)
"""When something happens that no time alone brings about: it sorts after all that have one."""


def clock(moment: datetime) -> str:
    """UTC, to the second."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
