"""Usage of shares: decaying with a half-life for fairness, and by period for budgets.

An attempt is charged from the decision to start it until its end, in parts if it is resized (`charging`). Usage decays
as Slurm's does ("Multifactor Priority Plugin", `PriorityDecayHalfLife`), each second of an attempt separately, so that
it does not jump when the attempt ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.capacity.units import Pool, is_service_pool
from trainmaster.domain.compat import UTC
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Budget, Policy
from trainmaster.domain.shares.charging import charged_until

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_STRANGERS = 64
"""Stored accounts of shares that the policy does not name; the one used longest ago is dropped first."""


@dataclass(frozen=True, slots=True)
class Account:
    """The usage of a share.

    Attributes:
        faded: GPU-seconds, decayed with the policy's half-life, as of `at`.
        period: the budget period of the next two values, counted from 1970.
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
    """Usage of an attempt, or of a share in a period."""

    gpu_seconds: float = 0.0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.gpu_seconds + other.gpu_seconds, self.dollars + other.dollars)


@dataclass(frozen=True, slots=True)
class Usage:
    """Accounts by share."""

    accounts: Mapping[str, Account] = field(default_factory=dict)

    def after(self, before: Job, after: Job, policy: Policy, pools: Mapping[str, Pool]) -> Usage:
        """Return the usage after an attempt ended or changed its units.

        Ends may be reported out of order; an account never goes back in time.
        """
        attempt, end, name = before.attempt, charged_until(before, after), after.share
        if attempt is None or end is None or before.work is not None:
            return self
        share = policy.shares.get(name)
        at = max(end, self.accounts[name].at if name in self.accounts else end)
        budget = share.budget if share is not None else None
        past = self.faded(name, at, policy.usage_half_life)
        fresh = accelerators_of(before.units, pools) * faded_seconds(attempt.held_since, end, policy.usage_half_life)
        start = max(attempt.held_since, period_start(budget, at))
        in_period = self.in_period(name, budget, at) + spent(before.units, start, end, pools)
        account = Account(
            faded=past + fresh * _left(at - end, policy.usage_half_life),
            at=at,
            period=period_of(budget, at),
            gpu_seconds=in_period.gpu_seconds,
            dollars=in_period.dollars,
        )
        return Usage(_bounded({**self.accounts, name: account}, policy))

    def faded(self, share: str, now: datetime, half_life: timedelta) -> float:
        """Return the decayed GPU-seconds of a share's ended attempts."""
        account = self.accounts.get(share)
        if account is None:
            return 0.0
        return account.faded * _left(now - account.at, half_life)

    def in_period(self, share: str, budget: Budget | None, now: datetime) -> Spent:
        """Return the usage of a share's ended attempts in the current budget period."""
        account = self.accounts.get(share)
        if account is None or budget is None or account.period != period_of(budget, now):
            return Spent()
        return Spent(account.gpu_seconds, account.dollars)


def spent(units: Mapping[str, int], since: datetime, until: datetime, pools: Mapping[str, Pool]) -> Spent:
    """Return the usage of holding these units; a pool that no longer exists costs no dollars."""
    seconds = max((until - since).total_seconds(), 0.0)
    dollars = sum(count * pools[name].price for name, count in units.items() if name in pools)
    return Spent(accelerators_of(units, pools) * seconds, dollars * seconds / 3600)


def percent_used(budget: Budget, used: Spent) -> float:
    """Return the percentage that is used of the bound that is nearer to its end."""
    parts = [(used.gpu_seconds / 3600, budget.gpu_hours), (used.dollars, budget.dollars)]
    return max((100 * amount / bound if bound else 100.0 for amount, bound in parts if bound is not None), default=0.0)


def accelerators_of(units: Mapping[str, int], pools: Mapping[str, Pool]) -> int:
    """Return the accelerators of these units: one each in a pool that is gone, none for requests to a service.

    So jobs of other kinds are charged nothing, neither in budgets nor in the usage of shares.
    """
    return sum(count * _accelerators(name, pools) for name, count in units.items())


def _accelerators(name: str, pools: Mapping[str, Pool]) -> int:
    if name in pools:
        return pools[name].accelerators
    return 0 if is_service_pool(name) else 1


def faded_seconds(since: datetime, now: datetime, half_life: timedelta) -> float:
    """Return the decayed seconds from `since` until now; at most the half-life over the logarithm of two."""
    longest = half_life.total_seconds() / math.log(2)
    return longest * (1 - _left(now - since, half_life))


def _left(age: timedelta, half_life: timedelta) -> float:
    """Return the remaining fraction of usage after this time."""
    return float(0.5 ** max(age / half_life, 0.0))


def _bounded(accounts: dict[str, Account], policy: Policy) -> Mapping[str, Account]:
    """Return a bounded number of accounts, since any caller may name a share and all accounts share one table row."""
    strangers = sorted(
        (account.at, name) for name, account in accounts.items() if name not in policy.shares and name != DEFAULT_SHARE
    )
    for _, name in strangers[:-MAX_STRANGERS]:
        del accounts[name]
    return accounts


def period_of(budget: Budget | None, now: datetime) -> int:
    """Return the number of the budget period, counted from 1970; 0 without a budget."""
    return 0 if budget is None else (now - UNIX_EPOCH) // budget.period


def period_start(budget: Budget | None, now: datetime) -> datetime:
    """Return the start of the current budget period."""
    return UNIX_EPOCH if budget is None else UNIX_EPOCH + period_of(budget, now) * budget.period


def period_end(budget: Budget, now: datetime) -> datetime:
    """Return the end of the current budget period."""
    return period_start(budget, now) + budget.period
