"""SageMaker's kinds of capacity as pools: the shipped manager over the simulator, on a virtual clock."""

from __future__ import annotations

import logging
import random
from contextlib import contextmanager
from datetime import timedelta
from functools import cache

import pytest

from builders import ADA, G5, P5
from samples import sample
from tables import new_table
from trainmaster.domain.access.caller import UNKNOWN
from trainmaster.domain.capacity.units import Kind, PlanStatus, Pool
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.reasons.rules import PlanClosed
from trainmaster.local.simulator import Profile
from trainmaster.local.virtual_time import launcher_for
from trainmaster.service.attempt_request import base_request
from trainmaster.service.capacity.pool_usage import pool_usage
from trainmaster.service.capacity.pools import set_pools
from trainmaster.service.context import ManagerContext
from trainmaster.service.explain.explain import explain_in
from world import EPOCH, Faults, World, a_request, in_chunks, kills

HOUR = 3600
SPOT = Pool("p5-spot", 2, type_=P5, kind=Kind.SPOT)
CALM = {"rates": {"DescribeTrainingJob": None, "CreateTrainingJob": None}}


def a_world(*pools, **settings):
    world = World(**CALM, **settings)
    set_pools(world.api_context, ADA, pools or [Pool(P5, 1), SPOT])
    return world


def a_plan(world, *hours, count=2, name="spring"):
    """A training plan reserved between these hours from the beginning, and its pool."""
    blocks = [tuple(EPOCH + timedelta(hours=hour) for hour in block) for block in hours]
    arn = world.simulator.add_plan(name, P5, count, *blocks)
    return Pool(name, count, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=arn)


def submit(world, name, pools="", *, checkpoint=True, keep_alive=0, plan=None, runtime=86_400, pending=0, **request):
    made = a_request(name, **request)
    if pools:
        made["Tags"].append({"Key": "trainmaster:pools", "Value": pools})
    if not checkpoint:
        del made["CheckpointConfig"]
    if keep_alive:
        made["ResourceConfig"]["KeepAlivePeriodInSeconds"] = keep_alive
    if plan is not None:
        made["ResourceConfig"]["TrainingPlanArn"] = plan
    made["StoppingCondition"]["MaxRuntimeInSeconds"] = runtime
    if pending:
        made["StoppingCondition"]["MaxPendingTimeInSeconds"] = pending
    return world.submit_request(made)


def described(world, name):
    return world.simulator.call("DescribeTrainingJob", TrainingJobName=name)


def reason(world, name):
    """Reason for which a job waits."""
    snapshot = world.api_context.store.read_snapshot()
    return explain_in(snapshot, world.now(), [world.job(name)])[name].reason


def outcomes(world, name):
    return [(str(attempt.outcome), *attempt.units) for attempt in world.job(name).attempts]


def usage(world, name=P5):
    return pool_usage(world.api_context.store.read_snapshot(), world.now())[name]


# ---------------------------------------------------------------- a choice among pools


def test_a_job_takes_the_first_of_its_pools_that_it_can_have():
    world = a_world(Pool(P5, 1), Pool("p5-spot", 1, type_=P5, kind=Kind.SPOT), Pool(G5, 1))
    for name in ("job1", "job2", "job3", "job4"):
        submit(world, name, f"p5-spot {P5} {G5}", training_seconds=5000)
    world.run(120)
    assert [list(world.job(name).units) for name in ("job1", "job2", "job3")] == [["p5-spot"], [P5], [G5]]
    assert world.job("job4").state is JobState.PENDING
    first, second, third = (described(world, name) for name in ("job1", "job2", "job3"))
    assert first["EnableManagedSpotTraining"] is True
    assert first["StoppingCondition"]["MaxWaitTimeInSeconds"] == 172_800
    assert second["EnableManagedSpotTraining"] is False
    assert "MaxWaitTimeInSeconds" not in second["StoppingCondition"]
    assert [each["ResourceConfig"]["InstanceType"] for each in (first, second, third)] == [P5, P5, G5]


