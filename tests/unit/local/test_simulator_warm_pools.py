"""Warm pools: reuse, expiry, quotas."""

from __future__ import annotations

import pytest
from simulated import ENDED_AT, QUICK, Account, refusal, resources

from builders import P5


def a_pool_of_job1(**settings) -> Account:
    """An account in which job1 has ended and left a warm pool of one instance for ten minutes."""
    account = Account(**settings)
    account.warm("job1", 600)
    account.advance(ENDED_AT)
    return account


def test_a_job_with_keep_alive_shows_its_pool_in_use_then_available():
    account = Account()
    account.warm("job1", 600)
    assert account.warm_status() == {"Status": "InUse"}
    account.advance(ENDED_AT + 60)
    assert account.warm_status() == {"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 60}


def test_a_job_without_keep_alive_has_no_warm_pool():
    account = Account()
    account.create()
    account.simulator.run_until_idle()
    assert account.warm_status() is None


def test_a_warm_pool_counts_inside_the_quota():
    account = a_pool_of_job1()
    assert refusal(account.create, "job2", count=2)[0] == "ResourceLimitExceeded"


def test_a_warm_pool_ends_when_its_keep_alive_expires():
    account = a_pool_of_job1()
    account.advance(599)
    assert account.warm_status()["Status"] == "Available"
    account.advance(1)
    assert account.warm_status() == {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 600}
    account.create("job2", count=2)


def test_keep_alive_zero_ends_an_available_pool_at_once():
    account = a_pool_of_job1()
    account.advance(60)
    account.keep_alive("job1", 0)
    assert account.warm_status() == {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 60}
    account.create("job2", count=2)


def test_keep_alive_zero_while_the_job_runs_leaves_no_pool():
    account = Account()
    account.warm("job1", 600)
    account.advance(50)
    account.keep_alive("job1", 0)
    assert account.warm_status()["Status"] == "InUse"
    account.stop()
    account.advance(15)
    assert account.warm_status()["Status"] == "Terminated"
    assert account.simulator.quotas.used(P5) == 0


def test_a_stopped_job_with_keep_alive_still_leaves_a_pool_that_eats_the_quota():
    account = Account()
    account.warm("job1", 600)
    account.advance(50)
    account.stop()
    account.advance(15)
    assert account.status() == ("Stopped", "Stopped")
    assert account.warm_status()["Status"] == "Available"
    assert account.simulator.quotas.used(P5) == 1


def test_a_job_that_never_had_instances_leaves_no_pool():
    account = Account(capacity={P5: 0})
    account.warm("job1", 600)
    account.advance(5)
    account.stop()
    account.advance(5)
    assert account.warm_status()["Status"] == "Terminated"
    assert account.simulator.quotas.used(P5) == 0


def test_keep_alive_can_be_prolonged_and_counts_from_the_jobs_end():
    account = a_pool_of_job1()
    account.advance(300)
    account.keep_alive("job1", 1200)
    account.advance(899)
    assert account.warm_status()["Status"] == "Available"
    account.advance(1)
    assert account.warm_status()["Status"] == "Terminated"


def test_keep_alive_can_be_asked_for_while_the_job_runs():
    account = Account()
    account.create()
    account.advance(50)
    account.keep_alive("job1", 600)
    assert account.describe()["ResourceConfig"]["KeepAlivePeriodInSeconds"] == 600
    account.advance(ENDED_AT - 50)
    assert account.warm_status()["Status"] == "Available"


def test_keep_alive_of_an_ended_job_without_a_pool_cannot_be_changed():
    account = Account()
    account.create()
    account.simulator.run_until_idle()
    assert refusal(account.keep_alive, "job1", 600)[0] == "ValidationException"


def test_a_matching_job_reuses_the_pool_and_starts_faster():
    account = a_pool_of_job1()
    account.create("job2", ResourceConfig=resources())
    assert account.warm_status("job1") == {
        "Status": "Reused", "ReusedByJob": "job2", "ResourceRetainedBillableTimeInSeconds": 0,
    }  # fmt: skip
    account.advance(QUICK.warm_starting_seconds)
    assert account.status("job2") == ("InProgress", "Downloading")


def test_reuse_adds_nothing_to_the_quota():
    account = a_pool_of_job1(limits={P5: 1})
    account.create("job2", ResourceConfig=resources())
    assert account.simulator.quotas.used(P5) == 1
    account.simulator.run_until_idle()
    assert account.simulator.quotas.used(P5) == 0


def test_a_reused_pool_goes_on_under_the_new_jobs_own_keep_alive():
    account = a_pool_of_job1()
    account.warm("job2", 100)
    account.advance(2 + 10 + 100 + 10)
    assert account.warm_status("job1")["Status"] == "Reused"
    assert account.warm_status("job2")["Status"] == "Available"
    account.advance(100)
    assert account.warm_status("job2")["Status"] == "Terminated"


def test_reuse_needs_no_capacity_of_ec2():
    account = a_pool_of_job1()
    account.simulator.set_capacity(P5, 0)
    account.create("job2")
    account.advance(QUICK.warm_starting_seconds)
    assert account.status("job2") == ("InProgress", "Downloading")


def test_the_pool_that_ended_first_is_reused_first():
    account = Account()
    account.warm("job1", 600)
    account.advance(20)
    account.warm("job2", 600)
    account.advance(ENDED_AT)
    account.create("job3")
    assert account.warm_status("job1")["Status"] == "Reused"
    assert account.warm_status("job2")["Status"] == "Available"


@pytest.mark.parametrize(
    "difference",
    [
        {"RoleArn": "arn:aws:iam::111122223333:role/other"},
        {"ResourceConfig": resources(count=1, VolumeKmsKeyId="key")},
        {"ResourceConfig": resources("ml.g5.2xlarge")},
        {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": 31}},
        {"VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]}},
        {"EnableNetworkIsolation": True},
        {"EnableInterContainerTrafficEncryption": True},
        {"SessionChainingConfig": {"EnableSessionTagChaining": True}},
    ],
    ids=lambda difference: str(sorted(difference)),
)
def test_a_job_that_differs_in_what_must_match_does_not_reuse_the_pool(difference):
    account = a_pool_of_job1()
    account.create("job2", **difference)
    assert account.warm_status("job1")["Status"] == "Available"


def test_a_job_of_another_count_does_not_reuse_the_pool():
    account = a_pool_of_job1(limits={P5: 3})
    account.create("job2", count=2)
    assert account.warm_status("job1")["Status"] == "Available"


def test_a_spot_job_does_not_reuse_the_pool():
    account = a_pool_of_job1()
    account.spot("job2")
    assert account.warm_status("job1")["Status"] == "Available"


def test_warm_pools_have_a_quota_of_their_own():
    account = Account(warm_limits={P5: 1})
    account.warm("job1", 600)
    code, text = refusal(account.warm, "job2", 600)
    assert code == "ResourceLimitExceeded"
    assert "'ml.p5.48xlarge for training warm pool usage' is 1 Instances" in text
    account.create("job2")
    assert refusal(account.keep_alive, "job2", 600)[0] == "ResourceLimitExceeded"


def test_the_quota_for_warm_pools_is_free_again_when_the_pool_has_gone():
    account = Account(warm_limits={P5: 1})
    account.warm("job1", 600)
    account.simulator.run_until_idle()
    account.warm("job2", 600)
    account.keep_alive("job2", 0)
    account.simulator.run_until_idle()
    account.warm("job3", 600)


def test_the_same_instances_serve_no_longer_than_28_days():
    days = 24 * 3600
    account = Account()
    runtime = {"MaxRuntimeInSeconds": 28 * days}
    account.simulator.set_profile("job1", training_seconds=27.99 * days)
    account.warm("job1", 21600, StoppingCondition=runtime)
    account.advance(28 * days + 60)
    assert account.warm_status()["Status"] == "Terminated"
    assert account.warm_status()["ResourceRetainedBillableTimeInSeconds"] < 3600


@pytest.mark.parametrize("kind", ["spot", "groups"])
def test_keep_alive_is_refused_with_spot_and_with_instance_groups(kind):
    account = Account()
    if kind == "spot":
        config = resources(KeepAlivePeriodInSeconds=60)
        code, text = refusal(account.spot, ResourceConfig=config)
    else:
        group = {"InstanceType": P5, "InstanceCount": 1, "InstanceGroupName": "p5"}
        config = {"InstanceGroups": [group], "VolumeSizeInGB": 30, "KeepAlivePeriodInSeconds": 60}
        code, text = refusal(account.create, ResourceConfig=config)
    assert code == "ValidationException"
    assert "KeepAlivePeriodInSeconds" in text


def test_a_spot_job_cannot_be_given_a_keep_alive_later():
    account = Account()
    account.spot()
    assert refusal(account.keep_alive, "job1", 60)[0] == "ValidationException"
