"""Pools that the manager makes for demands that no pool could ever hold, and removes when nobody uses them any more.

Vertical expansion (Liu et al., Journal of Software 33(3), 2022, section 3.3, algorithm 5, equations 10 to 12). It must
not place jobs: the plan goes on as if the pools had always been there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from trainmaster.domain.plan import Expand, Retire, Snapshot


def changes(snapshot: Snapshot, now: datetime) -> Sequence[Expand | Retire]:
    """The pools to make, to make larger, and to remove; nothing where expansion is off.

    Args:
        snapshot: resolved (`resolving.resolve`).
        now: the time of the pass, UTC.
    """
    if not snapshot.policy.expansion.enabled:
        return ()
    raise NotImplementedError(now)
