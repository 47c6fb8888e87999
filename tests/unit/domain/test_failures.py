"""Retries of failed jobs: by class of failure, within the queue's bound or the job's own, with back-off."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, P5, a_job, a_launched_job, a_preempting_job, a_running_job, a_starting_job, an_observation, at
from trainmaster.domain.elastic.sizes import Elastic, Hook, RestartBudget
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import Job, JobState
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import FailureClass, Retry

ALGORITHM, SERVICE, SPOT, CAPACITY = (
    FailureClass.ALGORITHM,
    FailureClass.SERVICE,
    FailureClass.SPOT,
    FailureClass.CAPACITY,
)
SAID = {
    ALGORITHM: "AlgorithmError: exit code 1",
    SERVICE: "InternalServerError: We encountered an internal error. Please try again.",
    CAPACITY: "CapacityError: Unable to provision requested ML compute capacity.",
}


def failing(job: Job, failure: FailureClass, now: Any = NOW, **rules: Retry) -> Job:
    """The job after its attempt failed so, under a queue's rules by class."""
    fields: dict[str, Any] = {"status": Status.FAILED, "failure_reason": SAID.get(failure)}
    if failure is SPOT:
        fields = {"status": Status.STOPPED, "secondary": "MaxWaitTimeExceeded"}
    retries = {FailureClass(name): rule for name, rule in rules.items()} or None
    after = lifecycle.observe(job, an_observation(job, **fields), now, retries)
    assert after is not None
    return after


def run_again(job: Job, now: Any = NOW) -> Job:
    job = lifecycle.mark_launched(lifecycle.start(job, {P5: 1}, (), now))
    running = lifecycle.observe(job, an_observation(job, secondary="Training", started_at=now), now)
    assert running is not None
    return running


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("AlgorithmError: exit code 1", ALGORITHM),
        ("InternalServerError: sorry", SERVICE),
        ("CapacityError: none", CAPACITY),
        ("InsufficientCapacityError: none", CAPACITY),
        ("ClientError: no such bucket", None),
        ("CapacityErrors: plural", None),
        ("", None),
        (None, None),
    ],
)
def test_the_class_is_told_by_how_the_reason_begins(reason, expected):
    job = a_running_job()
    assert an_observation(job, status=Status.FAILED, failure_reason=reason).failure_class is expected
    assert an_observation(job, status=Status.STOPPED, failure_reason=reason).failure_class is None


class TestByDefault:
    def test_the_users_code_is_not_tried_again(self):
        job = failing(a_running_job(), ALGORITHM)
        assert (job.state, job.failure, job.failures) == (JobState.FAILED, SAID[ALGORITHM], {ALGORITHM: 1})

    def test_the_request_is_not_either(self):
        job = a_running_job(retries=dict.fromkeys(FailureClass, 9))
        seen = an_observation(job, status=Status.FAILED, failure_reason="ClientError: no such bucket")
        assert lifecycle.observe(job, seen, NOW).state is JobState.FAILED

    def test_sagemakers_own_fault_is_tried_three_times(self):
        job = a_running_job()
        for number, wait in ((1, 60), (2, 120), (3, 240)):
            job = failing(job, SERVICE)
            assert (job.state, job.retry_at, job.attempt.outcome) == (JobState.PENDING, at(wait), Outcome.FAILED)
            assert f"retry {number} of at most 3" in job.history[-1].reason
            job = run_again(job)
        assert failing(job, SERVICE).state is JobState.FAILED

    def test_a_spot_job_without_instances_is_tried_for_ever(self):
        job = a_running_job()
        for _ in range(30):
            job = run_again(failing(job, SPOT))
        assert (len(job.past), job.failures) == (30, {SPOT: 30})

    def test_missing_capacity_is_waited_for_for_ever(self):
        job = a_launched_job()
        for _ in range(30):
            job = lifecycle.mark_launched(lifecycle.start(failing(job, CAPACITY), {P5: 1}, (), NOW))
        assert job.capacity_failures == 30


