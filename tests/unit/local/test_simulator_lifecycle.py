"""The lifecycle of a training job, and what ends it early."""

from __future__ import annotations

import pytest
from simulated import CPU, ENDED_AT, QUICK, TRAINING_FROM, Account, refusal, resources

from trainmaster.local.simulator import Outcome, SageMakerSimulator, VirtualClock


def test_an_undisturbed_job_passes_every_secondary_status_and_completes():
    account = Account()
    account.create()
    account.advance(ENDED_AT)
    assert account.status() == ("Completed", "Completed")
    assert account.passed() == ["Starting", "Downloading", "Training", "Uploading", "Completed"]


def test_transitions_follow_each_other_without_gap_and_the_last_is_closed():
    account = Account()
    account.create()
    account.advance(ENDED_AT)
    transitions = account.describe()["SecondaryStatusTransitions"]
    starts = [account.seconds(each["StartTime"]) for each in transitions]
    ends = [account.seconds(each["EndTime"]) for each in transitions]
    assert starts == [0, 10, 20, 120, 130]
    assert ends == [10, 20, 120, 130, 130]


def test_the_transition_that_goes_on_has_no_end():
    account = Account()
    account.create()
    account.advance(50)
    assert "EndTime" not in account.describe()["SecondaryStatusTransitions"][-1]


def test_training_starts_when_its_instances_are_ready_and_ends_after_the_upload():
    account = Account()
    account.create()
    account.advance(ENDED_AT)
    seen = account.describe()
    assert account.seconds(seen["TrainingStartTime"]) == 10
    assert account.seconds(seen["TrainingEndTime"]) == 130
    assert seen["TrainingTimeInSeconds"] == seen["BillableTimeInSeconds"] == 120


def test_a_job_without_a_stopping_condition_may_run_for_a_day():
    account = Account()
    request = {
        "TrainingJobName": "job1",
        "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/training",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output/"},
        "ResourceConfig": resources(),
        "StoppingCondition": {},
    }
    account.client.create_training_job(**request)
    assert account.describe()["StoppingCondition"] == {"MaxRuntimeInSeconds": 86400}
    assert account.describe()["ModelArtifacts"]["S3ModelArtifacts"] == "s3://bucket/output/job1/output/model.tar.gz"


def test_a_failing_script_fails_the_job_with_its_reason_after_the_upload():
    account = Account()
    account.simulator.set_profile("job1", outcome=Outcome.FAILED, failure_reason="AlgorithmError: out of memory")
    account.create()
    account.advance(600)
    assert account.status() == ("Failed", "Failed")
    assert account.describe()["FailureReason"] == "AlgorithmError: out of memory"
    assert account.passed()[-2:] == ["Uploading", "Failed"]


def test_a_failure_reason_is_cut_to_1024_characters():
    account = Account(profile=QUICK)
    account.simulator.set_profile("*", outcome=Outcome.FAILED, failure_reason="x" * 5000)
    account.create()
    account.simulator.run_until_idle()
    assert account.describe()["FailureReason"] == "x" * 1024


def test_only_failed_jobs_have_a_failure_reason():
    account = Account()
    account.create()
    account.advance(ENDED_AT)
    assert "FailureReason" not in account.describe()


def test_a_request_may_carry_its_own_script_in_its_environment():
    account = Account()
    account.create(Environment={"SIMULATOR_TRAINING_SECONDS": "7", "SIMULATOR_OUTCOME": "failed"})
    account.advance(TRAINING_FROM + 7)
    assert account.status() == ("InProgress", "Uploading")
    account.advance(10)
    assert account.status() == ("Failed", "Failed")


def test_a_request_may_carry_its_own_script_in_hyperparameters_as_the_sdks_quote_them():
    account = Account()
    account.create(HyperParameters={"SIMULATOR_TRAINING_SECONDS": '"7"', "epochs": "3"})
    account.advance(TRAINING_FROM + 7)
    assert account.status() == ("InProgress", "Uploading")