def test_a_spot_job_without_a_spot_pool_counts_on_demand_as_spot():
    world = a_world(Pool(G5, 1))
    request = a_request("job1", kind=G5, training_seconds=60) | {"EnableManagedSpotTraining": True}
    request["StoppingCondition"]["MaxWaitTimeInSeconds"] = 90_000
    world.submit_request(request)
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("completed", G5)]
    assert described(world, "job1")["EnableManagedSpotTraining"] is True


def test_a_start_whose_pool_is_gone_before_sagemaker_was_asked_goes_back():
    world = a_world(faults=Faults(fail={}))
    submit(world, "job1", f"p5-spot+{P5}", training_seconds=60)
    world.simulator.faults.inject("CreateTrainingJob", "ServiceUnavailable", times=3)
    world.settle()
    assert world.job("job1").state is JobState.STARTING
    set_pools(world.api_context, ADA, [Pool(P5, 1)])
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("completed", P5)]
    assert "the pool p5-spot no longer exists" in " ".join(line.reason for line in world.job("job1").history)


def test_a_start_that_sagemaker_has_is_asked_for_with_its_type_again_though_its_pool_is_gone():
    """A request without a type would be refused instead of told that it is there, and that would end the job."""
    world = a_world(Pool("lab", 1, type_=P5), Pool(G5, 1))
    submit(world, "job1", "lab", training_seconds=600)
    world.run(30)
    job = world.job("job1")
    set_pools(world.api_context, ADA, [Pool(G5, 1)])
    left = world.api_context.store.settings().pools
    manager_context = ManagerContext(world.api_context.store, launcher_for(world.simulator), world, pools=left)
    config = base_request(manager_context, job, job.attempt)["ResourceConfig"]
    assert "lab" not in left
    assert (config["InstanceType"], config["InstanceCount"]) == (P5, 1)


def test_one_that_sagemaker_had_already_goes_on_though_its_pool_is_gone():
    world = a_world()
    submit(world, "job1", "p5-spot", training_seconds=600)
    world.simulator.faults.inject("CreateTrainingJob", "ServiceUnavailable", times=3, executed=True)
    world.settle()
    set_pools(world.api_context, ADA, [Pool(P5, 1)])
    world.run_until_ended("job1")
    assert (world.job("job1").state, world.opened) == (JobState.COMPLETED, ["job1"])


# ---------------------------------------------------------------- training plans


def test_a_job_waits_until_its_plan_is_active():
    world = World(**CALM)
    plan = a_plan(world, (2, 12))
    set_pools(world.api_context, ADA, [plan])
    submit(world, "job1", plan=plan.plan_arn, training_seconds=600)
    world.run(120)
    why = reason(world, "job1")
    assert (type(why), why.until) == (PlanClosed, EPOCH + timedelta(hours=2))
    assert world.opened == []
    world.run(2 * HOUR, step=30)
    assert world.job("job1").state is JobState.RUNNING
    assert described(world, "job1")["ResourceConfig"]["TrainingPlanArn"] == plan.plan_arn
    assert world.api_context.store.settings().pools["spring"].plan_status is PlanStatus.ACTIVE
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("completed", "spring")]


def test_a_job_running_at_the_plans_end_waits_again_and_continues_elsewhere():
    world = World(**CALM)
    plan = a_plan(world, (0, 2))
    set_pools(world.api_context, ADA, [plan, Pool(P5, 1)])
    submit(world, "job1", f"spring {P5}", training_seconds=2 * HOUR)
    world.run(1.4 * HOUR, step=30)
    assert list(world.job("job1").units) == ["spring"]
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("reclaimed", "spring"), ("completed", P5)]
    job = world.job("job1")
    assert (job.preemptions, job.failures, job.capacity_failures) == (0, {}, 0)
    trained = sum((a.ended_at - a.started_at).total_seconds() for a in job.attempts)
    assert trained < 2 * HOUR + 600, "it went on from where it was"


