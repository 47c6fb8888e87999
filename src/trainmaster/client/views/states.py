"""States of jobs by what the client does with them."""

from __future__ import annotations

from typing import Final, get_args

from trainmaster.client.views.types import JobState

WAITING: Final[frozenset[JobState]] = frozenset({"pending", "preempted", "held"})
ENDED: Final[frozenset[JobState]] = frozenset({"completed", "failed", "stopped", "cancelled"})
UNFINISHED: Final[tuple[JobState, ...]] = tuple(state for state in get_args(JobState) if state not in ENDED)
