"""Usage of shares: it decays evenly, and each budget period counts its own part of an attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import G5, NOW, P5, a_running_job, an_observation, at, pools_of
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import DEFAULT_SHARE, Budget, Policy, Share
from trainmaster.domain.shares.usage import (
    MAX_STRANGERS,
    UNIX_EPOCH,
    Spent,
    Usage,
    faded_seconds,
    period_end,
    period_of,
    period_start,
    spent,
)

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
HOUR = 3600.0
POOLS = pools_of(Pool(P5, 8, price=100.0), Pool(G5, 8, price=2.0))
"""Eight accelerators a unit, and one."""


def budgeted(budget: Budget | None = None, half_life: timedelta = WEEK) -> Policy:
    return Policy(shares={"vision": Share(name="vision", budget=budget)}, usage_half_life=half_life)


def ended(usage: Usage, since: float, until: float, policy: Policy, *, units=None, share="vision") -> Usage:
    """The usage after an attempt that was created and that ended so many seconds after `NOW`."""
    before = a_running_job(now=at(since), share=share, units=units or {P5: 1})
    after = lifecycle.observe(before, an_observation(before, status=Status.COMPLETED), at(until))
    return usage.after(before, after, policy, POOLS)


def test_an_attempt_is_charged_from_its_start_to_its_end_in_accelerators_and_dollars():
    policy = budgeted(Budget(gpu_hours=1))
    usage = ended(Usage(), 0, HOUR, policy, units={P5: 1, G5: 2})
    used = usage.in_period("vision", Budget(gpu_hours=1), at(HOUR))
    assert used == Spent(10 * HOUR, 104.0)
    assert usage.faded("vision", at(HOUR), WEEK) == pytest.approx(10 * HOUR, rel=0.01)


def test_units_of_a_pool_that_is_gone_count_one_accelerator_and_no_dollars():
    assert spent({"gone": 3}, NOW, at(10), POOLS) == Spent(30.0, 0.0)


def test_nothing_is_charged_for_time_that_runs_backwards():
    assert spent({P5: 1}, at(10), NOW, POOLS) == Spent()
    assert faded_seconds(at(10), NOW, WEEK) == 0


def test_usage_halves_with_each_half_life():
    usage = ended(Usage(), 0, HOUR, budgeted())
    first = usage.faded("vision", at(HOUR), WEEK)
    assert usage.faded("vision", at(HOUR) + WEEK, WEEK) == pytest.approx(first / 2)
    assert usage.faded("vision", at(HOUR) + 3 * WEEK, WEEK) == pytest.approx(first / 8)
    assert usage.faded("unheard of", at(HOUR), WEEK) == 0


@given(st.integers(1, 10**7), st.integers(0, 10**7))
def test_two_attempts_one_after_the_other_count_as_much_as_one_of_the_same_length(first, second):
    policy = budgeted()
    whole = ended(Usage(), 0, first + second, policy)
    parts = ended(ended(Usage(), 0, first, policy), first, first + second, policy)
    end = at(first + second)
    assert parts.faded("vision", end, WEEK) == pytest.approx(whole.faded("vision", end, WEEK))


@given(st.integers(1, 10**7))
def test_decayed_usage_never_exceeds_steady_usage(seconds):
    bound = WEEK.total_seconds() * 1.4427
    assert faded_seconds(NOW, at(seconds), WEEK) <= min(seconds + 1e-6, bound)


@given(st.permutations([(0, 100), (50, 4000), (10, 20_000), (3000, 90_000)]))
def test_ends_that_are_told_out_of_order_come_to_the_same(spans):
    policy = budgeted(Budget(gpu_hours=5, period=DAY))
    usage = Usage()
    for since, until in spans:
        usage = ended(usage, since, until, policy)
    in_order = Usage()
    for since, until in sorted(spans, key=lambda span: span[1]):
        in_order = ended(in_order, since, until, policy)
    budget, end = policy.shares["vision"].budget, at(90_000)
    assert usage.accounts["vision"].at == end
    assert usage.faded("vision", end, WEEK) == pytest.approx(in_order.faded("vision", end, WEEK))
    assert usage.in_period("vision", budget, end) == in_order.in_period("vision", budget, end)


def test_periods_follow_each_other_from_1970_on():
    budget = Budget(gpu_hours=1, period=DAY)
    assert period_of(budget, UNIX_EPOCH + 3 * DAY) == 3
    assert period_start(budget, NOW) == NOW.replace(hour=0)
    assert period_end(budget, NOW) == NOW.replace(hour=0) + DAY
    assert period_of(None, NOW) == 0


def test_only_what_an_attempt_used_in_the_period_counts_against_its_budget():
    budget = Budget(gpu_hours=100, period=DAY)
    usage = ended(Usage(), -20 * HOUR, 2 * HOUR, budgeted(budget))
    assert usage.in_period("vision", budget, at(2 * HOUR)).gpu_seconds == 14 * HOUR * 8
    assert usage.in_period("vision", budget, at(2 * HOUR) + DAY) == Spent()


def test_a_new_period_begins_with_nothing_spent():
    budget = Budget(gpu_hours=100, period=DAY)
    usage = ended(Usage(), 0, HOUR, budgeted(budget))
    tomorrow = DAY.total_seconds()
    usage = ended(usage, tomorrow, tomorrow + 60, budgeted(budget))
    assert usage.in_period("vision", budget, at(tomorrow + 60)).gpu_seconds == 60 * 8


def test_another_length_of_the_period_begins_a_new_count():
    usage = ended(Usage(), 0, HOUR, budgeted(Budget(gpu_hours=100, period=DAY)))
    longer = Budget(gpu_hours=100, period=30 * DAY)
    assert usage.in_period("vision", longer, at(HOUR)) == Spent()
    usage = ended(usage, HOUR, 2 * HOUR, budgeted(longer))
    assert usage.in_period("vision", longer, at(2 * HOUR)).gpu_seconds == 8 * HOUR


def test_without_a_budget_nothing_counts_against_one():
    usage = ended(Usage(), 0, HOUR, budgeted())
    assert usage.in_period("vision", None, at(HOUR)) == Spent()


def test_an_attempt_that_has_not_ended_changes_nothing():
    job = a_running_job(share="vision")
    assert Usage().after(job, job, budgeted(), POOLS) == Usage()


def test_accounts_of_unknown_shares_are_bounded_and_those_of_known_ones_stay():
    policy = budgeted()
    usage = ended(ended(Usage(), 0, 1, policy), 0, 2, policy, share=DEFAULT_SHARE)
    for number in range(MAX_STRANGERS + 5):
        usage = ended(usage, 0, 10 + number, policy, share=f"stranger{number}")
    assert len(usage.accounts) == MAX_STRANGERS + 2
    assert {"vision", DEFAULT_SHARE, f"stranger{MAX_STRANGERS + 4}"} <= usage.accounts.keys()
    assert "stranger0" not in usage.accounts


def test_the_pools_of_now_set_the_price():
    pools = {P5: replace(POOLS[P5], price=50.0)}
    assert spent({P5: 2}, NOW, at(HOUR), pools).dollars == 100.0