def test_a_user_who_stops_a_job_on_a_plan_stops_it():
    world = World(**CALM)
    plan = a_plan(world, (0, 8))
    set_pools(world.api_context, ADA, [plan])
    submit(world, "job1", "spring", training_seconds=20_000)
    world.run(600)
    world.simulator.call("StopTrainingJob", TrainingJobName="job1")
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("stopped", "spring")]


def test_nothing_is_started_that_could_not_save_its_work():
    world = World(**CALM)
    plan = a_plan(world, (0, 2))
    set_pools(world.api_context, ADA, [plan])
    world.run(60)
    submit(world, "long", "spring", checkpoint=False, runtime=2 * HOUR)
    submit(world, "short", "spring", checkpoint=False, runtime=HOUR, training_seconds=3300)
    submit(world, "saves", "spring", training_seconds=40_000)
    world.run(60)
    assert world.states("long", "short", "saves") == {"long": "pending", "short": "running", "saves": "running"}
    assert "before it is expected to end" in reason(world, "long").message()
    world.run(1.4 * HOUR, step=30)
    submit(world, "late", "spring", training_seconds=60)
    world.run(300)
    assert "before it could save its work" in reason(world, "late").message()
    world.run(2 * HOUR, step=60)
    assert world.states("long", "saves", "late") == {"long": "pending", "saves": "preempted", "late": "pending"}
    assert "has ended" in reason(world, "long").message()


def test_a_plan_of_two_reserved_capacities_keeps_its_jobs():
    world = World(**CALM)
    plan = a_plan(world, (0, 2), (4, 10))
    set_pools(world.api_context, ADA, [plan])
    submit(world, "job1", "spring", training_seconds=2.5 * HOUR)
    world.run(1.3 * HOUR, step=60)
    assert world.job("job1").attempt.reclaimed_at == EPOCH + timedelta(hours=1.5)
    world.run(1.7 * HOUR, step=60)
    assert described(world, "job1")["SecondaryStatus"] == "Pending"
    assert world.job("job1").units == {"spring": 1}
    world.run(1.2 * HOUR, step=60)
    assert world.job("job1").attempt.reclaimed_at == EPOCH + timedelta(hours=9.5)
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("completed", "spring")]


def test_a_plan_that_cannot_be_described_delays_only_its_own_jobs():
    world = World(**CALM)
    plan = a_plan(world, (0, 8))
    set_pools(world.api_context, ADA, [plan, Pool(P5, 1)])
    world.simulator.faults.inject("DescribeTrainingPlan", "AccessDeniedException", times=10_000)
    submit(world, "job1", "spring")
    submit(world, "job2", training_seconds=60)
    world.run_until_ended("job2")
    assert "has not reported yet" in reason(world, "job1").message()


def test_a_submission_is_told_when_its_plan_begins():
    world = World(**CALM)
    plan = a_plan(world, (2, 12))
    set_pools(world.api_context, ADA, [plan])
    world.run(60)
    made = a_request("job1")
    made["ResourceConfig"]["TrainingPlanArn"] = plan.plan_arn
    job = world.admission.admit(made, UNKNOWN, world.api_context.store.settings().pools, world.now()).job
    told = explain_in(world.api_context.store.read_snapshot(), world.now(), [job])
    assert isinstance(told[job.name].reason, PlanClosed)


# ---------------------------------------------------------------- spot


def test_interruptions_are_counted_apart_and_the_units_stay_charged():
    world = a_world()
    submit(world, "job1", "p5-spot", training_seconds=3000)
    for times in (1, 2):
        world.run(600)
        world.simulator.interrupt("job1")
        world.run(20)
        job = world.job("job1")
        assert (job.attempt.interruptions, job.preemptions, job.units) == (times, 0, {"p5-spot": 1})
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("completed", "p5-spot")]


