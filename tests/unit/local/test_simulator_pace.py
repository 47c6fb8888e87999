"""Scripts that work faster on more instances, across attempts and while they run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated import ENDED_AT, TRAINING_FROM, Account, resources

SAVED = {"CheckpointConfig": {"S3Uri": "s3://bucket/job1"}}


@pytest.fixture
def account():
    """A job does 100 s of work from second 20 on, as many times faster as it has instances."""
    account = Account(limits=None)
    account.simulator.profiles.pace = lambda request: request["ResourceConfig"]["InstanceCount"]
    return account


def ended_at(account, name="job1") -> float:
    account.simulator.run_until_idle()
    return account.seconds(account.describe(name)["TrainingEndTime"])


def test_work_takes_half_as_long_at_twice_the_pace(account):
    account.create(ResourceConfig=resources(count=2))
    assert ended_at(account) == ENDED_AT - 50


def test_the_next_attempt_does_the_rest_of_the_work_at_its_own_pace(account):
    account.create(ResourceConfig=resources(count=1), **SAVED)
    account.advance(TRAINING_FROM + 40)
    account.stop()
    account.simulator.run_until_idle()
    begun = account.seconds(account.simulator.now())
    account.create("job2", ResourceConfig=resources(count=4), **SAVED)
    assert ended_at(account, "job2") - begun == ENDED_AT - 100 + (100 - 40) / 4


def test_the_cost_of_resuming_may_depend_on_the_stop(account):
    account.simulator.profiles.adjust = lambda _, profile: replace(profile, restarting_seconds=7)
    account.create(**SAVED)
    account.advance(TRAINING_FROM + 40)
    account.stop()
    account.simulator.run_until_idle()
    begun = account.seconds(account.simulator.now())
    account.create("job2", **SAVED)
    assert ended_at(account, "job2") - begun == ENDED_AT - 100 + 7 + 60


def test_a_first_attempt_restarts_nothing(account):
    account.simulator.profiles.adjust = lambda _, profile: replace(profile, restarting_seconds=7)
    account.create(**SAVED)
    assert ended_at(account) == ENDED_AT


def test_a_running_job_pauses_and_goes_on_at_another_pace(account):
    account.create()
    account.advance(TRAINING_FROM + 30)
    account.simulator.profiles.pace = lambda _: 2
    account.simulator.change_pace("job1", pause_seconds=5)
    assert ended_at(account) == TRAINING_FROM + 30 + 5 + (100 - 30) / 2 + 10


def test_pauses_that_overlap_are_one(account):
    account.create()
    account.advance(TRAINING_FROM + 30)
    account.simulator.change_pace("job1", pause_seconds=5)
    account.advance(2)
    account.simulator.change_pace("job1", pause_seconds=5)
    assert ended_at(account) == ENDED_AT + 7


def test_work_done_before_and_after_a_change_of_pace_is_saved_once(account):
    account.create(**SAVED)
    account.advance(TRAINING_FROM + 30)
    account.simulator.profiles.pace = lambda _: 2
    account.simulator.change_pace("job1", pause_seconds=5)
    account.advance(5 + 10)
    account.stop()
    account.simulator.run_until_idle()
    begun = account.seconds(account.simulator.now())
    account.create("job2", **SAVED)
    assert ended_at(account, "job2") - begun == ENDED_AT - 100 + (100 - 30 - 20) / 2


@pytest.mark.parametrize("seconds", [0, 15, ENDED_AT + 1])
def test_a_job_whose_script_does_not_work_now_is_not_disturbed(account, seconds):
    account.create()
    account.advance(seconds)
    account.simulator.change_pace("job1", pause_seconds=50)
    assert ended_at(account) == ENDED_AT
