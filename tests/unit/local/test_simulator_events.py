"""Events of status changes in EventBridge's shape."""

from __future__ import annotations

import random

import pytest
from simulated import ENDED_AT, Account, resources

from builders import P5, a_request
from trainmaster.local.simulator import Outcome


def test_an_event_has_eventbridges_envelope():
    account = Account()
    account.create("job1")
    event = account.events[0]
    assert {key: value for key, value in event.items() if key not in ("id", "detail")} == {
        "version": "0",
        "detail-type": "SageMaker Training Job State Change",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": ["arn:aws:sagemaker:us-east-1:111122223333:training-job/job1"],
    }


def test_ids_are_unique_and_follow_the_random_source_given():
    first, second = Account(rng=random.Random(7)), Account(rng=random.Random(7))
    for account in (first, second):
        account.create("job1")
        account.advance(ENDED_AT)
    ids = [event["id"] for event in first.events]
    assert ids == [event["id"] for event in second.events]
    assert len(set(ids)) == len(ids)


def test_the_detail_is_as_describe_with_times_in_epoch_milliseconds():
    account = Account()
    account.create("job1", HyperParameters={"epochs": "3"})
    account.advance(ENDED_AT)
    detail = account.events[-1]["detail"]
    start = round(account.start.timestamp() * 1000)
    assert detail["CreationTime"] == start
    assert detail["TrainingStartTime"] == start + 10_000
    assert detail["TrainingEndTime"] == detail["LastModifiedTime"] == start + 130_000
    assert detail["SecondaryStatusTransitions"][-1] == {
        "Status": "Completed", "StartTime": start + 130_000, "EndTime": start + 130_000,
        "StatusMessage": "Training job completed",
    }  # fmt: skip
    assert detail["HyperParameters"] == {"epochs": "3"}
    assert detail["ResourceConfig"]["InstanceType"] == P5
    assert "FailureReason" not in detail


def test_tags_are_a_map():
    account = Account()
    account.create("job1", priority=3, options={"preemptible": "true"})
    assert account.events[0]["detail"]["Tags"] == {"priority": "3", "trainmaster:preemptible": "true"}


def test_an_event_says_what_was_so_at_its_moment():
    account = Account()
    account.create("job1")
    account.advance(ENDED_AT)
    first = account.events[0]["detail"]
    assert [each["Status"] for each in first["SecondaryStatusTransitions"]] == ["Starting"]
    assert "TrainingEndTime" not in first


def test_a_failed_job_tells_its_reason():
    account = Account()
    account.simulator.set_profile("job1", outcome=Outcome.FAILED, failure_reason="AlgorithmError: bad luck")
    account.create("job1")
    account.simulator.run_until_idle()
    assert account.events[-1]["detail"]["FailureReason"] == "AlgorithmError: bad luck"


def test_every_change_of_status_has_exactly_one_event():
    account = Account()
    account.create("job1")
    account.simulator.run_until_idle()
    assert account.told() == [
        ("InProgress", "Starting"), ("InProgress", "Downloading"), ("InProgress", "Training"),
        ("InProgress", "Uploading"), ("Completed", "Completed"),
    ]  # fmt: skip


def test_selection_among_preferences_is_told():
    account = Account(capacity={P5: 0})
    preferences = [{"InstanceType": P5}, {"InstanceType": "ml.g5.2xlarge"}]
    config = {"InstancePreferences": preferences, "InstanceCount": 1, "VolumeSizeInGB": 30}
    account.create("job1", ResourceConfig=config)
    account.advance(30)
    assert account.events[-1]["detail"]["ResourceConfig"]["SelectedInstanceType"] == "ml.g5.2xlarge"


def test_a_jobs_warm_pool_is_told_with_its_end():
    account = Account()
    account.create("job1", ResourceConfig=resources(KeepAlivePeriodInSeconds=60))
    account.advance(ENDED_AT)
    assert account.events[-1]["detail"]["WarmPoolStatus"]["Status"] == "Available"


def test_the_source_can_be_another_where_the_bus_refuses_that_of_aws():
    account = Account(source="trainmaster.local")
    account.create("job1")
    assert account.events[0]["source"] == "trainmaster.local"


def test_a_sink_is_called_at_the_events_own_time():
    account = Account()
    times = []
    account.simulator.sink = lambda _event: times.append(account.seconds(account.simulator.now()))
    account.create("job1")
    account.advance(1000)
    assert times == [0, 10, 20, 120, 130]


def test_a_sink_may_call_the_simulator_back_and_order_is_kept():
    account = Account()
    order = []

    def stop_when_training(event):
        detail = event["detail"]
        order.append(detail["SecondaryStatus"])
        if detail["SecondaryStatus"] == "Training":
            account.stop("job1")

    account.simulator.sink = stop_when_training
    account.create("job1")
    account.advance(1000)
    assert order == ["Starting", "Downloading", "Training", "Stopping", "Uploading", "Stopped"]


def test_a_sink_that_raises_loses_its_own_event_only():
    account = Account()
    seen = []

    def crash_once(event):
        seen.append(event["detail"]["SecondaryStatus"])
        if len(seen) == 1:
            raise RuntimeError("the receiver died")

    account.simulator.sink = crash_once
    with pytest.raises(RuntimeError):
        account.simulator.call("CreateTrainingJob", **a_request("job1"))
    account.advance(1000)
    assert seen == ["Starting", "Downloading", "Training", "Uploading", "Completed"]


def test_without_a_sink_nothing_is_kept_for_later():
    account = Account()
    account.simulator.sink = None
    account.create("job1")
    account.simulator.sink = account.events.append
    account.advance(10)
    assert account.told() == [("InProgress", "Downloading")]
