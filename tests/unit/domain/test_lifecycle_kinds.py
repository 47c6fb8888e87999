"""Effect of the kinds of capacity on a job: a plan's end, a warm pool, observed checkpoints, a choice among pools."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import (
    G5,
    NOW,
    P5,
    UNTIL,
    a_demand,
    a_job,
    a_launched_job,
    a_past_attempt,
    a_preempting_job,
    a_running_job,
    an_observation,
    at,
)
from trainmaster.domain.capacity.warm_pools import MAX_KEEP_ALIVE, WarmPool, left_by
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.jobs.observation import Status, Warm

END = at(3600)


def seen(job, status, *, now=END, **fields):
    return lifecycle.observe(job, an_observation(job, status=status, **fields), now)


def on_a_plan(job):
    return replace(job, attempt=replace(job.attempt, reclaimed_at=END))


# ---------------------------------------------------------------- a training plan's end


def test_a_start_remembers_when_its_units_are_taken_back():
    job = lifecycle.start(a_job(), {P5: 1}, (), NOW, reclaimed_at=END)
    assert job.attempt.reclaimed_at == END
    assert lifecycle.set_reclaim_time(job, UNTIL).attempt.reclaimed_at == UNTIL


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (Status.STOPPED, {}),
        (Status.STOPPED, {"stopping_since": END}),
        (Status.STOPPED, {"secondary": "MaxWaitTimeExceeded"}),
        (Status.FAILED, {"failure_reason": "InsufficientCapacityError: the reserved capacity has ended"}),
        (Status.FAILED, {"failure_reason": "AlgorithmError: exit code 143"}),
        (Status.FAILED, {}),
    ],
)
def test_a_job_that_ends_with_its_plan_waits_again(status, fields):
    job = seen(on_a_plan(a_running_job()), status, **fields)
    assert (job.state, job.attempt.outcome) == (JobState.PREEMPTED, Outcome.RECLAIMED)
    assert (job.units, job.retry_at, job.failure, job.preemptions, job.failures) == ({}, None, None, 0, {})
    assert "training plan ends" in job.history[-1].reason


def test_once_more_after_a_hold():
    job = seen(on_a_plan(a_running_job()), Status.STOPPED)
    assert lifecycle.release(lifecycle.hold(job, END, "me"), END, "me").state is JobState.PREEMPTED


@pytest.mark.parametrize(
    ("job", "status", "fields", "state"),
    [
        (a_running_job(), Status.COMPLETED, {}, JobState.COMPLETED),
        (a_running_job(), Status.STOPPED, {"secondary": "MaxRuntimeExceeded"}, JobState.STOPPED),
        (a_running_job(), Status.STOPPED, {"stopping_since": at(3000)}, JobState.STOPPED),
        (lifecycle.request_stop(a_running_job(), NOW, "me"), Status.STOPPED, {}, JobState.STOPPED),
    ],
    ids=["completed", "too long", "stopped by a person before", "stopped by its user"],
)
def test_other_ends_stay_what_they_are(job, status, fields, state):
    assert seen(on_a_plan(job), status, **fields).state is state


def test_a_job_that_steps_aside_is_preempted_even_then():
    job = seen(on_a_plan(lifecycle.mark_stop_sent(a_preempting_job())), Status.STOPPED, stopping_since=END)
    assert job.attempt.outcome is Outcome.PREEMPTED


def test_a_failure_before_the_end_is_a_failure():
    assert seen(on_a_plan(a_running_job()), Status.FAILED, now=at(3000)).state is JobState.FAILED
    assert seen(a_running_job(), Status.FAILED).state is JobState.FAILED


# ---------------------------------------------------------------- warm pools


def warm(job, status=Status.COMPLETED, **fields):
    after = seen(job, status, **fields)
    return left_by(job, after)


def test_a_job_with_keep_alive_leaves_a_warm_pool():
    job = a_running_job(keep_alive=True, warm_pool_key="abc", priority=3, units={P5: 2})
    assert warm(job, warm_until=UNTIL) == WarmPool("job1", {P5: 2}, "abc", UNTIL, priority=3)


@pytest.mark.parametrize("state", [None, Warm.AVAILABLE, Warm.IN_USE])
@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.STOPPED])
def test_it_is_there_until_sagemaker_says_otherwise(status, state):
    assert warm(a_running_job(keep_alive=True), status, warm=state).until == END + MAX_KEEP_ALIVE


@pytest.mark.parametrize("state", [Warm.NONE, Warm.TERMINATED, Warm.REUSED])
def test_or_it_is_not_there(state):
    assert warm(a_running_job(keep_alive=True), warm=state) is None


def test_without_keep_alive_or_without_instances_there_is_none():
    assert warm(a_running_job()) is None
    assert warm(a_launched_job(keep_alive=True), Status.STOPPED) is None
    assert warm(a_launched_job(keep_alive=True), Status.COMPLETED, started_at=NOW) is not None


def test_that_of_a_job_that_was_being_stopped_is_to_end():
    pool = warm(a_preempting_job(keep_alive=True), Status.STOPPED)
    assert pool.ending_since == END
    assert warm(a_running_job(keep_alive=True)).ending_since is None


def test_only_the_change_that_ends_the_attempt_leaves_it():
    job = a_running_job(keep_alive=True)
    ended = seen(job, Status.FAILED, failure_reason="InternalServerError: sorry")
    assert ended.state is JobState.PENDING
    assert left_by(job, ended) is not None, "it is tried again, and its instances stay all the same"
    assert left_by(ended, lifecycle.hold(ended, END, "me")) is None
    assert left_by(a_job(), lifecycle.hold(a_job(), END, "me")) is None


# ---------------------------------------------------------------- checkpoints


def test_two_checkpoints_tell_how_often_it_writes_them():
    one = lifecycle.record_checkpoint(a_running_job(), at(700))
    assert (one.attempt.saved_at, one.attempt.saves_every) == (at(700), None)
    two = lifecycle.record_checkpoint(one, at(1900))
    assert (two.attempt.saved_at, two.attempt.saves_every) == (at(1900), timedelta(seconds=1200))
    three = lifecycle.record_checkpoint(two, at(2200))
    assert three.attempt.saves_every == timedelta(seconds=300)
    assert lifecycle.record_checkpoint(three, at(3400)).attempt.saves_every == timedelta(seconds=300)


def test_one_that_is_not_newer_tells_nothing():
    job = lifecycle.record_checkpoint(a_running_job(), at(700))
    assert lifecycle.record_checkpoint(job, at(700)) is lifecycle.record_checkpoint(job, at(600)) is None


def test_checkpoints_of_an_earlier_attempt_do_not_count():
    job = lifecycle.record_checkpoint(a_running_job(past=(a_past_attempt(),)), at(-5000))
    assert lifecycle.record_checkpoint(job, at(900)).attempt.saves_every is None


# ---------------------------------------------------------------- a choice among pools


def test_sagemakers_choice_is_a_type_and_the_pool_may_have_another_name():
    job = a_launched_job(demand=a_demand({"plan": 2}, {G5: 4}))
    job = replace(job, attempt=replace(job.attempt, units={"plan": 2, G5: 4}, choices=(P5, G5)))
    chosen = seen(job, Status.IN_PROGRESS, secondary="Downloading", chosen_type=P5)
    assert (chosen.units, chosen.attempt.choices) == ({"plan": 2}, (P5,))
    assert (chosen.attempt.instance_type, chosen.history[-2].reason) == (P5, f"SageMaker has chosen 2 x plan ({P5})")
    assert seen(chosen, Status.IN_PROGRESS, secondary="Downloading", chosen_type=P5) is None
    assert seen(job, Status.IN_PROGRESS, secondary="Downloading", chosen_type=G5).units == {G5: 4}
    assert seen(job, Status.IN_PROGRESS, chosen_type="ml.m5.large") is None


def test_a_choice_reported_with_the_end_is_stored():
    job = a_launched_job(demand=a_demand({"plan": 2}, {G5: 4}))
    for units, choices in (({"plan": 2, G5: 4}, (P5, G5)), ({"plan": 2}, (P5,))):
        one = replace(job, attempt=replace(job.attempt, units=units, choices=choices))
        assert seen(one, Status.COMPLETED, chosen_type=P5).attempts[-1].instance_type == P5
        assert seen(one, Status.COMPLETED).attempts[-1].instance_type == ""