@pytest.mark.parametrize(
    ("name", "value"),
    [("TRAINING_SECONDS", "soon"), ("TRAINING_SECONDS", "-1"), ("TRAINING_SECONDS", "inf"), ("COLOR", "red"),
     ("OUTCOME", "perhaps")],
)  # fmt: skip
def test_a_script_variable_without_meaning_is_refused(name, value):
    account = Account()
    code, text = refusal(account.create, Environment={f"SIMULATOR_{name}": value})
    assert code == "ValidationException"
    assert name in text


def test_the_script_given_last_wins_and_the_requests_own_comes_first():
    account = Account()
    account.simulator.set_profile("job*", training_seconds=1000)
    account.simulator.set_profile("job1*", training_seconds=50)
    account.create(Environment={"SIMULATOR_UPLOADING_SECONDS": "0"})
    account.advance(TRAINING_FROM + 50)
    assert account.status() == ("Completed", "Completed")


def test_speed_divides_every_duration_of_a_script():
    account = Account(speed=10)
    account.create()
    account.advance(ENDED_AT / 10)
    assert account.status() == ("Completed", "Completed")


def test_a_stopped_job_is_stopping_then_uploading_then_stopped():
    account = Account()
    account.create()
    account.advance(50)
    account.stop()
    assert account.status() == ("Stopping", "Stopping")
    account.advance(5)
    assert account.status() == ("Stopping", "Uploading")
    account.advance(10)
    assert account.status() == ("Stopped", "Stopped")
    assert account.told()[-3:] == [("Stopping", "Stopping"), ("Stopping", "Uploading"), ("Stopped", "Stopped")]


def test_a_script_that_ignores_sigterm_is_killed_after_120_seconds():
    account = Account()
    account.simulator.set_profile("job1", stopping_seconds=10_000)
    account.create()
    account.advance(50)
    account.stop()
    account.advance(119)
    assert account.status() == ("Stopping", "Stopping")
    account.advance(1)
    assert account.status() == ("Stopping", "Uploading")


@pytest.mark.parametrize(("seconds", "where"), [(0.5, "Starting"), (5, "Starting"), (12, "Downloading")])
def test_a_job_stopped_before_its_script_runs_stops_without_training(seconds, where):
    account = Account()
    account.create()
    account.advance(seconds)
    assert account.status() == ("InProgress", where)
    account.stop()
    account.advance(5)
    assert account.status() == ("Stopped", "Stopped")
    assert "Training" not in account.passed()


def test_a_job_without_a_running_script_needs_no_grace_to_stop():
    account = Account()
    account.simulator.set_profile("job1", stopping_seconds=100)
    account.create()
    account.stop()
    account.advance(5)
    assert account.status() == ("Stopped", "Stopped")


def test_the_end_of_a_script_that_is_not_running_changes_nothing():
    account = Account()
    account.create()
    account.advance(50)
    account.simulator.exited("job1", 99, None)
    account.simulator.exited("missing", 1, None)
    assert account.status() == ("InProgress", "Training")
    account.simulator.exited("job1", 1, "AlgorithmError: it did")
    account.simulator.exited("job1", 1, None)
    account.simulator.run_until_idle()
    assert account.status() == ("Failed", "Failed")


def test_a_job_stopped_while_it_uploads_ends_as_stopped():
    account = Account()
    account.create()
    account.advance(125)
    account.stop()
    assert account.status() == ("Stopping", "Uploading")
    account.advance(5)
    assert account.status() == ("Stopped", "Stopped")


def test_stopping_a_job_twice_changes_nothing():
    account = Account()
    account.create()
    account.advance(50)
    account.stop()
    account.advance(2)
    account.stop()
    account.advance(13)
    assert account.status() == ("Stopped", "Stopped")
    assert account.told().count(("Stopping", "Stopping")) == 1


