"""Draining and removing pools while the queue works: the whole service over the simulated SageMaker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import ADA, G5, NOW, P5, a_job
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.errors import PoolInUse
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.reasons.rules import Draining
from trainmaster.local.memory.store import MemoryStore
from trainmaster.service.capacity.pool_usage import State, pool_usage, state_of
from trainmaster.service.capacity.pools import change_pool, put_pool, remove_pool, set_pools
from trainmaster.service.explain.explain import explain_in
from world import World, a_request

CALM = {"rates": {"DescribeTrainingJob": None, "CreateTrainingJob": None}}
OTHER = Pool("other", 1, type_=G5)


def a_world(*pools):
    world = World(**CALM)
    set_pools(world.api_context, ADA, pools or [Pool(P5, 2), OTHER])
    return world


def submit(world, name, pools="", *, keep_alive=0, **request):
    made = a_request(name, **request)
    if pools:
        made["Tags"].append({"Key": "trainmaster:pools", "Value": pools})
    if keep_alive:
        made["ResourceConfig"]["KeepAlivePeriodInSeconds"] = keep_alive
    return world.submit_request(made)


def reason(world, name):
    snapshot = world.api_context.store.read_snapshot()
    return explain_in(snapshot, world.now(), [world.job(name)])[name].reason


def state(world, name=P5):
    snapshot = world.api_context.store.read_snapshot()
    return state_of(snapshot.pools[name], pool_usage(snapshot, world.now())[name])


def drain(world, name=P5, *, draining=True):
    change_pool(world.api_context, ADA, name, {"draining": draining})


def test_a_pool_drains_while_its_jobs_end_and_others_wait_or_go_elsewhere():
    world = a_world()
    submit(world, "job1", training_seconds=600)
    submit(world, "job2", training_seconds=1200)
    world.run(120)
    drain(world)
    submit(world, "urgent", priority=9, training_seconds=60)
    submit(world, "either", f"{P5} other", training_seconds=60)
    world.run(300)
    assert world.states("job1", "job2", "urgent") == {"job1": "running", "job2": "running", "urgent": "pending"}
    assert (reason(world, "urgent"), state(world)) == (Draining((P5,)), State.DRAINING)
    world.run_until_ended("either", "job1")
    assert [dict(attempt.units) for attempt in world.job("either").attempts] == [{"other": 1}]
    assert (state(world), world.job("urgent").state) == (State.DRAINING, JobState.PENDING)
    world.run_until_ended("job2")
    assert (state(world), world.job("urgent").attempts) == (State.DRAINED, ())
    drain(world, draining=False)
    world.run_until_ended("urgent")
    assert world.job("urgent").state is JobState.COMPLETED
    assert [world.job(name).preemptions for name in ("job1", "job2")] == [0, 0]


def test_warm_pools_of_a_pool_that_drains_are_ended_and_none_is_left_after():
    world = a_world(Pool(P5, 2))
    submit(world, "idle", keep_alive=3000, training_seconds=60)
    submit(world, "runs", keep_alive=3000, training_seconds=900)
    world.run_until_ended("idle")
    world.run(30)
    assert [pool.training_job_name for pool in world.api_context.store.read_snapshot().warm] == ["idle"]
    drain(world)
    world.run(180)
    assert world.api_context.store.read_snapshot().warm == ()
    assert state(world) is State.DRAINING
    world.run_until_ended("runs")
    world.run(240)
    assert (world.api_context.store.read_snapshot().warm, state(world)) == ((), State.DRAINED)
    assert world.simulator.quotas.used(P5) == 0


def test_jobs_that_wait_for_a_pool_that_goes_run_in_another():
    world = a_world()
    for name in ("job1", "job2"):
        submit(world, name, training_seconds=1500)
    submit(world, "first", "other", kind=G5, training_seconds=300)
    world.run(60)
    submit(world, "either", f"{P5} other", training_seconds=60)
    world.run(60)
    drain(world)
    world.run_until_ended("job1", "job2", "first")
    submit(world, "late", f"{P5} other", training_seconds=60)
    done = remove_pool(world.api_context, ADA, P5)
    assert [job.name for job in done.impact.stranded] == []
    assert sorted(done.change.settings.pools) == ["other"]
    world.run_until_ended("either", "late")
    assert {name: dict(world.job(name).attempts[-1].units) for name in ("either", "late")} == {
        "either": {"other": 1},
        "late": {"other": 1},
    }


def test_a_job_that_was_preempted_counts_as_one_that_waits():
    world = a_world(Pool(P5, 1), Pool("p5-spot", 1, type_=P5, kind=Kind.SPOT))
    submit(world, "low", P5, priority=-1, training_seconds=900)
    world.run(120)
    submit(world, "high", P5, priority=5, training_seconds=900)
    world.run(240)
    assert world.states("low", "high") == {"low": "preempted", "high": "running"}
    with pytest.raises(PoolInUse, match="high holds 1"):
        remove_pool(world.api_context, ADA, P5)
    drain(world)
    world.run_until_ended("high")
    world.run(60)
    with pytest.raises(PoolInUse, match=r"1 waiting job could run only in .*: low"):
        remove_pool(world.api_context, ADA, P5)
    assert [job.name for job in remove_pool(world.api_context, ADA, P5, force=True).impact.stranded] == ["low"]
    world.run(120)
    assert world.job("low").state is JobState.PREEMPTED
    set_pools(world.api_context, ADA, [Pool(P5, 1)])
    world.run_until_ended("low")
    assert world.job("low").state is JobState.COMPLETED
    assert dict(world.peaks) == {P5: 1}


LAB = Pool("lab", 2, type_=P5)
INTO_ANOTHER = [Pool("lab", 2, type_=G5), Pool("lab", 2, type_=P5, kind=Kind.SPOT)]


def put(world, pool):
    return put_pool(world.api_context, ADA, pool)


def put_all(world, pool):
    return set_pools(world.api_context, ADA, [pool, OTHER])


@pytest.mark.parametrize("setting", [put, put_all])
@pytest.mark.parametrize("changed", INTO_ANOTHER)
def test_a_pool_becomes_no_other_one_while_jobs_hold_instances_of_it(setting, changed):
    world = a_world(LAB, OTHER)
    submit(world, "job1", "lab", training_seconds=600)
    world.run(60)
    with pytest.raises(PoolInUse) as refused:
        setting(world, changed)
    assert (refused.value.field, "job1" in refused.value.message) == ("instanceType", True)
    assert world.api_context.store.settings().pools["lab"] == LAB
    setting(world, Pool("lab", 1, type_=P5))
    world.run_until_ended("job1")
    setting(world, changed)
    assert world.api_context.store.settings().pools["lab"] == changed


def test_nor_while_a_warm_pool_keeps_some():
    world = a_world(LAB, OTHER)
    submit(world, "job1", "lab", keep_alive=3000, training_seconds=30)
    world.run_until_ended("job1")
    with pytest.raises(PoolInUse, match="warm pool of job1"):
        put_pool(world.api_context, ADA, INTO_ANOTHER[0])


class Queue(tuple):
    """Waiting jobs that must not be iterated."""

    __slots__ = ()

    def __iter__(self):
        raise AssertionError("the queue is gone through")


class Deep(MemoryStore):
    """A store that reads such a queue."""

    def read_snapshot(self):
        return replace(super().read_snapshot(), waiting=Queue(super().read_snapshot().waiting))


def test_acceptance_does_not_depend_on_the_waiting_jobs():
    store = Deep(default_pools={"lab": LAB, "other": OTHER}, now=lambda: NOW)
    api_context = replace(a_world(LAB, OTHER).api_context, store=store)
    store.submit(
        a_job("job1", demand=Demand((), queue_selects_pool=True, resources=Resources(vcpus=1), instances=1)),
        a_request("job1"),
    )
    set_pools(api_context, ADA, [replace(LAB, type_=G5), OTHER, Pool("new", 1, type_=P5)])
    assert sorted(store.settings().pools) == ["lab", "new", "other"]


def test_jobs_of_a_pool_that_was_removed_count_again_in_one_of_its_name_which_is_of_their_type():
    world = a_world(LAB, OTHER)
    submit(world, "job1", "lab", training_seconds=600)
    world.run(60)
    remove_pool(world.api_context, ADA, "lab", force=True)
    with pytest.raises(PoolInUse, match="job1"):
        put_pool(world.api_context, ADA, INTO_ANOTHER[0])
    put_pool(world.api_context, ADA, LAB)
    assert pool_usage(world.api_context.store.read_snapshot(), world.now())["lab"].used == 1
