"""Effect of reports and requests on a job: true causes of stops, preemptions, time-outs and missing capacity."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    G5,
    NOW,
    P5,
    a_demand,
    a_held_job,
    a_job,
    a_launched_job,
    a_preempted_job,
    a_preempting_job,
    a_running_job,
    a_starting_job,
    an_ended_job,
    an_observation,
    at,
)
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import ACTIVE, ENDED, TRANSITIONS, JobState
from trainmaster.domain.jobs.names import attempt_name
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import FailureClass, Retry
from trainmaster.domain.times import ROUNDING

LATER = at(100)
NO_ROOM = "CapacityError: Unable to provision requested ML compute capacity."


def seen(job, status, **fields):
    return lifecycle.observe(job, an_observation(job, status=status, **fields), LATER)


def test_every_state_is_in_the_table_and_ended_states_are_final():
    assert set(TRANSITIONS) == set(JobState)
    assert all(not TRANSITIONS[state] for state in ENDED)


def test_a_changed_job_equals_a_replaced_one_and_keeps_no_cached_property():
    job = a_running_job("job")
    assert (job.order, job.lane) == (job.order, job.lane)
    changed = job.changed(priority=5, share="other")
    assert changed == replace(job, priority=5, share="other")
    assert (changed.order[0], changed.lane) == (-5, replace(job, share="other").lane)


def test_a_job_has_no_fields_of_other_names():
    with pytest.raises(TypeError, match="a job has no colour, weight"):
        a_job("job").changed(weight=1, colour="red", priority=2)


def test_a_completed_job_ends_and_holds_nothing():
    job = seen(a_running_job(), Status.COMPLETED)
    assert (job.state, job.units, job.attempt.outcome, job.failure) == (JobState.COMPLETED, {}, Outcome.COMPLETED, None)


def test_a_failed_job_ends_with_sagemakers_reason():
    job = seen(a_running_job(), Status.FAILED, failure_reason="AlgorithmError: exit code 1")
    assert (job.state, job.failure) == (JobState.FAILED, "AlgorithmError: exit code 1")


def test_a_job_stopped_by_its_user_outside_the_queue_ends_as_stopped():
    assert seen(a_running_job(), Status.STOPPED).state is JobState.STOPPED


def test_a_preempted_job_waits_again_and_keeps_its_entry_time():
    job = seen(a_preempting_job(entry_time=at(-500)), Status.STOPPED)
    assert (job.state, job.entry_time, job.attempt.outcome) == (JobState.PREEMPTED, at(-500), Outcome.PREEMPTED)


def test_a_job_that_its_user_stops_while_it_is_preempted_is_not_resumed():
    job = lifecycle.request_stop(a_preempting_job(), LATER, "its user")
    assert seen(job, Status.STOPPED).state is JobState.STOPPED


def test_a_stop_that_began_before_we_decided_to_preempt_was_the_users():
    job = lifecycle.mark_stop_called(a_preempting_job(now=NOW), NOW)
    assert seen(job, Status.STOPPED, stopping_since=at(-61)).state is JobState.STOPPED
    assert seen(job, Status.STOPPED, stopping_since=at(-10)).state is JobState.PREEMPTED
    assert seen(job, Status.STOPPED, stopping_since=at(1)).state is JobState.PREEMPTED


def test_a_stop_without_a_call_of_the_queue_is_the_users_whenever_it_was():
    assert seen(a_preempting_job(now=NOW), Status.STOPPED, stopping_since=at(1)).state is JobState.STOPPED


OFFSETS = st.integers(-3600, 3600).map(lambda seconds: timedelta(seconds=seconds))
CALLS = st.integers(0, 30).map(lambda seconds: timedelta(seconds=seconds))


def preempted_at(decided, answered):
    """A job whose training job was created within a call, and that is preempted then; SageMaker accepts our stop."""
    running = a_running_job(now=NOW)
    running = replace(running, attempt=replace(running.attempt, launched_at=NOW + answered))
    return lifecycle.mark_stop_sent(lifecycle.preempt(running, "job9", decided))


@given(ahead=OFFSETS, answered=CALLS, part=st.floats(0, 1), called=CALLS)
def test_our_own_stop_is_never_taken_for_a_users_however_far_the_clocks_are_apart(ahead, answered, part, called):
    job = preempted_at(at(3600), answered)
    times = {"created_at": NOW + part * answered + ahead, "stopping_since": at(3600) + called + ahead}
    assert seen(job, Status.STOPPED, **times).state is JobState.PREEMPTED


@given(ahead=OFFSETS, answered=CALLS, part=st.floats(0, 1), before=CALLS)
def test_a_users_stop_is_known_if_it_came_earlier_than_a_call_lasts(ahead, answered, part, before):
    job = preempted_at(at(3600), answered)
    stopped = at(3600) - answered - ROUNDING - before - timedelta(milliseconds=1)
    times = {"created_at": NOW + part * answered + ahead, "stopping_since": stopped + ahead}
    assert seen(job, Status.STOPPED, **times).state is JobState.STOPPED


def test_a_job_that_completes_while_it_is_preempted_is_completed():
    assert seen(a_preempting_job(), Status.COMPLETED).state is JobState.COMPLETED


def test_a_time_out_ends_the_job_even_while_it_is_preempted():
    job = seen(a_preempting_job(), Status.STOPPED, secondary="MaxRuntimeExceeded")
    assert (job.state, "MaxRuntimeExceeded" in job.failure) == (JobState.STOPPED, True)


def test_missing_capacity_puts_the_job_back_with_back_off_and_burns_no_attempt():
    job = seen(a_launched_job(), Status.FAILED, failure_reason=NO_ROOM)
    assert (job.state, job.retry_at, job.attempt.outcome) == (
        JobState.PENDING,
        LATER + timedelta(seconds=60),
        Outcome.RETURNED,
    )


def test_a_pending_time_out_is_missing_capacity_too():
    job = a_launched_job(max_pending=timedelta(seconds=90))
    assert seen(job, Status.STOPPED).state is JobState.PENDING


def test_a_stop_before_the_pending_time_out_was_the_users():
    job = a_launched_job(max_pending=timedelta(seconds=900))
    assert seen(job, Status.STOPPED).state is JobState.STOPPED


def test_a_start_that_was_given_up_is_missing_capacity_unless_it_began_after_all():
    asked = lifecycle.give_up_start(a_launched_job(), at(50))
    job = lifecycle.mark_stop_called(asked, at(50))
    lacking = seen(job, Status.STOPPED, stopping_since=at(51))
    begun = seen(job, Status.STOPPED, stopping_since=at(51), started_at=at(49))
    assert (lacking.attempt.outcome, lacking.failures) == (Outcome.RETURNED, {FailureClass.CAPACITY: 1})
    assert (begun.state, begun.attempt.outcome, begun.attempt.ran) == (JobState.PREEMPTED, Outcome.PREEMPTED, 51)
    assert (begun.failures, begun.retry_at, begun.attempt.shortages) == ({}, None, {})


def test_back_off_doubles_up_to_a_bound():
    waits = [lifecycle.back_off(n, Retry()).total_seconds() for n in (1, 2, 3, 5, 9, 100)]
    assert waits == [60, 120, 240, 960, 960, 960]


def test_back_off_restarts_after_the_job_has_run():
    job = replace(a_launched_job(), capacity_failures=4)
    assert seen(job, Status.IN_PROGRESS, secondary="Training").capacity_failures == 0


def test_a_start_that_left_no_training_job_behind_uses_its_number_again():
    back = lifecycle.requeue_unlaunched(a_starting_job(), NOW, "ResourceLimitExceeded")
    again = lifecycle.start(back, {P5: 1}, (), LATER)
    assert (again.attempt.number, again.attempt.training_job_name, again.past) == (1, "job1", ())


def test_an_attempt_whose_name_is_taken_is_followed_by_the_next_on_the_same_units():
    first = a_starting_job()
    second = lifecycle.take_next_number(first, LATER, "another's")
    assert (second.state, second.units, second.attempt.number) == (JobState.STARTING, first.units, 2)
    assert (second.attempt.training_job_name, second.attempt.created_at) == (f"{first.name}-qstamp-2", LATER)
    assert (second.past[0].outcome, second.past[0].reason) == (Outcome.RETURNED, "its name is taken: another's")
    assert (second.past[0].found_no_capacity, second.capacity_failures) == (False, 0)
    third = lifecycle.take_next_number(second, LATER, "another's")
    assert [lifecycle.taken_names(job) for job in (first, second, third)] == [0, 1, 2]


def test_only_names_taken_in_a_row_are_counted():
    job = lifecycle.take_next_number(a_starting_job(), LATER, "another's")
    tried = lifecycle.retry_or_fail(lifecycle.mark_launched(job), FailureClass.SERVICE, LATER, "bad luck")
    again = lifecycle.start(tried, job.units, (), LATER)
    assert lifecycle.taken_names(again) == 0


def test_a_start_whose_training_job_failed_for_capacity_needs_a_new_name():
    back = lifecycle.requeue_unlaunched(a_launched_job(), NOW, NO_ROOM)
    again = lifecycle.start(back, {P5: 1}, (), LATER)
    assert (again.attempt.training_job_name, len(again.past)) == ("job1-qstamp-2", 1)


def test_a_resumed_job_that_meets_no_capacity_waits_as_preempted():
    again = lifecycle.start(a_preempted_job(), {P5: 1}, (), LATER)
    assert lifecycle.requeue_unlaunched(again, LATER, "no room").state is JobState.PREEMPTED


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED, Status.STOPPED, Status.STOPPING])
def test_a_report_about_an_old_attempt_never_touches_a_newer_one(status):
    old = a_preempted_job()
    resumed = lifecycle.mark_launched(lifecycle.start(old, {P5: 1}, (), LATER))
    assert lifecycle.observe(resumed, an_observation(old, status=status), LATER) is None


def test_reports_about_jobs_that_hold_nothing_change_nothing():
    for job in (a_job(), a_preempted_job(), a_held_job(), an_ended_job()):
        assert lifecycle.observe(job, an_observation(job, status=Status.FAILED), LATER) is None


def test_a_report_told_twice_changes_nothing_the_second_time():
    job = seen(a_launched_job(), Status.IN_PROGRESS, secondary="Training")
    assert seen(job, Status.IN_PROGRESS, secondary="Training") is None
    assert seen(job, Status.IN_PROGRESS, secondary="Downloading") is None


def test_a_job_starts_to_run_when_its_instances_are_at_work():
    job = a_launched_job()
    for secondary in ("Starting", "Pending", ""):
        assert seen(job, Status.IN_PROGRESS, secondary=secondary) is None
    assert seen(job, Status.IN_PROGRESS, secondary="Downloading").state is JobState.RUNNING


def test_a_stop_seen_from_outside_is_capacity_on_the_way_and_ends_the_job():
    job = seen(a_running_job(), Status.STOPPING)
    assert (job.state, job.stopping) == (JobState.RUNNING, True)
    assert seen(job, Status.STOPPED).failure == "stopped outside the queue"


def test_a_stop_that_was_seen_beginning_may_still_turn_out_to_be_a_limit_of_sagemaker():
    timed_out = seen(seen(a_running_job(), Status.STOPPING), Status.STOPPED, secondary="MaxRuntimeExceeded")
    assert "MaxRuntimeExceeded" in timed_out.failure
    pending = seen(a_launched_job(max_pending=timedelta(seconds=90)), Status.STOPPING)
    assert seen(pending, Status.STOPPED).state is JobState.PENDING


def test_once_sagemaker_has_chosen_the_other_pools_are_free():
    job = a_launched_job(demand=a_demand({P5: 2}, {G5: 4}))
    job = replace(job, attempt=replace(job.attempt, units={P5: 2, G5: 4}, choices=(P5, G5)))
    chosen = seen(job, Status.IN_PROGRESS, secondary="Downloading", chosen_type=G5)
    assert chosen.units == {G5: 4}


def test_hold_and_release_return_to_where_the_job_came_from():
    for job in (a_job(), a_preempted_job()):
        held = lifecycle.hold(job, NOW, "me")
        assert lifecycle.release(held, LATER, "me").state is job.state


@pytest.mark.parametrize("job", [a_running_job(), an_ended_job(), a_held_job()], ids=lambda job: job.state)
def test_only_waiting_jobs_can_be_held(job):
    with pytest.raises(IllegalTransition):
        lifecycle.hold(job, NOW, "me")


def test_a_waiting_job_cannot_be_stopped_nor_an_active_one_cancelled():
    with pytest.raises(IllegalTransition):
        lifecycle.request_stop(a_job(), NOW, "me")
    with pytest.raises(IllegalTransition):
        lifecycle.cancel(a_running_job(), NOW, "me")


def test_every_change_counts_the_version_up_and_is_told():
    job = lifecycle.reprioritize(a_job(priority=1), 7, LATER, "me")
    assert (job.version, job.priority, job.history[-1].reason) == (2, 7, "priority 1 -> 7 by me")


def test_active_jobs_alone_hold_units():
    for job in (a_starting_job(), a_launched_job(), a_running_job(), a_preempting_job()):
        assert job.state in ACTIVE
        assert job.units == {P5: 1}


def test_attempt_names_are_cut_to_what_sagemaker_takes_and_stay_apart():
    long_one, other = "a" * 63, "a" * 62 + "b"
    names = {attempt_name(job, n) for job in (long_one, other) for n in (2, 3, 1000)}
    assert len(names) == 6
    assert all(len(name) <= 63 for name in names)
    assert attempt_name("job1", 1) == "job1"
    assert attempt_name("job1", 2) == "job1-qstamp-2"