def test_a_job_that_got_no_spot_instances_in_time_is_tried_again():
    world = a_world(spot_capacity={P5: 0})
    submit(world, "job1", f"p5-spot+{P5}", training_seconds=60, runtime=600)
    world.run(2 * HOUR, step=30)
    first = world.job("job1").attempts[0]
    assert (first.outcome, "MaxWaitTimeExceeded" in first.reason) == (Outcome.FAILED, True)
    world.simulator.set_capacity(P5, None, spot=True)
    world.run_until_ended("job1")
    assert world.job("job1").state is JobState.COMPLETED
    assert {str(failure) for failure in world.job("job1").failures} == {"spot"}


@pytest.mark.parametrize("low", [0, 1], ids=["free", "held by a job of lower priority"])
def test_a_job_that_gets_no_spot_instances_in_its_pending_time_starts_in_its_next_pool(low):
    world = a_world(spot_capacity={P5: 0})
    for number in range(low):
        submit(world, f"low{number}", P5, training_seconds=30_000, priority=-2)
        world.run(120)
    submit(world, "job1", f"p5-spot+{P5}", training_seconds=60, runtime=4 * HOUR, pending=HOUR // 2)
    since = world.now()
    world.run(HOUR // 2 - 60, step=30)
    assert world.job("job1").state is JobState.STARTING
    world.run_until_ended("job1", limit=HOUR // 4)
    assert outcomes(world, "job1") == [("returned", "p5-spot"), ("completed", P5)]
    assert world.job("job1").attempt.created_at - since <= timedelta(minutes=35)
    reasons = [line.reason for line in world.job("job1").history]
    assert "is stopped to start elsewhere: no EC2 capacity within MaxPendingTimeInSeconds" in reasons
    assert sum(world.job(f"low{number}").preemptions for number in range(low)) == low


def pending_for_spot(**settings):
    """A world without spot instances, just before a job has waited for them as long as it allows."""
    world = a_world(spot_capacity={P5: 0}, **settings)
    submit(world, "job1", f"p5-spot+{P5}", training_seconds=3000, runtime=4 * HOUR, pending=1860)
    return world


def silent_about_starts(_number, event):
    return [] if event["detail"].get("SecondaryStatus") in ("Downloading", "Training") else [0.0]


def test_a_job_whose_spot_instances_came_in_time_keeps_them_though_no_event_reported_them():
    world = pending_for_spot(events=silent_about_starts)
    world.run(1760)
    world.simulator.set_capacity(P5, None, spot=True)
    world.run_until_ended("job1")
    assert outcomes(world, "job1") == [("completed", "p5-spot")]


def test_a_job_whose_spot_instances_came_as_it_was_stopped_waits_again_without_a_shortage():
    world = pending_for_spot()
    world.run(1800)
    world.simulator.faults.inject("StopTrainingJob", "ServiceUnavailable", times=6)
    world.run(60)
    world.simulator.set_capacity(P5, None, spot=True)
    world.run_until_ended("job1")
    job = world.job("job1")
    assert outcomes(world, "job1") == [("preempted", "p5-spot"), ("completed", "p5-spot")]
    assert (job.failures, job.capacity_failures, job.attempts[0].shortages) == ({}, 0, {})
    reasons = [line.reason for line in job.history]
    assert "its instances came after MaxPendingTimeInSeconds, when it was being stopped" in reasons
    assert not any("had no capacity" in reason for reason in reasons)


@pytest.mark.parametrize(
    "request_parts", [{"pools": "p5-spot", "pending": HOUR // 2}, {"pools": f"p5-spot+{P5}"}], ids=["only", "no limit"]
)
def test_other_spot_jobs_wait_for_as_long_as_sagemaker_does(request_parts):
    world = a_world(spot_capacity={P5: 0})
    submit(world, "job1", training_seconds=60, runtime=4 * HOUR, **request_parts)
    world.run(3 * HOUR, step=60)
    world.simulator.set_capacity(P5, None, spot=True)
    world.run_until_ended("job1", limit=600)
    assert outcomes(world, "job1") == [("completed", "p5-spot")]


# ---------------------------------------------------------------- checkpoints


def test_the_cost_of_a_preemption_is_the_work_since_the_newest_checkpoint():
    world = a_world(Pool(P5, 2))
    submit(world, "job1", training_seconds=30_000)
    submit(world, "job2", training_seconds=30_000)
    world.run(2 * HOUR, step=60)
    saved = world.now() - timedelta(minutes=3)
    world.checkpoints["s3://bucket/checkpoints/job2"] = saved
    world.run(360, step=30)
    assert (world.job("job1").attempt.saved_at, world.job("job2").attempt.saved_at) == (None, saved)
    world.submit("urgent", priority=5, training_seconds=60)
    world.run_until_ended("urgent")
    assert (outcomes(world, "job2")[0], world.job("job1").preemptions) == (("preempted", P5), 0)


def test_checkpoints_tell_how_often_they_are_written():
    world = a_world(Pool(P5, 1))
    submit(world, "job1", training_seconds=30_000)
    world.run(400, step=30)
    for _ in range(8):
        world.checkpoints["s3://bucket/checkpoints/job1"] = world.now()
        world.run(420, step=30)
    assert world.job("job1").attempt.saves_every == timedelta(seconds=420)


# ---------------------------------------------------------------- warm pools


def warm_of(world):
    return [(pool.training_job_name, pool.used_by) for pool in world.api_context.store.read_snapshot().warm]


def left(world, name="job1", *, kind=P5, keep_alive=3000, **request):
    """A job has ended and left a warm pool."""
    submit(world, name, kind=kind, keep_alive=keep_alive, training_seconds=60, **request)
    world.run_until_ended(name)
    assert warm_of(world) == [(name, None)]


def test_a_warm_pool_counts_against_the_cap_until_it_ends():
    world = a_world(Pool(P5, 2), limits={P5: 2})
    left(world, keep_alive=900)
    assert (usage(world).used, usage(world).warm, usage(world).free) == (0, 1, 1)
    world.run(1000, step=30)
    assert warm_of(world) == []
    assert usage(world).free == 2


def test_a_job_that_matches_starts_on_it_though_nothing_is_free():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world)
    submit(world, "job2", training_seconds=600)
    world.run(100)
    assert world.job("job2").state is JobState.RUNNING
    assert described(world, "job1")["WarmPoolStatus"]["ReusedByJob"] == "job2"
    assert (usage(world).used, usage(world).warm) == (1, 0)
    world.run(120)
    assert warm_of(world) == []
    world.run_until_ended("job2")
    assert outcomes(world, "job2") == [("completed", P5)]


def test_among_equals_the_one_that_matches_goes_first():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    submit(world, "job1", keep_alive=3000, training_seconds=300)
    world.run(60)
    other = a_request("other", training_seconds=60) | {"EnableNetworkIsolation": True}
    world.submit_request(other)
    world.run(10)
    submit(world, "same", training_seconds=60)
    world.run_until_ended("job1", "other", "same")
    started = {name: world.job(name).attempt.created_at for name in ("other", "same")}
    assert started["same"] < started["other"]
    assert described(world, "job1")["WarmPoolStatus"]["ReusedByJob"] == "same"


def test_one_that_stands_in_the_way_is_ended_for_a_job_that_it_does_not_fit():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world)
    world.submit_request(a_request("other", training_seconds=60) | {"EnableNetworkIsolation": True})
    world.run(60)
    assert world.job("other").state in (JobState.STARTING, JobState.RUNNING)
    assert described(world, "job1")["WarmPoolStatus"]["Status"] == "Terminated"
    assert warm_of(world) == []
    world.run_until_ended("other")
    assert outcomes(world, "other") == [("completed", P5)]


def test_a_gang_ends_the_pools_that_it_needs_and_no_more():
    world = a_world(Pool(P5, 3), limits={P5: 3})
    for name in ("a", "b", "c"):
        submit(world, name, keep_alive=3000, training_seconds=60)
    world.run_until_ended("a", "b", "c")
    assert usage(world).warm == 3
    submit(world, "gang", count=2, training_seconds=300)
    world.run(60)
    assert (usage(world).used, usage(world).warm) == (2, 1)


def test_a_job_of_lower_priority_waits_until_it_ends_by_itself():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world, priority=3, keep_alive=1200)
    low = a_request("low", training_seconds=60) | {"EnableNetworkIsolation": True}
    world.submit_request(low)
    world.run(600, step=30)
    assert world.job("low").state is JobState.PENDING
    world.run_until_ended("low")
    assert outcomes(world, "low") == [("completed", P5)]


def test_a_warm_pool_ended_elsewhere_is_forgotten():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world)
    config = {"KeepAlivePeriodInSeconds": 0}
    world.simulator.call("UpdateTrainingJob", TrainingJobName="job1", ResourceConfig=config)
    world.run(400, step=30)
    assert warm_of(world) == []


def test_a_warm_pool_that_the_queue_may_not_end_is_forgotten_once_it_has_ended():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world, keep_alive=600)
    world.simulator.faults.inject("UpdateTrainingJob", "AccessDeniedException", times=None)
    world.submit_request(a_request("other", training_seconds=60) | {"EnableNetworkIsolation": True})
    world.run_until_ended("other", limit=2000)
    assert outcomes(world, "other") == [("completed", P5)]


