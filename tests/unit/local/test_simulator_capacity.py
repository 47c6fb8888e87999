"""Quotas, EC2 capacity, instance preferences, instance groups and spot."""

from __future__ import annotations

import pytest
from simulated import CPU, TRAINING_FROM, Account, refusal, resources

from builders import G5, P5

LIMIT_TEXT = (
    "The account-level service limit 'ml.p5.48xlarge for training job usage' is 2 Instances, with current "
    "utilization of 1 Instances and a request delta of 2 Instances."
)
NO_CAPACITY = "CapacityError: Unable to provision requested ML compute capacity"


def preferring(*types: str, count: int = 1) -> dict:
    return {"InstancePreferences": [{"InstanceType": each} for each in types], "InstanceCount": count,
            "VolumeSizeInGB": 30}  # fmt: skip


def groups(**counts: int) -> dict:
    types = {"p5": P5, "g5": G5}
    return {
        "InstanceGroups": [
            {"InstanceType": types[name], "InstanceCount": count, "InstanceGroupName": name}
            for name, count in counts.items()
        ],
        "VolumeSizeInGB": 30,
    }


def test_over_the_account_limit_a_job_is_refused_at_once_with_the_real_text():
    account = Account()
    account.create("job1")
    code, text = refusal(account.create, "job2", count=2)
    assert code == "ResourceLimitExceeded"
    assert text.startswith(LIMIT_TEXT)


def test_a_refused_job_does_not_exist():
    account = Account()
    account.create("job1", count=2)
    refusal(account.create, "job2")
    assert refusal(account.describe, "job2")[0] == "ValidationException"
    assert account.told("job2") == []


def test_types_that_the_limits_do_not_name_have_none():
    account = Account()
    account.create(ResourceConfig=resources(CPU, count=100))
    assert account.status() == ("InProgress", "Starting")


def test_a_limit_may_change_while_jobs_run():
    account = Account()
    account.create("job1", count=2)
    account.simulator.quotas.set_limit(P5, 1)
    assert refusal(account.create, "job2")[0] == "ResourceLimitExceeded"
    account.simulator.quotas.set_limit(P5, 3)
    account.create("job2")


def test_within_quota_but_without_ec2_capacity_a_job_is_in_progress_and_pending():
    account = Account(capacity={P5: 0})
    account.create()
    account.advance(1)
    assert account.status() == ("InProgress", "Pending")


def test_a_pending_job_holds_a_slot_of_the_quota_while_it_runs_nothing():
    account = Account(capacity={P5: 0})
    account.create("job1", count=2)
    account.advance(1)
    assert refusal(account.create, "job2")[0] == "ResourceLimitExceeded"


def test_pending_jobs_get_capacity_in_the_order_in_which_they_came():
    account = Account(capacity={P5: 1})
    account.create("job1")
    account.advance(1)
    account.create("job2")
    account.advance(1)
    assert account.status("job2") == ("InProgress", "Pending")
    account.advance(128)
    assert account.status("job1") == ("Completed", "Completed")
    assert account.status("job2") == ("InProgress", "Pending")
    account.advance(9)
    assert account.status("job2") == ("InProgress", "Downloading")


def test_new_capacity_is_taken_at_once():
    account = Account(capacity={P5: 0})
    account.create()
    account.advance(100)
    account.simulator.set_capacity(P5, None)
    account.advance(9)
    assert account.status() == ("InProgress", "Downloading")
    assert account.passed() == ["Starting", "Pending", "Downloading"]


def test_a_job_that_got_capacity_gives_up_no_longer_and_takes_it_once():
    account = Account(capacity={P5: 0})
    account.simulator.set_profile("job1", training_seconds=5000)
    account.create()
    account.advance(500)
    account.simulator.set_capacity(P5, 2)
    account.simulator.set_capacity(P5, 3)
    account.advance(1000)
    assert account.status() == ("InProgress", "Training")
    assert account.simulator._ec2.running(P5) == 1


def test_without_capacity_for_long_a_job_fails_with_capacity_error():
    account = Account(capacity={P5: 0})
    account.create()
    account.advance(1 + 600)
    assert account.status() == ("Failed", "Failed")
    assert account.describe()["FailureReason"].startswith(NO_CAPACITY)
    assert "TrainingStartTime" not in account.describe()
    account.create("job2", count=2)


