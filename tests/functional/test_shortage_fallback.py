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


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (NOTHING_FOR[0], f": {P4} had no capacity at 2026-11-21T12:0"),
        (NOTHING_FOR[1], f"waits for 1 of 1 x {P5}"),
    ],
)
def test_where_the_next_pool_is_full_a_job_tells_what_it_waits_for(without, words):
    world = a_world(f"{P4}=4,{P5}=1", **without)
    world.submit("first", kind=P5, training_seconds=3_000)
    submit(world, "job1")
    while world.job("job1").state is not JobState.PENDING or world.job("job1").attempt is None:
        world.run(5)
    told = explain(world.api_context.store, world.now(), [world.job("job1")])["job1"]
    assert words in told.reason.message()


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


class TestWhereTheOtherPoolIsFull:
    """Of the pools that a job names, the first is free but AWS has none; jobs of lower priority hold the other."""

    LOW = ("low0", "low1")

    def a_full_world(self, **fields):
        world = a_world(f"{P4}=2,{P5}=2", capacity={P4: 0})
        for name in self.LOW:
            world.submit(name, kind=P5, training_seconds=20_000, **fields)
        world.run(120)
        return world

    @staticmethod
    def submit_both(world, name, **members):
        request = a_request_for(name, {"pools": f"{P4} {P5}"}, **members)
        world.submit_request({**request, "ResourceConfig": request["ResourceConfig"] | {"InstanceType": P4}})

    def test_it_preempts_there_at_once(self):
        world = self.a_full_world()
        self.submit_both(world, "high", priority=5)
        world.run_until_ended("high", limit=1_000)
        assert tried(world, "high") == [P4, P5]
        assert sum(world.job(name).preemptions for name in self.LOW) == 1

    def test_its_equals_go_there_without_a_try_of_their_own(self):
        world = self.a_full_world()
        for name in ("high0", "high1"):
            self.submit_both(world, name, priority=5)
        world.run_until_ended("high0", "high1", limit=1_000)
        assert tried(world, "high0") == [P4, P5]
        assert tried(world, "high1")[-1] == P5

    def test_without_jobs_to_preempt_it_waits_for_either(self):
        world = self.a_full_world(priority=9)
        self.submit_both(world, "high", priority=5)
        world.run(3 * 3_600, step=30)
        assert set(tried(world, "high")) == {P4}
        assert len(tried(world, "high")) <= 14, "1, 2, 4, 8, then 16 minutes lie between two tries"
        world.simulator.set_capacity(P4, 2)
        world.run_until_ended("high", limit=2_000)
        assert all(world.job(name).preemptions == 0 for name in self.LOW)

    def test_it_does_not_leave_what_others_gave_it_for_another_refused_start(self):
        world = a_world(f"{P4}=2,{P5}=2", capacity={P4: 0})
        for name in self.LOW:
            world.submit(name, kind=P5, training_seconds=20_000, stopping_seconds=300)
        world.run(120)
        self.submit_both(world, "high", priority=5)
        world.run_until_ended("high", limit=2_000)
        assert tried(world, "high") == [P4, P5]