@pytest.mark.parametrize("outcome", ["completed", "failed", "stopped"])
def test_stopping_a_job_that_has_ended_is_refused_with_the_real_text(outcome):
    account = Account()
    script = {} if outcome == "stopped" else {"SIMULATOR_OUTCOME": outcome}
    account.create(Environment=script)
    if outcome == "stopped":
        account.stop()
    account.simulator.run_until_idle()
    assert refusal(account.stop) == (
        "ValidationException",
        f"The request was rejected because the training job is in status {outcome.capitalize()}.",
    )


def test_a_job_that_exceeds_its_runtime_is_stopped_with_grace_and_says_so():
    account = Account()
    account.create(StoppingCondition={"MaxRuntimeInSeconds": 60})
    account.advance(10 + 60)
    assert account.status() == ("Stopping", "Stopping")
    account.advance(15)
    assert account.status() == ("Stopped", "MaxRuntimeExceeded")
    assert account.passed()[-3:] == ["Stopping", "Uploading", "MaxRuntimeExceeded"]


def test_time_spent_waiting_for_instances_is_no_runtime():
    account = Account(capacity={CPU: 0})
    account.create(ResourceConfig=resources(CPU), StoppingCondition={"MaxRuntimeInSeconds": 111})
    account.advance(500)
    account.simulator.set_capacity(CPU, 1)
    account.advance(129)
    assert account.status() == ("Completed", "Completed")


def test_an_internal_error_is_retried_as_often_as_the_request_allows():
    account = Account()
    account.simulator.set_profile("job1", internal_errors=2)
    account.create(RetryStrategy={"MaximumRetryAttempts": 2})
    account.simulator.run_until_idle()
    assert account.status() == ("Completed", "Completed")
    assert account.passed().count("Training") == 3


def test_an_internal_error_without_retries_left_fails_the_job():
    account = Account()
    account.simulator.set_profile("job1", internal_errors=2)
    account.create(RetryStrategy={"MaximumRetryAttempts": 1})
    account.simulator.run_until_idle()
    assert account.status() == ("Failed", "Failed")
    assert account.describe()["FailureReason"].startswith("InternalServerError")


def test_with_retries_the_runtime_limit_covers_all_attempts_together():
    account = Account()
    account.simulator.set_profile("job1", internal_errors=1, training_seconds=50)
    account.create(
        checkpoint=False, RetryStrategy={"MaximumRetryAttempts": 5}, StoppingCondition={"MaxRuntimeInSeconds": 80}
    )
    account.simulator.run_until_idle()
    assert account.status() == ("Stopped", "MaxRuntimeExceeded")


def test_a_new_attempt_with_the_same_checkpoint_does_only_what_is_left():
    account = Account()
    checkpoint = {"S3Uri": "s3://bucket/checkpoints/job1"}
    account.create(CheckpointConfig=checkpoint)
    account.advance(TRAINING_FROM + 70)
    account.stop()
    account.advance(15)
    account.create("job1-qstamp-2", CheckpointConfig=checkpoint)
    account.advance(TRAINING_FROM + 30 + 10)
    assert account.status("job1-qstamp-2") == ("Completed", "Completed")


def test_without_a_checkpoint_a_new_attempt_begins_again():
    account = Account()
    account.create(checkpoint=False)
    account.advance(TRAINING_FROM + 70)
    account.stop()
    account.advance(15)
    account.create("job1-qstamp-2", checkpoint=False)
    account.advance(TRAINING_FROM + 99)
    assert account.status("job1-qstamp-2") == ("InProgress", "Training")


def test_instances_are_free_only_after_the_end():
    account = Account()
    account.create("job1", count=2)
    account.advance(50)
    account.stop()
    account.advance(14)
    assert refusal(account.create, "job2")[0] == "ResourceLimitExceeded"
    account.advance(1)
    account.create("job2")
    assert account.status("job2") == ("InProgress", "Starting")


def test_a_wall_clock_cannot_be_moved():
    class StillClock:
        def now(self):
            return VirtualClock().now()

    with SageMakerSimulator(StillClock()) as simulator, pytest.raises(TypeError):
        simulator.advance(1)