def test_the_longest_pending_time_of_an_accelerated_job_stops_it():
    account = Account(capacity={P5: 0})
    account.create(StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxPendingTimeInSeconds": 1800})
    account.advance(1 + 1799)
    assert account.status() == ("InProgress", "Pending")
    account.advance(1)
    assert account.status() == ("Stopped", "Stopped")


def test_the_longest_pending_time_has_no_effect_on_cpu_types():
    account = Account(capacity={CPU: 0})
    account.create(
        ResourceConfig=resources(CPU),
        StoppingCondition={"MaxRuntimeInSeconds": 3600, "MaxPendingTimeInSeconds": 7200},
    )
    account.advance(1 + 600)
    assert account.describe()["FailureReason"].startswith(NO_CAPACITY)


def test_a_pending_job_can_be_stopped():
    account = Account(capacity={P5: 0})
    account.create()
    account.advance(100)
    account.stop()
    assert account.status() == ("Stopping", "Stopping")
    account.advance(5)
    assert account.status() == ("Stopped", "Stopped")
    account.simulator.set_capacity(P5, 5)
    account.advance(1000)
    assert account.status() == ("Stopped", "Stopped")


def test_a_heterogeneous_job_counts_for_every_type_and_starts_all_or_nothing():
    account = Account(capacity={G5: 1})
    account.create(ResourceConfig=groups(p5=1, g5=2))
    account.advance(1)
    assert account.status() == ("InProgress", "Pending")
    assert account.simulator.quotas.used(P5) == 1
    assert account.simulator.quotas.used(G5) == 2
    account.simulator.set_capacity(G5, 2)
    account.advance(9)
    assert account.status() == ("InProgress", "Downloading")


def test_a_heterogeneous_job_is_refused_when_one_type_has_no_room():
    account = Account()
    code, text = refusal(account.create, ResourceConfig=groups(p5=3, g5=1))
    assert code == "ResourceLimitExceeded"
    assert P5 in text
    assert account.simulator.quotas.used(G5) == 0


def test_a_job_with_preferences_takes_the_first_type_that_has_capacity():
    account = Account(capacity={P5: 0})
    account.create(ResourceConfig=preferring(P5, G5))
    assert "SelectedInstanceType" not in account.describe()["ResourceConfig"]
    account.advance(1)
    selected = account.describe()["ResourceConfig"]
    assert (selected["SelectedInstanceType"], selected["SelectedInstanceCount"]) == (G5, 1)


def test_with_preferences_a_count_may_be_given_for_each_type():
    account = Account(capacity={P5: 0})
    config = {"InstancePreferences": [{"InstanceType": P5, "InstanceCount": 1},
                                      {"InstanceType": G5, "InstanceCount": 4}], "VolumeSizeInGB": 30}  # fmt: skip
    account.create(ResourceConfig=config)
    account.advance(1)
    assert account.describe()["ResourceConfig"]["SelectedInstanceCount"] == 4
    assert account.simulator.quotas.used(P5) == 0
    assert account.simulator.quotas.used(G5) == 4


def test_until_a_type_is_selected_every_preference_counts_against_its_quota():
    account = Account()
    account.create("job1", ResourceConfig=preferring(P5, G5, count=2))
    assert refusal(account.create, "job2", count=1)[0] == "ResourceLimitExceeded"
    account.advance(1)
    assert account.simulator.quotas.used(P5) == 2
    assert account.simulator.quotas.used(G5) == 0


def test_every_preference_must_pass_the_quota_check():
    account = Account(limits={P5: 0, G5: 8})
    assert refusal(account.create, ResourceConfig=preferring(G5, P5))[0] == "ResourceLimitExceeded"


def test_preferences_of_cpu_types_only_are_tried_once():
    account = Account(capacity={CPU: 0, "ml.c5.xlarge": 0})
    account.create(ResourceConfig=preferring(CPU, "ml.c5.xlarge"))
    account.advance(1)
    assert account.status() == ("Failed", "Failed")
    assert account.describe()["FailureReason"].startswith(NO_CAPACITY)


def test_a_serverless_job_takes_no_instances():
    account = Account()
    request = {
        "TrainingJobName": "job1",
        "RoleArn": "arn:aws:iam::111122223333:role/training",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
        "ServerlessJobConfig": {
            "BaseModelArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/SageMakerPublicHub/Model/base/1.0.0",
            "JobType": "FineTuning",
        },
    }
    account.client.create_training_job(**request)
    account.simulator.run_until_idle()
    assert account.status() == ("Completed", "Completed")
    assert account.simulator.quotas.used(P5) == 0


def test_spot_counts_against_a_quota_of_its_own():
    account = Account(limits={P5: 1}, spot_limits={P5: 1})
    account.create("job1")
    account.spot("job2")
    code, text = refusal(account.spot, "job3")
    assert code == "ResourceLimitExceeded"
    assert "'ml.p5.48xlarge for spot training job usage' is 1 Instances" in text


def test_a_spot_job_waits_for_capacity_and_never_falls_back_to_on_demand():
    account = Account(spot_capacity={P5: 0}, capacity={P5: 5})
    account.spot()
    account.advance(5000)
    assert account.status() == ("InProgress", "Pending")
    account.simulator.set_capacity(P5, 1, spot=True)
    account.advance(9)
    assert account.status() == ("InProgress", "Downloading")


def test_a_spot_job_that_waits_too_long_is_stopped_and_says_so():
    account = Account(spot_capacity={P5: 0})
    account.spot(wait=3600)
    account.advance(3600)
    assert account.status() == ("Stopping", "Stopping")
    account.advance(5)
    assert account.status() == ("Stopped", "MaxWaitTimeExceeded")


def test_an_interrupted_spot_job_restarts_from_its_checkpoint():
    account = Account()
    account.spot()
    account.advance(TRAINING_FROM + 60)
    account.simulator.interrupt("job1")
    assert account.status() == ("InProgress", "Interrupted")
    account.advance(5 + 30)
    assert account.status() == ("InProgress", "Restarting")
    account.advance(9 + 10 + 40 + 10)
    assert account.status() == ("Completed", "Completed")
    assert account.passed() == [
        "Starting", "Downloading", "Training", "Interrupted", "Restarting", "Downloading", "Training", "Uploading",
        "Completed",
    ]  # fmt: skip


def test_an_interrupted_spot_job_without_a_checkpoint_begins_again():
    account = Account()
    account.spot(checkpoint=False)
    account.advance(TRAINING_FROM + 60)
    account.simulator.interrupt("job1")
    account.advance(5 + 30 + 19 + 99)
    assert account.status() == ("InProgress", "Training")


def test_an_interrupted_spot_job_waits_until_there_is_capacity_again():
    account = Account(spot_capacity={P5: 1})
    account.spot()
    account.advance(TRAINING_FROM + 60)
    account.simulator.set_capacity(P5, 0, spot=True)
    account.simulator.interrupt("job1")
    account.advance(1000)
    assert account.status() == ("InProgress", "Interrupted")
    account.simulator.set_capacity(P5, 1, spot=True)
    assert account.status() == ("InProgress", "Restarting")


def test_time_between_interruptions_is_neither_billed_nor_runtime():
    account = Account()
    account.spot(runtime=140)
    account.advance(TRAINING_FROM + 60)
    account.simulator.interrupt("job1")
    account.simulator.run_until_idle()
    seen = account.describe()
    assert account.status() == ("Completed", "Completed")
    assert (seen["TrainingTimeInSeconds"], seen["BillableTimeInSeconds"]) == (174, 135)


def test_the_runtime_limit_covers_the_runs_before_an_interruption():
    account = Account()
    account.spot(runtime=100)
    account.advance(TRAINING_FROM + 60)
    account.simulator.interrupt("job1")
    account.simulator.run_until_idle()
    assert account.status() == ("Stopped", "MaxRuntimeExceeded")


def test_an_interrupted_spot_job_can_be_stopped():
    account = Account()
    account.spot()
    account.advance(TRAINING_FROM + 60)
    account.simulator.interrupt("job1")
    account.stop()
    account.simulator.run_until_idle()
    assert account.status() == ("Stopped", "Stopped")
    account.simulator.advance(100)
    assert account.told()[-1] == ("Stopped", "Stopped")


def test_a_job_stopped_while_it_waits_for_other_spot_instances_stops():
    account = Account()
    account.spot()
    account.advance(TRAINING_FROM + 60)
    account.simulator.interrupt("job1")
    account.advance(10)
    account.stop()
    account.advance(5)
    assert account.status() == ("Stopped", "Stopped")
    account.simulator.run_until_idle()
    assert account.status() == ("Stopped", "Stopped")


def test_only_spot_instances_at_work_can_be_lost():
    account = Account()
    account.create()
    account.advance(50)
    with pytest.raises(ValueError, match="no running spot instances"):
        account.simulator.interrupt("job1")
