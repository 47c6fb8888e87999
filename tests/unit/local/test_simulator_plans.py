"""Training plans: reserved capacity, and the jobs that use it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from simulated import Account, refusal, resources

from builders import G5, P5

HOUR = 3600


def an_account(*blocks, count=2, **settings):
    """An account with a plan of P5 instances; blocks in hours from now."""
    account = Account(limits={P5: 0}, **settings)
    times = [tuple(account.start + timedelta(hours=hour) for hour in block) for block in blocks]
    account.plan = account.simulator.add_plan("spring", P5, count, *times)
    return account


def submit(account, name="job1", *, count=1, runtime=86_400, training=86_400, **members):
    account.create(
        name,
        ResourceConfig={**resources(count=count), "TrainingPlanArn": account.plan},
        StoppingCondition={"MaxRuntimeInSeconds": runtime},
        Environment={"SIMULATOR_TRAINING_SECONDS": str(training)},
        **members,
    )


def plan(account):
    return account.client.describe_training_plan(TrainingPlanName="spring")


def test_it_counts_apart_from_the_accounts_limit_and_has_a_capacity_of_its_own():
    account = an_account((0, 8))
    submit(account, "job1", count=2)
    submit(account, "job2", count=1)
    account.advance(60)
    assert (account.status("job1"), account.status("job2")) == (("InProgress", "Training"), ("InProgress", "Pending"))
    told = plan(account)
    assert (told["TotalInstanceCount"], told["InUseInstanceCount"], told["AvailableInstanceCount"]) == (2, 2, 0)


def test_a_job_of_a_scheduled_plan_is_pending_until_it_is_active():
    account = an_account((1, 8))
    submit(account)
    account.advance(HOUR - 1)
    assert (account.status(), plan(account)["Status"]) == (("InProgress", "Pending"), "Scheduled")
    account.advance(61)
    assert (account.status(), plan(account)["Status"]) == (("InProgress", "Training"), "Active")


def test_half_an_hour_before_its_end_jobs_are_stopped():
    account = an_account((0, 2))
    submit(account)
    account.advance(1.5 * HOUR - 1)
    assert account.status() == ("InProgress", "Training")
    account.advance(1)
    assert account.status()[0] == "Stopping"
    account.advance(60)
    assert account.status() == ("Stopped", "Stopped")
    account.advance(HOUR)
    assert (plan(account)["Status"], plan(account)["InUseInstanceCount"]) == ("Expired", 0)


def test_one_that_got_nothing_until_then_fails_for_want_of_capacity():
    account = an_account((0, 2))
    submit(account, "job1", count=2)
    submit(account, "job2")
    account.advance(2 * HOUR)
    assert account.status("job2")[0] == "Failed"
    assert account.describe("job2")["FailureReason"].startswith("InsufficientCapacityError")


def test_between_two_reserved_capacities_jobs_are_pending_and_go_on_from_their_checkpoints():
    account = an_account((0, 2), (6, 10))
    submit(account, training=2.5 * HOUR)
    account.advance(2 * HOUR)
    assert (account.status(), plan(account)["Status"]) == (("InProgress", "Pending"), "Scheduled")
    account.advance(4 * HOUR + 60)
    assert account.status() == ("InProgress", "Training")
    account.advance(HOUR + 300)
    assert account.status() == ("Completed", "Completed")


def test_one_that_has_all_but_ended_ends():
    account = an_account((0, 2))
    submit(account, training=1.5 * HOUR - 25)
    account.advance(1.5 * HOUR)
    assert account.status() == ("InProgress", "Uploading")
    account.advance(60)
    assert account.status() == ("Completed", "Completed")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ResourceConfig": {"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 1}}, "2 instances of ml.p5"),
        ({"ResourceConfig": {"InstanceType": P5, "InstanceCount": 3, "VolumeSizeInGB": 1}}, "2 instances of ml.p5"),
        ({"EnableManagedSpotTraining": True}, "managed spot"),
    ],
)
def test_unsupported_operations_are_rejected(change, words):
    account = an_account((0, 8))
    config = change.pop("ResourceConfig", resources()) | {"TrainingPlanArn": account.plan}
    stopping = {"MaxRuntimeInSeconds": 60, **({"MaxWaitTimeInSeconds": 60} if change else {})}
    code, message = refusal(account.create, ResourceConfig=config, StoppingCondition=stopping, **change)
    assert (code, words in message) == ("ValidationException", True)


def test_neither_one_that_has_ended_nor_one_that_is_not_there():
    account = an_account((0, 1))
    account.advance(HOUR)
    assert refusal(submit, account)[0] == "ValidationException"
    account.plan = account.plan.replace("spring", "autumn")
    assert refusal(submit, account)[0] == "ValidationException"
    code, _ = refusal(account.client.describe_training_plan, TrainingPlanName="autumn")
    assert code == "ResourceNotFound"


def test_a_warm_pool_of_a_plan_serves_no_job_outside_it():
    account = an_account((0, 8))
    account.simulator.quotas.set_limit(P5, 2)
    config = {**resources(), "KeepAlivePeriodInSeconds": 3600}
    account.create("job1", ResourceConfig={**config, "TrainingPlanArn": account.plan})
    account.advance(600)
    account.create("job2", ResourceConfig=config)
    account.advance(1)
    assert account.warm_status("job1")["Status"] == "Available"
    account.create("job3", ResourceConfig={**config, "TrainingPlanArn": account.plan})
    assert account.warm_status("job1")["Status"] == "Reused"
