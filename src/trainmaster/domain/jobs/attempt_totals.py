"""What is kept of a job's oldest attempts: sums.

A job that grows and shrinks by restarts has an attempt for each size, without end, and its row of the table is bounded.
The newest attempts are kept one by one, and what decisions, accounts and people need of the others is added up here. It
must not know jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.jobs.attempt import Attempt, Outcome

KEPT = 50
"""Attempts before the newest that are kept one by one; their rows stay below 100 kB whatever their failures say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTotals:
    """Sums over attempts that have ended.

    Attributes:
        outcomes: how many have ended in which way.
        began_at: when the first was created; None where there are none.
        at_work: seconds that they were at work.
        longest: of those, the most of one attempt.
        served: unit-seconds that they were at work.
        restarts: see `Attempt.restarts`.
        saves_every: the least time seen between two checkpoints; None where nobody has seen two.
        full: when those ended that had asked for a full restart, oldest first; as many as a budget counts.
    """

    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    began_at: datetime | None = None
    at_work: float = 0.0
    longest: float = 0.0
    served: float = 0.0
    restarts: int = 0
    saves_every: timedelta | None = None
    full: tuple[datetime, ...] = ()

    @property
    def count(self) -> int:
        """How many attempts these are."""
        return sum(self.outcomes.values())

    def ended(self, *outcomes: Outcome) -> int:
        """How many have ended in one of these ways."""
        return sum(self.outcomes.get(outcome, 0) for outcome in outcomes)

    def after(self, attempt: Attempt, most_full: int) -> AttemptTotals:
        """The sums with the attempt that came next; of full restarts so many are known at most."""
        saves = [span for span in (self.saves_every, attempt.saves_every) if span is not None]
        asked = (attempt.ended_at,) if attempt.asked_in_full and attempt.ended_at is not None else ()
        full = (*self.full, *asked)
        return AttemptTotals(
            outcomes={**self.outcomes, attempt.outcome: self.ended(attempt.outcome) + 1},
            began_at=self.began_at or attempt.created_at,
            at_work=self.at_work + attempt.ran,
            longest=max(self.longest, attempt.ran),
            served=self.served + attempt.served_in_all,
            restarts=self.restarts + attempt.restarts,
            saves_every=min(saves, default=None),
            full=full[max(len(full) - most_full, 0) :],
        )


NONE_EARLIER = AttemptTotals()
