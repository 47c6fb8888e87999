"""What shares have used: fading with a half-life for fairness, and by the period for budgets.

An attempt is charged from the decision to start it until its end, since it keeps others from the units for so long.
It must not read a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from trainmaster.domain.capacity import Pool
from trainmaster.domain.job import Job
from trainmaster.domain.policy import Budget, Policy

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Account:
    """What one share has used.

    Attributes:
        faded: GPU-seconds, fading with the policy's half-life, as of `at`.
        period: the budget period that the two next figures are of, counted from 1970.
        gpu_seconds: used in that period.
        dollars: used in that period.
    """

    faded: float
    at: datetime
    period: int = 0
    gpu_seconds: float = 0.0
    dollars: float = 0.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What an attempt, or a share in a period, has used."""

    gpu_seconds: float = 0.0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.gpu_seconds + other.gpu_seconds, self.dollars + other.dollars)


@dataclass(frozen=True, slots=True)
class Usage:
    """Accounts by share."""

    accounts: Mapping[str, Account] = field(default_factory=dict)

    def after(self, before: Job, after: Job, policy: Policy, pools: Mapping[str, Pool]) -> Usage:
        """The usage after an attempt has ended: `before` still holds its units, `after` has its end."""
        attempt = after.attempt
        if attempt is None or attempt.ended_at is None:
            return self
        end = attempt.ended_at
        used = spent(before.units, attempt.created_at, end, pools)
        share = policy.shares.get(after.share)
        budget = share.budget if share is not None else None
        start = max(attempt.created_at, period_start(budget, end))
        in_period = self.in_period(after.share, budget, end) + spent(before.units, start, end, pools)
        account = Account(
            faded=self.faded(after.share, end, policy.usage_half_life) + used.gpu_seconds,
            at=end,
            period=period_of(budget, end),
            gpu_seconds=in_period.gpu_seconds,
            dollars=in_period.dollars,
        )
        return Usage({**self.accounts, after.share: account})

    def faded(self, share: str, now: datetime, half_life: timedelta) -> float:
        """GPU-seconds of ended attempts of a share, as much as still counts now."""
        account = self.accounts.get(share)
        if account is None:
            return 0.0
        age = max((now - account.at) / half_life, 0.0)
        return account.faded * float(0.5**age)

    def in_period(self, share: str, budget: Budget | None, now: datetime) -> Spent:
        """What ended attempts of a share have used in the budget period of now."""
        account = self.accounts.get(share)
        if account is None or budget is None or account.period != period_of(budget, now):
            return Spent()
        return Spent(account.gpu_seconds, account.dollars)


def spent(units: Mapping[str, int], since: datetime, until: datetime, pools: Mapping[str, Pool]) -> Spent:
    """What holding these units costs; a pool that is gone counts one accelerator and no dollars."""
    seconds = max((until - since).total_seconds(), 0.0)
    gpus = sum(count * (pools[name].accelerators if name in pools else 1) for name, count in units.items())
    dollars = sum(count * pools[name].price for name, count in units.items() if name in pools)
    return Spent(gpus * seconds, dollars * seconds / 3600)


def period_of(budget: Budget | None, now: datetime) -> int:
    """Which budget period it is, counted from 1970; 0 without a budget."""
    return 0 if budget is None else (now - EPOCH) // budget.period


def period_start(budget: Budget | None, now: datetime) -> datetime:
    """When the budget period of now began."""
    return EPOCH if budget is None else EPOCH + period_of(budget, now) * budget.period


def period_end(budget: Budget, now: datetime) -> datetime:
    """When the budget period of now ends."""
    return period_start(budget, now) + budget.period
