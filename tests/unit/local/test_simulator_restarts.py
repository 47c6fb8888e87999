"""Features of the simulator for replays: restarts that cost time, jobs without limits, names instead of events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated import QUICK, TRAINING_FROM, Account, refusal

from builders import a_request
from trainmaster.local.simulator import SageMakerSimulator, VirtualClock

URI = {"CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints/job1"}}
RESTART = 40


def restarting(**changes):
    return Account(profile=replace(QUICK, restarting_seconds=RESTART, **changes))


def preempted_after(account, seconds, name="job1"):
    account.create(name, **URI)
    account.advance(TRAINING_FROM + seconds)
    account.simulator.call("StopTrainingJob", TrainingJobName=name)
    account.advance(60)


def trained(account, name):
    """Seconds from the beginning of `Training` to that of `Uploading`."""
    steps = {each["Status"]: each["StartTime"] for each in account.describe(name)["SecondaryStatusTransitions"]}
    return (steps["Uploading"] - steps["Training"]).total_seconds()


def test_an_attempt_that_goes_on_from_a_checkpoint_makes_no_progress_while_it_restarts():
    account = restarting()
    preempted_after(account, 30)
    account.create("job2", **URI)
    account.advance(600)
    assert account.status("job2") == ("Completed", "Completed")
    assert trained(account, "job2") == RESTART + 100 - 30


def test_one_that_is_stopped_while_it_restarts_has_kept_what_there_was():
    account = restarting()
    preempted_after(account, 30)
    preempted_after(account, 20, "job2")
    account.create("job3", **URI)
    account.advance(600)
    assert trained(account, "job3") == RESTART + 100 - 30


def test_a_first_attempt_restarts_nothing():
    account = restarting()
    account.create(**URI)
    account.advance(600)
    assert trained(account, "job1") == 100


def test_a_job_without_limits_runs_as_long_as_it_has_to_do():
    account = Account(profile=replace(QUICK, limited=False))
    account.create(StoppingCondition={"MaxRuntimeInSeconds": 30})
    account.advance(600)
    assert account.status() == ("Completed", "Completed")
    assert trained(account, "job1") == 100


def test_the_limits_can_be_lifted_by_a_variable():
    account = Account()
    account.create(StoppingCondition={"MaxRuntimeInSeconds": 30}, Environment={"SIMULATOR_LIMITED": "false"})
    account.advance(600)
    assert account.status() == ("Completed", "Completed")


@pytest.mark.parametrize("value", ["no", "0", ""])
def test_values_other_than_true_and_false_are_rejected(value):
    account = Account()
    code, message = refusal(account.create, Environment={"SIMULATOR_LIMITED": value})
    assert code == "ValidationException"
    assert "true or false" in message


def test_names_of_changed_jobs_come_in_the_place_of_events():
    names, events = [], []
    simulator = SageMakerSimulator(VirtualClock(), profile=QUICK, sink=events.append, on_change=names.append)
    simulator.direct().create_training_job(**a_request("job1"))
    simulator.run_until_idle()
    assert names == ["job1"] * 5
    assert events == []
