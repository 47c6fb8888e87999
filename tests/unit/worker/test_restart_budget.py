"""The restart budget: within a period, in all, and before a full restart; a resize is never counted."""

from __future__ import annotations

import json

import pytest

from trainmaster.domain.errors import InvalidRequest
from trainmaster.worker.container.restart_budget import FULL, SPENT, Budget, Verdict
from trainmaster.worker.rendezvous.state import Record, State, Why

NOW = 100_000.0


def verdict(budget, *ages):
    return budget.judge([NOW - age for age in ages], len(ages), NOW)[0]


def test_without_bounds_every_restart_is_allowed():
    assert verdict(Budget(), *range(1000)) is Verdict.RESTART


def test_more_than_the_most_within_the_period_fail_the_job():
    budget = Budget(most=2, period=60)
    assert verdict(budget, 0, 30) is Verdict.RESTART
    assert verdict(budget, 0, 30, 59) is Verdict.FAIL
    assert verdict(budget, 0, 30, 60) is Verdict.RESTART


def test_where_full_restarts_are_allowed_the_most_leads_to_one():
    assert verdict(Budget(most=1, most_full=1), 0, 1) is Verdict.FULL


def test_after_so_many_within_the_period_the_next_is_a_full_restart():
    budget = Budget(before_full=3, period=21_600)
    assert verdict(budget, 0, 1, 2) is Verdict.RESTART
    assert verdict(budget, 0, 1, 2, 3) is Verdict.FULL


def test_more_than_the_total_fail_the_job_however_long_ago():
    assert verdict(Budget(total=2), 0, 50_000, 90_000) is Verdict.FAIL


def test_what_earlier_attempts_have_used_of_the_total_counts_and_of_nothing_else():
    budget = Budget(most=2, total=5, used=4)
    assert verdict(budget, 0) is Verdict.RESTART
    assert budget.judge([NOW, NOW], 2, NOW) == (Verdict.FAIL, f"{SPENT}: 6 restarts, 5 allowed in all")
    assert verdict(Budget(most=2, used=4), 0, 1) is Verdict.RESTART


def test_the_total_goes_before_a_full_restart():
    assert verdict(Budget(total=1, before_full=1), 0, 1) is Verdict.FAIL


def test_only_charged_rounds_count():
    records = tuple(
        Record(round=number, why=why, charged=charged, at=int(NOW))
        for number, (why, charged) in enumerate([(Why.DRAIN, False), (Why.GROW, False), (Why.LOSS, True)], start=1)
    )
    state = State(restarts=records, charged=1)
    assert Budget(most=1).overdrawn(state, NOW) is None
    assert Budget(most=0).overdrawn(state, NOW).startswith(SPENT)
    assert Budget(before_full=0).overdrawn(state, NOW).startswith(FULL)


def test_the_budget_is_read_from_the_environment():
    given = {"most": 5, "period": 60.0, "total": None, "before_full": 2, "most_full": 1}
    read = Budget.of({"TRAINMASTER_RESTARTS": json.dumps(given)})
    assert read == Budget(most=5, period=60.0, before_full=2, most_full=1)
    assert Budget.of({}) == Budget()


@pytest.mark.parametrize("text", ["{", "[]", '"most"', '{"most": "many"}', '{"period": []}'])
def test_what_is_no_budget_is_refused_by_its_name(text):
    with pytest.raises(InvalidRequest) as caught:
        Budget.of({"TRAINMASTER_RESTARTS": text})
    assert caught.value.field == "TRAINMASTER_RESTARTS"
