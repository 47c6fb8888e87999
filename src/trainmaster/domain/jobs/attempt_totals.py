"""Totals of a job's oldest attempts.

A job that resizes by restarts has an unlimited number of attempts, and its table row is limited. So only the newest
attempts are stored one by one; the others are added up here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.jobs.attempt import Attempt, Outcome

MAX_PAST_ATTEMPTS = 50
"""Attempts before the newest that are stored one by one; they stay below 100 kB even with long failure reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTotals:
    """Sums over attempts that have ended.

    Attributes:
        outcomes: the number of attempts by outcome.
        began_at: when the first was created; None if there are none.
        at_work: seconds of work.
        longest: the longest single attempt, in seconds of work.
        served: unit-seconds of work.
        restarts: see `Attempt.restarts`.
        saves_every: the shortest known time between two checkpoints; None before two are known.
        full: the ends of attempts that requested a full restart, oldest first; as many as a budget counts.
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
        """The number of attempts."""
        return sum(self.outcomes.values())

    def ended(self, *outcomes: Outcome) -> int:
        """Return the number of attempts with one of these outcomes."""
        return sum(self.outcomes.get(outcome, 0) for outcome in outcomes)

    def after(self, attempt: Attempt, max_full_restarts: int) -> AttemptTotals:
        """Return the totals including the next attempt; at most `max_full_restarts` full restarts are kept."""
        saves = [span for span in (self.saves_every, attempt.saves_every) if span is not None]
        asked = (attempt.ended_at,) if attempt.requested_full_restart and attempt.ended_at is not None else ()
        full = (*self.full, *asked)
        return AttemptTotals(
            outcomes={**self.outcomes, attempt.outcome: self.ended(attempt.outcome) + 1},
            began_at=self.began_at or attempt.created_at,
            at_work=self.at_work + attempt.ran,
            longest=max(self.longest, attempt.ran),
            served=self.served + attempt.served_in_all,
            restarts=self.restarts + attempt.restarts,
            saves_every=min(saves, default=None),
            full=full[max(len(full) - max_full_restarts, 0) :],
        )


NO_TOTALS = AttemptTotals()