class TestBounds:
    def test_the_jobs_own_bound_wins(self):
        job = failing(a_running_job(retries={ALGORITHM: 1}), ALGORITHM)
        assert (job.state, job.retry_at) == (JobState.PENDING, at(60))
        assert failing(run_again(job), ALGORITHM).state is JobState.FAILED

    def test_a_job_may_ask_for_no_new_try(self):
        job = failing(a_launched_job(retries={CAPACITY: 0}), CAPACITY)
        assert (job.state, job.failure) == (JobState.FAILED, SAID[CAPACITY])

    def test_the_queues_rule_sets_bound_and_wait(self):
        rule = Retry(max_retries=2, first_delay=timedelta(seconds=10), max_delay=timedelta(seconds=15))
        job = failing(a_running_job(), ALGORITHM, algorithm=rule)
        assert job.retry_at == at(10)
        job = failing(run_again(job), ALGORITHM, algorithm=rule)
        assert job.retry_at == at(15)
        assert failing(run_again(job), ALGORITHM, algorithm=rule).state is JobState.FAILED

    def test_classes_are_counted_apart(self):
        job = a_running_job(retries={SERVICE: 1, ALGORITHM: 1})
        job = run_again(failing(job, SERVICE))
        job = run_again(failing(job, ALGORITHM))
        assert job.failures == {SERVICE: 1, ALGORITHM: 1}
        assert failing(job, SERVICE).state is JobState.FAILED

    def test_capacity_counts_in_a_row(self):
        job = a_launched_job(retries={CAPACITY: 1})
        job = run_again(failing(job, CAPACITY))
        assert (job.failures, job.capacity_failures) == ({}, 0)
        assert failing(job, CAPACITY).state is JobState.PENDING

    def test_the_whole_story_is_the_failure(self):
        job = run_again(failing(a_running_job(retries={ALGORITHM: 2}), ALGORITHM))
        job = run_again(failing(job, SERVICE))
        job = run_again(failing(job, ALGORITHM))
        failed = failing(job, ALGORITHM)
        assert failed.failure == (
            "AlgorithmError: exit code 1 (tried 3 times, the maximum; "
            "attempt 1: AlgorithmError: exit code 1; "
            "attempt 2: InternalServerError: We encountered an internal error. Please try again.; "
            "attempt 3: AlgorithmError: exit code 1)"
        )
        assert failed.attempt.reason == SAID[ALGORITHM]

    @given(st.integers(0, 12), st.text(max_size=1024))
    def test_the_story_has_a_bound_and_its_end(self, tries, reason):
        job = a_running_job(retries={ALGORITHM: tries})
        for _ in range(tries):
            seen = an_observation(job, status=Status.FAILED, failure_reason="AlgorithmError: " + reason)
            job = run_again(lifecycle.observe(job, seen, NOW))
        seen = an_observation(job, status=Status.FAILED, failure_reason="AlgorithmError: " + reason)
        failed = lifecycle.observe(job, seen, NOW)
        assert failed.state is JobState.FAILED
        assert len(failed.failure) < 1024 + 1500
        assert failed.failure.startswith("AlgorithmError: ")


class TestAttempts:
    def test_each_try_that_ran_has_a_number_of_its_own(self):
        job = run_again(failing(a_running_job(retries={ALGORITHM: 5}), ALGORITHM))
        assert (job.attempt.number, job.attempt.training_job_name) == (2, "job1-qstamp-2")
        assert [attempt.outcome for attempt in job.past] == [Outcome.FAILED]

    def test_a_start_that_left_nothing_behind_uses_its_number_again(self):
        job = lifecycle.retry_or_fail(a_starting_job(), CAPACITY, NOW, "ResourceLimitExceeded")
        again = lifecycle.start(job, {P5: 1}, (), at(60))
        assert (again.attempt.number, again.past) == (1, ())

    def test_a_job_that_had_stepped_aside_waits_as_such(self):
        job = replace(a_preempting_job(), retries={SERVICE: 1})
        assert failing(job, SERVICE).state is JobState.PREEMPTED

    @pytest.mark.parametrize("failure", [SERVICE, SPOT])
    def test_a_job_that_fails_while_it_steps_aside_waits_as_preempted_and_counts(self, failure):
        job = failing(a_preempting_job(), failure)
        assert (job.state, job.failures, job.reservation) == (JobState.PREEMPTED, {failure: 1}, None)

    def test_missing_capacity_while_it_steps_aside_is_what_was_wanted(self):
        job = failing(a_preempting_job(), CAPACITY)
        assert (job.state, job.attempt.outcome, job.failures) == (JobState.PREEMPTED, Outcome.PREEMPTED, {})

    @pytest.mark.parametrize("failure", list(FailureClass))
    def test_a_job_that_its_user_stops_is_not_tried_again(self, failure):
        job = lifecycle.request_stop(a_running_job(retries=dict.fromkeys(FailureClass, 9)), NOW, "ada")
        assert failing(job, failure).state is JobState.STOPPED

    def test_a_job_that_worked_for_too_long_is_not_tried_again(self):
        job = a_running_job(retries=dict.fromkeys(FailureClass, 9))
        seen = an_observation(job, status=Status.STOPPED, secondary="MaxRuntimeExceeded")
        assert lifecycle.observe(job, seen, NOW).state is JobState.STOPPED

    def test_a_report_told_twice_counts_once(self):
        job = a_running_job(retries={ALGORITHM: 5})
        seen = an_observation(job, status=Status.FAILED, failure_reason=SAID[ALGORITHM])
        after = lifecycle.observe(job, seen, NOW)
        assert lifecycle.observe(after, seen, NOW) is None

    def test_an_end_that_is_the_first_report_tells_when_it_began(self):
        job = a_launched_job()
        ended = lifecycle.observe(job, an_observation(job, status=Status.COMPLETED, started_at=at(50)), at(90))
        assert (ended.attempt.started_at, ended.attempt.ended_at) == (at(50), at(90))

    def test_interruptions_are_counted_and_never_uncounted(self):
        job = a_running_job()
        job = lifecycle.observe(job, an_observation(job, secondary="Interrupted", interruptions=2), NOW)
        assert job.attempt.interruptions == 2
        assert lifecycle.observe(job, an_observation(job, secondary="Training", interruptions=1), NOW) is None
        assert failing(job, SPOT).attempt.interruptions == 2