def test_a_warm_pool_that_is_extended_counts_for_longer():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world, keep_alive=600)
    world.simulator.call("UpdateTrainingJob", TrainingJobName="job1", ResourceConfig={"KeepAlivePeriodInSeconds": 3000})
    world.run(1200, step=30)
    assert warm_of(world) == [("job1", None)]
    world.run(2000, step=30)
    assert warm_of(world) == []


def test_events_without_a_word_of_warm_pools_are_enough():
    def silent(_number, event):
        event["detail"].pop("WarmPoolStatus", None)
        return [0.0]

    world = a_world(Pool(P5, 1), limits={P5: 1}, events=silent)
    left(world, keep_alive=900)
    submit(world, "job2", keep_alive=900, training_seconds=60)
    world.run_until_ended("job2")
    world.run(60)
    assert usage(world).warm == 1
    world.run(1000, step=30)
    assert warm_of(world) == []


def test_a_start_on_a_warm_pool_that_comes_to_nothing_gives_it_back():
    world = a_world(Pool(P5, 1), limits={P5: 1})
    left(world)
    world.simulator.faults.inject("CreateTrainingJob", "ResourceLimitExceeded", times=1)
    submit(world, "job2", training_seconds=60)
    world.settle()
    assert (world.job("job2").state, usage(world).warm, usage(world).free) == (JobState.PENDING, 1, 0)
    world.run_until_ended("job2")
    assert described(world, "job1")["WarmPoolStatus"]["ReusedByJob"] == "job2"


