"""AWS has none of a pool's instances, or grants none, while another pool that would do is free: the job goes there."""

from __future__ import annotations

import pytest

from builders import P5
from trainmaster.domain.jobs.job import JobState
from trainmaster.service.explain.explain import explain
from world import BRISK, World, a_request

P4, G6 = "ml.p4d.24xlarge", "ml.g6.48xlarge"
NOTHING_FOR = {"capacity": {P4: 0}}, {"limits": {P4: 0}}


def a_world(pools=f"{P4}=4,{P5}=4", **without):
    return World(pools=pools, profile=BRISK, **without)


def a_request_for(name, tags, **members):
    """A request without a type."""
    request = a_request(name, training_seconds=300, **members)
    tagged = [{"Key": f"trainmaster:{key}", "Value": value} for key, value in tags.items()]
    return {
        **request,
        "ResourceConfig": {"VolumeSizeInGB": 30, "InstanceCount": 1},
        "Tags": [*request["Tags"], *tagged],
    }


def submit(world, name, resources="accelerators=8", **config):
    request = a_request_for(name, {"resources": resources})
    world.submit_request({**request, "ResourceConfig": request["ResourceConfig"] | config})


def tried(world, name):
    """Pools in which the job was started, in that order."""
    return [line.reason.split()[3].rstrip(":") for line in world.job(name).history if line.reason.startswith("takes")]


@pytest.mark.parametrize("without", NOTHING_FOR)
class TestAJobWhosePoolHasNothing:
    def test_runs_in_the_next_that_covers_it_and_says_why(self, without):
        world = a_world(**without)
        submit(world, "job1")
        world.run_until_ended("job1", limit=1_000)
        assert (world.job("job1").state, tried(world, "job1")) == (JobState.COMPLETED, [P4, P5])
        (why,) = [line.reason for line in world.job("job1").history if f"x {P5}" in line.reason]
        assert f"takes 1 x {P5}: {P4} had no capacity at 2026-11-21T12:0" in why

    def test_runs_in_the_next_of_the_types_that_it_lists(self, without):
        world = a_world(**without)
        submit(world, "job1", InstancePreferences=[{"InstanceType": P4}, {"InstanceType": P5}])
        world.run_until_ended("job1", limit=1_000)
        assert (world.job("job1").state, tried(world, "job1")) == (JobState.COMPLETED, [P4, P5])

    def test_runs_in_the_next_of_the_pools_that_it_names(self, without):
        world = a_world(**without)
        request = a_request_for("job1", {"pools": f"{P4} {P5}"})
        world.submit_request({**request, "ResourceConfig": request["ResourceConfig"] | {"InstanceType": P4}})
        world.run_until_ended("job1", limit=1_000)
        assert (world.job("job1").state, tried(world, "job1")) == (JobState.COMPLETED, [P4, P5])

    def test_spares_those_that_come_after_it_the_same_try(self, without):
        world = a_world(**without)
        submit(world, "job1")
        world.run(300)
        submit(world, "job2")
        world.run_until_ended("job1", "job2", limit=1_000)
        assert tried(world, "job2") == [P5]
        # A pool whose quota is 0 is none of its alternatives, so its history does not say that it was passed over.
        words = f"takes 1 x {P5}: {P4} had no capacity at" if "capacity" in without else f"takes 1 x {P5}"
        assert any(words in line.reason for line in world.job("job2").history)

    def test_waits_and_tells_what_it_met(self, without):
        world = a_world(**without)
        submit(world, "job1")
        while world.job("job1").state is not JobState.PENDING or world.job("job1").attempt is None:
            world.run(5)
        told = explain(world.api_context.store, world.now(), [world.job("job1")])["job1"]
        words = told.reason.message()
        assert f": {P4} had no capacity at 2026-11-21T12:0" in words


def test_of_three_pools_of_which_two_have_nothing_each_is_tried_in_turn():
    pools = f"{G6}=1,{P4}=1,{P5}=1"
    world = a_world(pools, limits={G6: 0, P4: 0})
    submit(world, "job1")
    world.run_until_ended("job1", limit=1_000)
    assert (tried(world, "job1"), len(world.job("job1").attempts)) == ([G6, P4, P5], 1)


def test_where_all_have_nothing_they_are_tried_in_turn_for_as_long_as_it_takes():
    world = a_world(capacity={P4: 0, P5: 0})
    submit(world, "job1")
    world.run(7_200, step=30)
    places = tried(world, "job1")
    assert len(places) > 8
    assert places == [(P4, P5)[n % 2] for n in range(len(places))]


def test_where_all_quotas_are_too_small_they_are_tried_again_once_an_hour():
    world = a_world(limits={P4: 0, P5: 0})
    submit(world, "job1")
    world.run(2.5 * 3_600, step=30)
    assert tried(world, "job1") == [P4, P5] * 3


def test_after_a_while_others_try_the_pool_again():
    world = a_world(capacity={P4: 0})
    submit(world, "job1")
    world.run(400)
    world.simulator.set_capacity(P4, 4)
    world.run(1_200, step=30)
    submit(world, "job2")
    world.run_until_ended("job2", limit=1_000)
    assert tried(world, "job2") == [P4]