class TestFullRestarts:
    """The nodes of an elastic job have restarted so often that they ask for a new attempt (HyperPod: `runPolicy`)."""

    ASKED = "AlgorithmError: trainmaster: full restart: 4 restarts within 3600 seconds, 3 allowed, exit code: 1"

    @staticmethod
    def group(most: int) -> Job:
        budget = RestartBudget(restarts_before_full=3, max_full_restarts=most)
        return a_job(elastic=Elastic(min_instances=1, max_instances=4, hook=Hook.MEMBERS, budget=budget))

    def asking(self, job: Job, now: Any, reason: str = ASKED) -> Job:
        after = lifecycle.observe(job, an_observation(job, status=Status.FAILED, failure_reason=reason), now)
        assert after is not None
        return after

    def test_the_job_goes_on_as_a_new_attempt_at_once(self):
        after = self.asking(run_again(self.group(1)), at(60))
        assert (after.state, after.retry_at) == (JobState.PENDING, at(60))
        assert after.history[-1].reason.endswith("(full restart 1 of at most 1)")
        assert run_again(after, at(70)).attempt.training_job_name == "job1-qstamp-2"

    def test_no_more_often_within_the_period_than_it_may(self):
        again = run_again(self.asking(run_again(self.group(1)), at(60)), at(70))
        assert self.asking(again, at(60 + 3599)).state is JobState.FAILED
        later = self.asking(again, at(60 + 3600))
        assert later.state is JobState.PENDING
        assert self.asking(run_again(later, at(3700)), at(3800)).state is JobState.FAILED

    def test_other_failures_do_not_count(self):
        once = lifecycle.observe(
            again := run_again(self.group(1)),
            an_observation(again, status=Status.FAILED, failure_reason=SAID[SERVICE]),
            at(50),
        )
        assert once is not None
        assert self.asking(run_again(once, at(55)), at(60)).state is JobState.PENDING

    @pytest.mark.parametrize(
        "reason",
        [
            "AlgorithmError: trainmaster: restart budget spent: 4 restarts, 3 allowed in total, exit code: 1",
            "AlgorithmError: no trainmaster: full restart, exit code: 1",
            "ClientError: trainmaster: full restart",
        ],
    )
    def test_a_job_without_the_option_fails(self, reason):
        assert self.asking(run_again(self.group(5)), at(60), reason).state is JobState.FAILED

    def test_nor_has_any_other_job_full_restarts(self):
        assert self.asking(a_running_job(), at(60)).state is JobState.FAILED
        assert self.asking(run_again(self.group(0)), at(60)).state is JobState.FAILED

    def test_its_members_end_first(self):
        job = lifecycle.mark_launched(lifecycle.start(self.group(1), {P5: 2}, (), NOW))
        (member,) = job.attempt.members
        job = self.asking(lifecycle.mark_member_launched(job, member.training_job_name), at(60))
        assert job.state is JobState.STARTING
        gone = an_observation(status=Status.FAILED, training_job_name=member.training_job_name)
        ended = lifecycle.observe(job, gone, at(70))
        assert ended is not None
        assert self.asking(ended, at(80)).state is JobState.PENDING
