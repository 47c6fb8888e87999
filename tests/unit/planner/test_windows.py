"""Training plans' windows: when a job may start on a plan's units, and when it could not keep what it did there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import G5, NOW, P5, a_job, a_past_attempt, a_running_job, an_ended_job, at
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool, reclaimed_at
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.run_times import History
from trainmaster.planner.placement.plan_windows import checkpoint_interval, window_refusal

ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
HOUR = 3600.0


def a_plan(*, starts: float = -HOUR, ends: float | None = 10 * HOUR, status: PlanStatus | None = PlanStatus.ACTIVE):
    ends_at = None if ends is None else at(ends)
    return Pool("plan", 4, False, P5, Kind.TRAINING_PLAN, ARN, at(starts), ends_at, plan_status=status)


def refusal(job, pool, *, units=None, history=None):
    return window_refusal(job, units or {"plan": 1}, {pool.name: pool, G5: Pool(G5, 2)}, NOW, history or History())


def a_short(**fields):
    return a_job(max_runtime=timedelta(hours=1), **fields)


def taught(*seconds, **fields):
    """Return the history of ended jobs of that kind."""
    history = History()
    for index, length in enumerate(seconds):
        job = an_ended_job(f"old{index}", now=NOW, units={"plan": 1}, **fields)
        started = replace(job.attempt, started_at=at(-length), created_at=at(-length - 120))
        history = history.after(replace(job, attempt=started))
    return history


def test_other_kinds_of_pools_have_no_window():
    for kind in (Kind.ON_DEMAND, Kind.SPOT):
        assert refusal(a_job(), replace(a_plan(status=None), kind=kind)) is None
    assert refusal(a_job(), a_plan(status=None), units={G5: 1}) is None
    assert refusal(a_job(), a_plan(), units={"gone": 1}) is None


def test_an_active_plan_with_time_is_open():
    assert refusal(a_short(), a_plan()) is None
    assert refusal(a_short(), a_plan(ends=None)) is None


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "has not reported yet"),
        (PlanStatus.PENDING, "not paid for"),
        (PlanStatus.FAILED, "has failed"),
        (PlanStatus.EXPIRED, "has ended"),
    ],
)
def test_a_plan_that_is_none_yet_or_no_more_is_closed(status, words):
    reason = refusal(a_short(), a_plan(status=status))
    assert reason.until is None
    assert reason.pool == "plan"
    assert words in reason.message()


def test_a_scheduled_plan_opens_when_it_starts():
    reason = refusal(a_short(), a_plan(starts=60, status=PlanStatus.SCHEDULED))
    assert reason.until == at(60)
    assert (
        reason.message() == "cannot use plan: its training plan is not active yet; available from 2026-11-21T12:01:00Z"
    )
    # SageMaker's own clock has made it Active although we have not asked since.
    assert refusal(a_short(), a_plan(starts=0, status=PlanStatus.SCHEDULED)) is None


def test_a_plan_whose_end_has_passed_is_closed_before_sagemaker_says_so():
    assert "has ended" in refusal(a_short(), a_plan(ends=0)).message()
    assert "has ended" in refusal(a_short(checkpointed=True), a_plan(ends=0)).message()


@pytest.mark.parametrize(("ends", "open_"), [(1.5 * HOUR, True), (1.5 * HOUR - 1, False)])
def test_without_checkpoints_it_must_be_expected_to_end_half_an_hour_before_the_plan(ends, open_):
    reason = refusal(a_short(), a_plan(ends=ends))
    assert (reason is None) is open_
    if reason:
        assert (
            reason.message()
            == "cannot use plan: SageMaker reclaims the plan's instances from 2026-11-21T12:59:59Z, before it is "
            "expected to end, and it writes no checkpoints"
        )


@pytest.mark.parametrize(("ends", "open_"), [(2400, True), (2399, False)])
def test_with_checkpoints_it_must_reach_the_first(ends, open_):
    reason = refusal(a_job(checkpointed=True), a_plan(ends=ends))
    assert (reason is None) is open_
    if reason:
        assert "before it could save its work" in reason.message()


def test_a_short_job_with_checkpoints_only_has_to_end():
    job = a_job(checkpointed=True, max_runtime=timedelta(minutes=3))
    assert refusal(job, a_plan(ends=1800 + 180)) is None
    assert refusal(job, a_plan(ends=1800 + 179)) is not None


def test_starting_takes_its_part_of_the_time():
    history = History(startups={"plan": 300.0})
    job = a_job(checkpointed=True, units={"plan": 1})
    assert refusal(job, a_plan(ends=2400 + 300), history=history) is None
    assert refusal(job, a_plan(ends=2400 + 299), history=history) is not None


def test_history_shortens_what_the_time_limit_says():
    job = a_job("new", units={"plan": 1})
    assert refusal(job, a_plan(ends=6 * HOUR)) is not None, "its limit is a day"
    history = taught(*[1200.0] * 40)
    assert refusal(job, a_plan(ends=6 * HOUR), history=history) is None
    assert refusal(job, a_plan(ends=2400), history=history) is not None


def test_it_has_one_chance_so_most_of_its_kind_must_have_been_shorter():
    history = taught(*([600.0] * 8 + [4 * HOUR] * 2) * 4)
    job = a_job("new", units={"plan": 1})
    assert refusal(job, a_plan(ends=2 * HOUR), history=history) is not None


def test_an_interval_that_was_seen_counts_instead_of_the_default():
    job = a_job(checkpointed=True, past=(a_past_attempt(saves_every=timedelta(hours=1)),))
    assert checkpoint_interval(job) == timedelta(hours=1)
    assert refusal(job, a_plan(ends=2400)) is not None
    often = a_job(checkpointed=True, past=(a_past_attempt(saves_every=timedelta(seconds=30)), a_past_attempt(2)))
    assert refusal(often, a_plan(ends=1830)) is None


def test_reclaimed_at_is_the_earliest_of_the_pools():
    early, late = a_plan(ends=HOUR), replace(a_plan(ends=9 * HOUR), name="late")
    pools = {"plan": early, "late": late, G5: Pool(G5, 1)}
    assert reclaimed_at({"late": 1, "plan": 1}, pools) == at(1800)
    assert reclaimed_at({G5: 1}, pools) is None
    assert reclaimed_at({"gone": 1}, pools) is None


def test_a_running_job_is_not_asked_to_leave():
    """Windows are about starts; what runs is stopped by SageMaker when its time comes."""
    assert lifecycle.current(a_running_job()).reclaimed_at is None
