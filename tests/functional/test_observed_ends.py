"""Ends that SageMaker gives to jobs, and the queue's reaction: the shipped manager over the simulator."""

from __future__ import annotations

import pytest

from builders import ADA, G5, P5
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.service.capacity.pools import set_pools
from trainmaster.service.change import cancel, change
from trainmaster.service.explain.explain import explain
from trainmaster.service.explain.why import diagnose
from world import EPOCH, World, a_request


def call(world, operation, **members):
    return world.simulator.call(operation, **members)


def outcomes(world, name):
    return [str(attempt.outcome) for attempt in world.job(name).attempts]


def test_a_job_stopped_in_the_console_is_not_resumed():
    world = World()
    world.submit("job1", training_seconds=5000)
    world.run(200)
    call(world, "StopTrainingJob", TrainingJobName="job1")
    world.run_until_ended("job1")
    assert (world.job("job1").state, outcomes(world, "job1")) == (JobState.STOPPED, ["stopped"])


def test_a_running_job_that_its_user_cancels_through_the_queue_is_not_resumed():
    world = World()
    world.submit("job1", training_seconds=5000)
    world.run(200)
    assert cancel(world.api_context, ADA, "job1").stop_requested
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.STOPPED
    assert world.opened == ["job1"]


def test_a_job_cancelled_while_it_starts_never_trains():
    world = World()
    world.submit("job1")
    world.settle()
    cancel(world.api_context, ADA, "job1")
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.STOPPED
    assert world.training_jobs["job1"].get("TrainingStartTime") is None


def test_cancelling_a_waiting_job_calls_no_aws_service():
    world = World(pools=f"{P5}=1")
    world.submit("job1", training_seconds=500)
    world.submit("job2")
    cancel(world.api_context, ADA, "job2")
    world.run_until_ended("job1")
    assert (world.job("job2").state, world.opened) == (JobState.CANCELLED, ["job1"])


def test_held_jobs_wait_until_they_are_released():
    world = World()
    world.submit("blocker", count=2, training_seconds=100)
    world.submit("job1")
    change(world.api_context, ADA, "job1", hold=True)
    world.run_until_ended("blocker")
    world.run(300)
    assert world.job("job1").state is JobState.HELD
    change(world.api_context, ADA, "job1", hold=False)
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.COMPLETED


def test_a_priority_raised_while_waiting_changes_the_order():
    world = World(pools=f"{P5}=1")
    for name in ("job1", "job2", "job3"):
        world.submit(name, training_seconds=200, priority=1)
        world.run(10)
    change(world.api_context, ADA, "job3", priority=2)
    world.run_until_ended("job1", "job2", "job3")
    assert [name for name in world.opened if name != "job1-qstamp-2"] == ["job1", "job3", "job2"]


def test_an_account_limit_below_the_cap_puts_jobs_back_without_burning_an_attempt():
    world = World(pools=f"{P5}=2", limits={P5: 1})
    world.submit("job1", training_seconds=300)
    world.submit("job2", training_seconds=60)
    world.run(30)
    waiting = world.job("job2")
    assert waiting.state is JobState.PENDING
    assert "service limit" in waiting.history[-1].reason
    assert waiting.retry_at is not None
    world.run_until_ended("job1", "job2")
    assert world.job("job2").state is JobState.COMPLETED
    assert [a.training_job_name for a in world.job("job2").attempts] == ["job2"]


def test_ec2_without_capacity_puts_a_job_back_and_leaves_the_pool_to_others():
    world = World(pools=f"{P5}=1,{G5}=1", capacity={P5: 0}, profile=None)
    world.submit("job1", pending_seconds=120, training_seconds=60)
    world.submit("job2", kind=G5, training_seconds=60)
    world.run(400)
    assert world.job("job2").state is JobState.COMPLETED
    assert Outcome.RETURNED in {attempt.outcome for attempt in world.job("job1").attempts}
    assert "CapacityError" in world.job("job1").history[-1].reason or world.job("job1").state is JobState.STARTING
    world.simulator.set_capacity(P5, 1)
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.COMPLETED


def test_a_job_that_fails_ends_with_sagemakers_reason():
    world = World()
    world.submit("job1", training_seconds=30, outcome="failed")
    world.run_until_ended("job1")
    assert (world.job("job1").state, "AlgorithmError" in world.job("job1").failure) == (JobState.FAILED, True)


def test_a_job_that_outlives_its_runtime_is_stopped_and_not_resumed():
    world = World()
    request = a_request("job1", training_seconds=5000)
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 600}
    world.submit_request(request)
    world.run_until_ended("job1")
    assert (world.job("job1").state, "MaxRuntimeExceeded" in world.job("job1").failure) == (JobState.STOPPED, True)