def test_a_pool_that_sagemaker_did_not_give_to_the_job_counts_again():
    """Its own words decide, whatever we take to be compared."""
    world = a_world(Pool(P5, 2))
    left(world)
    snapshot = world.api_context.store.begin_pass()
    job = submit(world, "job2", training_seconds=3000)
    world.simulator.call(
        "CreateTrainingJob", **{k: v for k, v in a_request("thief", training_seconds=3000).items() if k != "Tags"}
    )
    assert described(world, "job1")["WarmPoolStatus"]["ReusedByJob"] == "thief"
    assert (snapshot.warm[0].warm_pool_key, world.opened[-1]) == (job.warm_pool_key, "thief")
    world.run(300)
    assert (world.job("job2").state, warm_of(world)) == (JobState.RUNNING, [])


BRISK = Profile(
    requesting_seconds=1,
    starting_seconds=5,
    warm_starting_seconds=2,
    downloading_seconds=2,
    uploading_seconds=2,
    stopping_seconds=5,
)


def a_crowd(seed):
    """Jobs of two types at random times, many with a keep-alive; the account allows just what the caps say."""
    rng = random.Random(seed)
    world = a_world(Pool(P5, 3), Pool(G5, 4), limits={P5: 3, G5: 4}, profile=BRISK)
    names = [f"j{index}" for index in range(14)]
    for name in names:
        request = a_request(
            name,
            kind=rng.choice((P5, G5)),
            count=rng.randint(1, 2),
            priority=rng.randint(0, 2),
            training_seconds=rng.randint(10, 400),
            outcome=rng.choice(("completed", "completed", "failed")),
        )
        request["ResourceConfig"]["KeepAlivePeriodInSeconds"] = rng.choice((0, 300, 3000))
        request["EnableNetworkIsolation"] = rng.random() < 0.2
        world.submit_request(request)
        world.run(rng.choice((0, 30, 90, 300)), step=30)
    world.run_until_ended(*names)
    return world, names


