"""Jobs that are alike in the eyes of the planner: once one of them is blocked, so are those behind it.

Free units, spare units and victims only become fewer while a plan is made, so whoever comes later and is of a kind
that was blocked is blocked for the same reason. That spares looking at each job of a deep queue. It must not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons.capacity import Behind, Infeasible, ReservedForOther, WaitsForCapacity
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import BudgetSpent, ShareFull, UserFull

_LASTING = WaitsForCapacity | ReservedForOther | Behind | Infeasible | ShareFull | UserFull | BudgetSpent
"""Reasons that a job has in common with those of its kind."""


@dataclass(slots=True)
class BlockedReasonCache:
    """Why kinds of jobs wait in the plan in the making.

    Attributes:
        snapshot: what the pass read.
        by_past: whether how long a job has run already makes a difference beyond its rank: where jobs are reserved for.
    """

    snapshot: Snapshot
    by_past: bool
    _reasons: dict[Hashable, Reason] = field(default_factory=dict)
    reason: Callable[[Hashable], Reason | None] = field(init=False)
    """Why an earlier job of a kind waits; None where that is not known. Asked of every job, so not a call of ours."""

    def __post_init__(self) -> None:
        self.reason = self._reasons.get

    def note(self, kind: Hashable, reason: Reason | None) -> None:
        """A job of this kind waits for this reason."""
        if kind is not None and isinstance(reason, _LASTING):
            self._reasons[kind] = reason

    def forget(self) -> None:
        """Units may have become free for others: what was known does not hold any more."""
        self._reasons.clear()

    def kind(self, job: Job, rank: tuple[int, ...]) -> Hashable:
        """What tells jobs apart; None for one that is like no other.

        Args:
            job: a waiting job.
            rank: what of its standing it has in common with others.
        """
        traits = job.traits
        if traits is None or self.snapshot.warm or (self.by_past and job.attempt is not None):
            return None
        return (rank, traits)
