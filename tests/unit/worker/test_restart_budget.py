"""The restart budget: within a period, in all, and before a full restart; a resize is never counted."""

from __future__ import annotations

import json

import pytest

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.container.restart_budget import (
    BUDGET_SPENT_PREFIX,
    FULL_RESTART_PREFIX,
    RestartAction,
    RestartBudget,
)
from trainmaster.worker.rendezvous.state import RoundReason, RoundRecord, State

NOW = 100_000.0


def verdict(budget, *ages):
    return budget.evaluate([NOW - age for age in ages], len(ages), NOW)[0]


def test_without_bounds_every_restart_is_allowed():
    assert verdict(RestartBudget(), *range(1000)) is RestartAction.RESTART


def test_more_than_the_most_within_the_period_fail_the_job():
    budget = RestartBudget(max_restarts=2, period=60)
    assert verdict(budget, 0, 30) is RestartAction.RESTART
    assert verdict(budget, 0, 30, 59) is RestartAction.FAIL
    assert verdict(budget, 0, 30, 60) is RestartAction.RESTART


def test_where_full_restarts_are_allowed_the_most_leads_to_one():
    assert verdict(RestartBudget(max_restarts=1, max_full_restarts=1), 0, 1) is RestartAction.FULL_RESTART


def test_after_so_many_within_the_period_the_next_is_a_full_restart():
    budget = RestartBudget(restarts_before_full=3, period=21_600)
    assert verdict(budget, 0, 1, 2) is RestartAction.RESTART
    assert verdict(budget, 0, 1, 2, 3) is RestartAction.FULL_RESTART


def test_more_than_the_total_fail_the_job_however_long_ago():
    assert verdict(RestartBudget(max_total_restarts=2), 0, 50_000, 90_000) is RestartAction.FAIL


def test_what_earlier_attempts_have_used_of_the_total_counts_and_of_nothing_else():
    budget = RestartBudget(max_restarts=2, max_total_restarts=5, used=4)
    assert verdict(budget, 0) is RestartAction.RESTART
    assert budget.evaluate([NOW, NOW], 2, NOW) == (
        RestartAction.FAIL,
        f"{BUDGET_SPENT_PREFIX}: 6 restarts, 5 allowed in total",
    )
    assert verdict(RestartBudget(max_restarts=2, used=4), 0, 1) is RestartAction.RESTART


def test_the_total_goes_before_a_full_restart():
    assert verdict(RestartBudget(max_total_restarts=1, restarts_before_full=1), 0, 1) is RestartAction.FAIL


def test_only_charged_rounds_count():
    records = tuple(
        RoundRecord(round=number, why=why, charged=charged, at=int(NOW))
        for number, (why, charged) in enumerate(
            [(RoundReason.DRAIN, False), (RoundReason.GROW, False), (RoundReason.LOSS, True)], start=1
        )
    )
    state = State(restarts=records, charged=1)
    assert RestartBudget(max_restarts=1).exhausted_reason(state, NOW) is None
    assert RestartBudget(max_restarts=0).exhausted_reason(state, NOW).startswith(BUDGET_SPENT_PREFIX)
    assert RestartBudget(restarts_before_full=0).exhausted_reason(state, NOW).startswith(FULL_RESTART_PREFIX)


def test_the_budget_is_read_from_the_environment():
    given = {
        "max_restarts": 5,
        "period": 60.0,
        "max_total_restarts": None,
        "restarts_before_full": 2,
        "max_full_restarts": 1,
    }
    read = RestartBudget.from_environment({"TRAINMASTER_RESTARTS": json.dumps(given)})
    assert read == RestartBudget(max_restarts=5, period=60.0, restarts_before_full=2, max_full_restarts=1)
    assert RestartBudget.from_environment({}) == RestartBudget()


@pytest.mark.parametrize("text", ["{", "[]", '"max_restarts"', '{"max_restarts": "many"}', '{"period": []}'])
def test_what_is_no_budget_is_refused_by_its_name(text):
    with pytest.raises(InvalidRequest) as caught:
        RestartBudget.from_environment({"TRAINMASTER_RESTARTS": text})
    assert caught.value.field == "TRAINMASTER_RESTARTS"
