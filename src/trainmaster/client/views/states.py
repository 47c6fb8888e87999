"""States of jobs by what the client does with them."""

from __future__ import annotations

from typing import Final

from trainmaster.client.views.types import JobState

WAITING: Final[frozenset[JobState]] = frozenset({"pending", "preempted", "held"})
ENDED: Final[frozenset[JobState]] = frozenset({"completed", "failed", "stopped", "cancelled"})