@pytest.mark.parametrize("seeds", sample([range(4), range(4, 8), range(8, 12)]), ids=str)
def test_a_queue_that_counts_warm_pools_never_meets_the_accounts_limit(seeds):
    """One instance miscounted would bring a start back."""
    reused = 0
    for seed in seeds:
        world, names = a_crowd(seed)
        attempts = [attempt for name in names for attempt in world.job(name).attempts]
        assert not [attempt for attempt in attempts if attempt.outcome is Outcome.RETURNED]
        reused += sum("ReusedByJob" in described(world, name).get("WarmPoolStatus", {}) for name in names)
        world.run(4000, step=60)
        assert (warm_of(world), world.simulator.quotas.used(P5), world.simulator.quotas.used(G5)) == ([], 0, 0)
    assert reused >= 3


@contextmanager
def a_killable_world(**arguments):
    """A world on DynamoDB with one instance, on which job1 has left a warm pool."""
    logging.disable(logging.CRITICAL)
    try:
        with new_table() as client:
            world = World(client, profile=BRISK, pools=f"{P5}=1", limits={P5: 1}, **arguments)
            left(world)
            world.faults.calls.clear()
            yield world
    finally:
        logging.disable(logging.NOTSET)


STORIES = {"ended": {"EnableNetworkIsolation": True}, "used": {}}
CHUNKS = 4


def play(world, story):
    """The next job ends the warm pool, or starts on it."""
    world.submit_request(a_request("next", training_seconds=20) | STORIES[story])
    world.run_until_ended("next", limit=2500)


def check(world, story):
    assert (world.job("next").state, world.opened) == (JobState.COMPLETED, ["job1", "next"])
    world.run(130, step=65)
    assert described(world, "job1")["WarmPoolStatus"]["Status"] == {"ended": "Terminated", "used": "Reused"}[story]
    assert warm_of(world) == []


@cache
def calls_of(story):
    """The manager's AWS calls in an untouched run."""
    with a_killable_world() as world:
        play(world, story)
        calls = [*world.faults.calls]
        check(world, story)
        return calls


@in_chunks(CHUNKS)
@pytest.mark.parametrize("reads", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["change", "read"])
@pytest.mark.parametrize("story", ["ended", pytest.param("used", marks=pytest.mark.slow)])
def test_a_warm_pool_that_was_decided_upon_is_ended_or_used_whatever_call_the_manager_dies_after(story, reads, chunk):
    for number in kills(calls_of(story), reads=reads)[chunk::CHUNKS]:
        with a_killable_world() as world:
            world.faults.kill_after = number
            play(world, story)
            assert world.killed == 1
            check(world, story)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
@pytest.mark.parametrize("story", STORIES)
def test_and_whatever_call_fails(story, code, chunk):
    for number in range(chunk + 1, len(calls_of(story)) + 1, CHUNKS):
        with a_killable_world() as world:
            world.faults.fail = {number: code}
            play(world, story)
            check(world, story)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("story", STORIES)
def test_and_whenever_another_manager_overtakes_it(story, chunk):
    for number in range(chunk + 1, len(calls_of(story)) + 1, CHUNKS):
        with a_killable_world() as world:
            world.faults.overtake_after = number
            play(world, story)
            assert world.overtaken == 1
            check(world, story)