def test_a_preempted_job_gives_up_its_warm_pool():
    world = World(pools=f"{P5}=1", limits={P5: 1}, warm_limits={P5: 1})
    request = a_request("job1", training_seconds=2000)
    request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 3600
    world.submit_request(request)
    world.run(200)
    world.submit("job2", priority=5, training_seconds=60)
    world.run_until_ended("job2", limit=2000)
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == ["preempted", "completed"]


def test_a_name_that_a_stranger_has_ends_the_job_and_leaves_the_stranger_alone():
    world = World()
    stranger = {key: value for key, value in a_request("job1", training_seconds=9000).items() if key != "Tags"}
    call(world, "CreateTrainingJob", **stranger)
    world.run(60)
    world.submit("job1")
    world.run(700)
    assert (world.job("job1").state, "did not start" in world.job("job1").failure) == (JobState.FAILED, True)
    assert world.training_jobs["job1"]["TrainingJobStatus"] == "InProgress"


def test_training_jobs_from_outside_count_where_the_pool_says_so():
    world = World(pools=f"{P5}=2")
    set_pools(world.api_context, ADA, [Pool(P5, 2, count_external=True)])
    call(world, "CreateTrainingJob", **a_request("outsider", training_seconds=400))
    world.run(70)
    world.submit("job1", training_seconds=900)
    world.submit("job2", training_seconds=60)
    world.run(100)
    assert world.states("job1", "job2") == {"job1": "running", "job2": "pending"}
    world.run_until_ended("job2")
    assert world.peaks == {P5: 2}


def test_training_jobs_from_outside_do_not_count_elsewhere():
    world = World(pools=f"{P5}=2")
    set_pools(world.api_context, ADA, [Pool(P5, 2, count_external=False)])
    call(world, "CreateTrainingJob", **a_request("outsider", training_seconds=4000))
    world.run(70)
    world.submit("job1", count=2, training_seconds=60)
    world.run_until_ended("job1", limit=1000)


def test_the_queues_own_attempts_are_never_taken_for_external():
    world = World(pools=f"{P5}=1")
    set_pools(world.api_context, ADA, [Pool(P5, 1, count_external=True)])
    world.submit("job1", training_seconds=600)
    world.run(300)
    world.submit("job2", priority=5, training_seconds=60)
    world.run_until_ended("job1", "job2")
    assert outcomes(world, "job1") == ["preempted", "completed"]
    assert world.api_context.store.read_snapshot().external == {}


def test_listing_keeps_to_two_requests_a_second():
    """The simulator throttles the third call of a second, and the virtual clock moves only when the manager sleeps."""
    world = World(pools=f"{P5}=500")
    set_pools(world.api_context, ADA, [Pool(P5, 500, count_external=True)])
    for index in range(450):
        call(world, "CreateTrainingJob", **a_request(f"outsider-{index}", training_seconds=9000))
    world.faults.calls.clear()
    before = world.clock.now()
    world.run(60, step=60)
    lists = world.faults.calls.count("ListTrainingJobs")
    assert lists >= 6
    assert (world.clock.now() - before).total_seconds() >= 60 + (lists - 1) * 0.5 - 1
    world.run(900, step=60)
    assert world.api_context.store.read_snapshot().external == {P5: 450}


def test_a_cap_can_change_while_jobs_run():
    world = World(pools=f"{P5}=1")
    for name in ("job1", "job2", "job3"):
        world.submit(name, training_seconds=400)
    world.run(100)
    set_pools(world.api_context, ADA, [Pool(P5, 2)])
    world.run(100)
    assert world.in_use() == {P5: 2}
    set_pools(world.api_context, ADA, [Pool(P5, 1)])
    world.run_until_ended("job1", "job2")
    assert world.states("job1", "job2", "job3")["job3"] in ("starting", "running", "pending")
    world.run_until_ended("job3")


def test_instance_preferences_charge_every_pool_until_sagemaker_has_chosen():
    world = World(pools=f"{P5}=1,{G5}=1", capacity={P5: 0})
    request = a_request("any", training_seconds=400)
    preferences = [{"InstanceType": P5, "InstanceCount": 1}, {"InstanceType": G5, "InstanceCount": 1}]
    request["ResourceConfig"] = {"InstancePreferences": preferences, "VolumeSizeInGB": 30}
    world.submit_request(request)
    world.settle()
    assert world.job("any").units == {P5: 1, G5: 1}
    world.run(200)
    assert world.job("any").units == {G5: 1}
    assert world.job("any").attempt.instance_type == G5
    world.run_until_ended("any")
    told = [line.reason for line in world.job("any").history]
    assert told.count(f"SageMaker has chosen 1 x {G5}") == 1
    assert told.count("instances at work") == 1
    assert world.job("any").attempts[-1].instance_type == G5


