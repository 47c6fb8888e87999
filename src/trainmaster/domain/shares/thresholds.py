"""Thresholds of budgets: which one a share has reached in this period, and whether that was told before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.domain.policy.settings import Budget
from trainmaster.domain.shares.usage import Spent, percent_used, period_end

BUDGET_THRESHOLDS = (80, 100)
"""Percentages of a budget at which an event is put."""


@dataclass(frozen=True, slots=True)
class Told:
    """The highest threshold of a budget that was told in a period.

    Attributes:
        until: the period's end.
        percent: the threshold.
        gpu_hours: the budget's bound then; another budget begins again.
        dollars: the same.
    """

    until: datetime
    percent: int
    gpu_hours: float | None = None
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """A share whose usage has reached a threshold of its budget.

    Attributes:
        percent: the highest threshold that it has reached.
        at: when that was found, within the period.
    """

    share: str
    budget: Budget
    used: Spent
    percent: int
    at: datetime

    @property
    def told(self) -> Told:
        """The value that records that it was told."""
        return Told(period_end(self.budget, self.at), self.percent, self.budget.gpu_hours, self.budget.dollars)

    def untold(self, told: Mapping[str, Told]) -> tuple[int, ...]:
        """Return the thresholds up to this one that were not told in this period."""
        now, before = self.told, told.get(self.share)
        same = before is not None and (before.until, before.gpu_hours, before.dollars) == (
            now.until,
            now.gpu_hours,
            now.dollars,
        )
        last = before.percent if same and before is not None else 0
        return tuple(each for each in BUDGET_THRESHOLDS if last < each <= self.percent)


def reached(share: str, budget: Budget, used: Spent, at: datetime) -> Reached | None:
    """Return the highest threshold of a budget that this usage has reached; None for none, and without any usage."""
    percent = max((each for each in BUDGET_THRESHOLDS if each <= percent_used(budget, used)), default=None)
    return None if percent is None or used == Spent() else Reached(share, budget, used, percent, at)


def told_after(told: Mapping[str, Told], found: Sequence[Reached]) -> Mapping[str, Told]:
    """Return what is told once the thresholds found are, without periods that have ended."""
    at = max(each.at for each in found)
    new = {each.share: each.told for each in found if each.untold(told)}
    return {**{share: last for share, last in told.items() if last.until > at}, **new}
