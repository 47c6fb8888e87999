"""Translation of SageMaker's training plan into the window in which jobs can use it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import at
from trainmaster.adapters.sagemaker.training_plan import window_of_answer
from trainmaster.domain.capacity.units import PlanStatus, PlanWindow
from trainmaster.domain.errors import InvalidRequest


def an_answer(status="Active", *capacities, **members):
    summaries = [{"Status": kind, "StartTime": at(starts), "EndTime": at(ends)} for kind, starts, ends in capacities]
    times = {"StartTime": at(0), "EndTime": at(900)}
    return {"Status": status, **times, "ReservedCapacitySummaries": summaries, "TotalInstanceCount": 4, **members}


def window(*arguments, **members):
    found = window_of_answer(an_answer(*arguments, **members))
    return found.starts_at, found.ends_at


def test_the_active_capacity_counts():
    answer = an_answer("Active", ("Expired", 0, 100), ("Active", 200, 300), ("Scheduled", 400, 500))
    assert window_of_answer(answer) == PlanWindow(PlanStatus.ACTIVE, at(200), at(300), 4)


def test_of_several_active_ones_that_which_ends_first():
    assert window("Active", ("Active", 0, 500), ("Active", 0, 300)) == (at(0), at(300))


def test_between_two_the_next():
    assert window("Scheduled", ("Expired", 0, 100), ("Scheduled", 600, 700), ("Pending", 400, 500)) == (
        at(400),
        at(500),
    )


@pytest.mark.parametrize("status", ["Expired", "Failed"])
def test_after_the_last_the_plans_own_times(status):
    assert window(status, ("Expired", 0, 100), ("Failed", 200, 300)) == (at(0), at(900))


def test_without_any_list_likewise():
    assert window("Scheduled") == (at(0), at(900))
    assert window("Scheduled", ReservedCapacitySummaries=None, EndTime=None) == (at(0), None)


def test_times_are_utc_and_to_the_second():
    east = timezone(timedelta(hours=3))
    odd = datetime(2026, 11, 21, 15, 0, 1, 999, tzinfo=east)
    assert window("Active", StartTime=odd, EndTime=at(5).replace(tzinfo=None)) == (at(1), at(5))


@pytest.mark.parametrize("status", [None, "Evaporated", 7, {}])
def test_a_status_of_another_kind_cannot_be_read(status):
    with pytest.raises(InvalidRequest):
        window_of_answer({"Status": status})


MEMBERS = st.sampled_from(["Status", "StartTime", "EndTime", "ReservedCapacitySummaries", "TotalInstanceCount"])
ANYTHING = st.recursive(
    st.none() | st.integers() | st.text() | st.datetimes(),
    lambda children: st.lists(children) | st.dictionaries(MEMBERS, children),
)


@given(st.dictionaries(MEMBERS, ANYTHING))
def test_nothing_else_breaks_the_reader(answer):
    assert window_of_answer({**answer, "Status": "Active"}).status is PlanStatus.ACTIVE
