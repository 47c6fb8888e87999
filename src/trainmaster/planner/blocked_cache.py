"""A cache of reasons: jobs equivalent to a blocked job, in the same plan, are blocked for the same reason.

Free units, spare units and victims only become fewer while a plan is made, so jobs of a deep queue need no decision of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from trainmaster.domain.jobs.job import Job
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.reasons.capacity import (
    Behind,
    BehindBackingOff,
    Infeasible,
    QuotaTooSmall,
    ReservedForOther,
    WaitsForCapacity,
)
from trainmaster.domain.reasons.reason import Reason
from trainmaster.domain.reasons.rules import BudgetSpent, ShareFull, UserFull

_BLOCKED = frozenset({WaitsForCapacity, ReservedForOther, Behind, BehindBackingOff})
_SHARED = _BLOCKED | {Infeasible, QuotaTooSmall, ShareFull, UserFull, BudgetSpent}
"""Reasons that equivalent jobs have in common."""


@dataclass(slots=True)
class BlockedReasonCache:
    """Reasons of blocked jobs by equivalence key.

    Attributes:
        snapshot: what the pass read.
        by_past: whether jobs that have run before are never equivalent, because reservations depend on their run time.
        reason: `dict.get` of the reasons: called for every job, so without a method of its own around it.
    """

    snapshot: Snapshot
    by_past: bool
    _reasons: dict[Hashable, Reason] = field(default_factory=dict)
    reason: Callable[[Hashable], Reason | None] = field(init=False)

    def __post_init__(self) -> None:
        self.reason = self._reasons.get

    def note(self, key: Hashable, reason: Reason | None) -> None:
        """Record why a job with this key waits; None if it starts."""
        if key is not None and reason is not None and type(reason) in _SHARED:
            if isinstance(reason, WaitsForCapacity) and reason.expected is not None:
                # Jobs behind it start later.
                reason = replace(reason, expected=None, overdue=None)
            self._reasons[key] = reason

    def clear(self) -> None:
        """Remove all reasons: units may have become free."""
        self._reasons.clear()

    def key(self, job: Job, common_rank: tuple[int, ...]) -> Hashable:
        """Return a key that is equal for equivalent jobs; None for a job without an equivalent.

        Args:
            job: a waiting job.
            common_rank: the part of its rank that equivalent jobs have in common.
        """
        equivalence_key = job.equivalence_key
        if equivalence_key is None or self.snapshot.warm or (self.by_past and job.attempt is not None):
            return None
        return (common_rank, equivalence_key)
