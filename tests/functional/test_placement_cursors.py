"""Placement over whole passes: a start commits the cursors that it moved, and the next pass goes on there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import P5
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.plan import Cursors
from trainmaster.domain.policy.settings import Placement, Share
from world import World, a_request

CALM = {"rates": {"DescribeTrainingJob": None, "CreateTrainingJob": None}}
GOING_ROUND = (Placement.ROUND_ROBIN, Placement.SMOOTH_WEIGHTED_ROUND_ROBIN)


def a_world(placement, *pools, prefers=()):
    world = World(**CALM)
    store = world.api_context.store
    store.set_settings(pools=pools or [Pool(name, 8, type_=P5) for name in ("a", "b", "c")])
    share = Share(name="default", prefers=prefers)
    policy = replace(store.settings().policy, placement=placement, shares={"default": share} if prefers else {})
    store.set_settings(policy=policy)
    return world


def submit(world, name, *, resources="accelerators=8", pools=None):
    request = a_request(name, training_seconds=50_000)
    request["ResourceConfig"] = {"VolumeSizeInGB": 30, "InstanceCount": 1}
    options = {"resources": resources, **({"pools": pools} if pools else {})}
    request["Tags"] += [{"Key": f"trainmaster:{key}", "Value": value} for key, value in options.items()]
    world.submit_request(request)
    world.settle()


def place_of(world, name):
    (pool,) = world.job(name).attempt.units
    return pool


def cursors_of(world):
    return world.api_context.store.read_snapshot().cursors


@pytest.mark.parametrize("placement", GOING_ROUND)
def test_each_pass_goes_on_where_the_one_before_had_got_to(placement):
    world = a_world(placement)
    for number in range(7):
        submit(world, f"job{number}")
    assert [place_of(world, f"job{number}") for number in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_the_smooth_round_gives_a_pool_of_twice_the_size_twice_the_turns():
    pools = [Pool("large", 16, type_=P5), Pool("small", 8, type_=P5)]
    world = a_world(Placement.SMOOTH_WEIGHTED_ROUND_ROBIN, *pools)
    for number in range(6):
        submit(world, f"job{number}")
    assert [place_of(world, f"job{number}") for number in range(6)] == ["large", "small", "large"] * 2
    assert cursors_of(world).weights == pytest.approx({"large": 0, "small": 0})


def test_a_pool_that_is_removed_and_created_again_restarts_its_smooth_weight():
    world = a_world(Placement.SMOOTH_WEIGHTED_ROUND_ROBIN)
    submit(world, "job0")
    assert cursors_of(world).weights == pytest.approx({"a": -2, "b": 1, "c": 1})
    world.api_context.store.set_settings(pools=[Pool(name, 8, type_=P5) for name in ("a", "b")])
    submit(world, "job1")
    assert (place_of(world, "job1"), set(cursors_of(world).weights)) == ("b", {"a", "b"})


def test_the_round_goes_on_by_name_among_pools_that_came_later():
    world = a_world(Placement.ROUND_ROBIN, Pool("b", 8, type_=P5), Pool("d", 8, type_=P5))
    submit(world, "job0")
    world.api_context.store.set_settings(pools=[Pool(name, 8, type_=P5) for name in ("a", "c", "d")])
    submit(world, "job1")
    assert (place_of(world, "job0"), place_of(world, "job1")) == ("b", "c")


@pytest.mark.parametrize("placement", Placement)
def test_a_start_that_no_policy_chose_moves_no_cursor(placement):
    world = a_world(placement, prefers=("c",))
    submit(world, "preferring")
    submit(world, "listing", pools="b")
    assert (place_of(world, "preferring"), place_of(world, "listing")) == ("c", "b")
    assert cursors_of(world) == Cursors()


@pytest.mark.parametrize("placement", Placement)
def test_every_policy_fills_all_pools_and_the_rest_waits_and_is_told_one_pool(placement):
    world = a_world(placement, *(Pool(name, 2, type_=P5) for name in ("a", "b", "c")))
    for number in range(8):
        submit(world, f"job{number}")
    states = [world.job(f"job{number}").state for number in range(8)]
    assert states.count(JobState.PENDING) == 2
    world.run(300)
    assert world.in_use() == {P5: 6}