def test_one_bad_message_is_set_aside_with_its_reason_and_blocks_no_other():
    world = World()
    world.queue.send("this is not JSON")
    world.submit("job1", training_seconds=30)
    world.run_until_ended("job1")
    ((body, reason),) = world.queue.aside
    assert (body, "not JSON" in reason) == ("this is not JSON", True)


def test_a_burst_of_submissions_costs_one_pass():
    world = World(pools=f"{P5}=100")
    for index in range(50):
        world.submit(f"job{index}", training_seconds=30)
    assert len(world.queue.messages) == 1
    world.settle()
    assert len(world.opened) == 50


@pytest.mark.parametrize("name", ["job1", "x" * 63])
def test_later_attempts_carry_the_queues_stamp_and_tags(name):
    world = World(pools=f"{P5}=1")
    world.submit(name, training_seconds=600)
    world.run(200)
    world.submit("urgent", priority=9, training_seconds=30)
    world.run_until_ended(name, "urgent")
    second = world.opened[-1]
    assert "-qstamp-2" in second
    tags = world.training_jobs[second]["Tags"]
    assert (tags["trainmaster:job"], tags["trainmaster:attempt"], tags["trainmaster:queue"]) == (
        name,
        "2",
        "sagemaker-queue",
    )
    assert world.now() > EPOCH


def test_a_lane_longer_than_a_pass_reads_fills_its_pool_without_waiting_for_a_tick():
    world = World(pools=f"{P5}=120")
    for index in range(130):
        world.submit(f"job{index:03}", training_seconds=3000)
    world.settle()
    assert world.in_use() == {P5: 120}
    assert world.clock.now() == EPOCH


def test_a_full_pool_is_not_looked_at_again_at_once():
    world = World(pools=f"{P5}=1")
    for index in range(60):
        world.submit(f"job{index:03}", training_seconds=3000)
    world.settle()
    assert world.api_context.store.read_snapshot().pass_number == 1


def test_groups_of_several_types_hold_all_their_pools_at_once():
    world = World(pools=f"{P5}=1,{G5}=2")
    request = a_request("mixed", training_seconds=60)
    groups = [
        {"InstanceType": P5, "InstanceCount": 1, "InstanceGroupName": "trainers"},
        {"InstanceType": G5, "InstanceCount": 1, "InstanceGroupName": "feeders"},
        {"InstanceType": G5, "InstanceCount": 1, "InstanceGroupName": "checkers"},
    ]
    request["ResourceConfig"] = {"InstanceGroups": groups, "VolumeSizeInGB": 30}
    world.submit("blocker", kind=G5, training_seconds=100)
    world.settle()
    world.submit_request(request)
    world.run(100)
    assert world.job("mixed").state is JobState.PENDING
    world.run_until_ended("mixed")
    assert world.peaks == {P5: 1, G5: 2}


def test_a_waiting_job_starts_within_the_range_that_it_was_told():
    """Eight jobs have taught the queue how long jobs of this kind run; none of them comes near its limit of a day."""
    world = World(pools=f"{P5}=1")
    past = [f"past{number}" for number in range(8)]
    for number, name in enumerate(past):
        world.submit(name, training_seconds=100 * (1 + number % 3))
    world.run_until_ended(*past)
    world.submit("runs", training_seconds=200)
    world.run(30)
    for name in ("next", "last"):
        world.submit(name, training_seconds=150)
        world.run(5)
    told = explain(world.api_context.store, world.now(), [world.job("next"), world.job("last")])
    world.run_until_ended("next", "last")
    for name, said in told.items():
        started = world.job(name).attempts[0].created_at
        assert said.earliest_start <= started <= said.latest_start
        assert abs((started - said.estimated_start).total_seconds()) < 400
    assert told["next"].latest_start < told["last"].latest_start


def test_suggested_remedies_work():
    world = World(pools=f"{P5}=2,ml.p5e.48xlarge=1")
    world.submit("job1", count=2, training_seconds=5000, priority=3)
    world.run(60)
    world.submit("job2", training_seconds=60)
    world.run(60)
    help_ = diagnose(world.api_context.store.read_snapshot(), world.now(), world.job("job2")).advice
    assert [(advice.priority, advice.pool) for advice in help_] == [(4, None), (None, "ml.p5e.48xlarge")]
    change(world.api_context, ADA, "job2", priority=help_[0].priority)
    world.run_until_ended("job2", limit=2000)
    assert outcomes(world, "job1")[0] == "preempted"
