"""Jobs of a size that AWS does not have: one of them is tried at a time, and smaller ones run meanwhile."""

from __future__ import annotations

import pytest

from builders import P5
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import BackingOff, BehindBackingOff
from trainmaster.service.explain.explain import explain
from world import BRISK, World, a_request

BIG = [f"big{number:02}" for number in range(20)]


def a_world_of_big_jobs(count=8, order=Order.BACKFILL):
    world = World(pools=f"{P5}=8", policy=Policy(order=order), profile=BRISK, capacity={P5: 4})
    for name in BIG:
        world.submit(name, count=count, training_seconds=600)
    return world


def tries(world):
    return sum(line.reason.startswith("takes") for name in BIG for line in world.job(name).history)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("count", [8, 5])
def test_a_smaller_job_of_equal_priority_starts_between_their_tries(order, count):
    world = a_world_of_big_jobs(count, order)
    world.run(600)
    world.submit("small", training_seconds=300)
    world.run_until_ended("small", limit=2_000)
    assert world.job("small").state is JobState.COMPLETED


def test_they_are_tried_one_at_a_time_with_growing_pauses():
    world = a_world_of_big_jobs()
    world.run(4 * 3_600, step=30)
    assert tries(world) <= 19, "1, 2, 4, 8, then 16 minutes lie between two tries"


def test_all_but_the_one_that_is_tried_wait_behind_it():
    world = a_world_of_big_jobs()
    world.run(600)
    jobs = [world.job(name) for name in BIG]
    reasons = explain(world.api_context.store, world.now(), jobs)
    assert {type(told.reason) for name, told in reasons.items() if told.reason is not None} == {
        BackingOff,
        BehindBackingOff,
    }
    words = reasons["big07"].reason.message()
    assert words.startswith("waits behind big00, which goes first and starts again at 2026-11-21T12:1")


@pytest.mark.parametrize("after", [3_600, 4_000, 4_400])
def test_once_aws_has_capacity_they_start_as_soon_as_a_single_job_would(after):
    world = a_world_of_big_jobs(count=4)
    world.simulator.set_capacity(P5, 0)
    world.run(after, step=30)
    world.simulator.set_capacity(P5, 8)
    since = world.now()
    while sum(world.job(name).state is JobState.RUNNING for name in BIG) < 2:
        world.run(30)
        assert (world.now() - since).total_seconds() < 16 * 60 + 120
    world.run_until_ended(*BIG, limit=20 * 700)


@pytest.mark.parametrize("order", Order)
def test_jobs_of_another_kind_do_not_wait_behind_one_that_aws_refuses_for_a_reason_of_its_own(order):
    """Here it asks for a warm pool, for which the account has no quota."""
    world = World(pools=f"{P5}=8", policy=Policy(order=order), profile=BRISK, warm_limits={P5: 0})
    keeping = a_request("keeping", count=4, training_seconds=600)
    keeping["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 600
    world.submit_request(keeping)
    world.run(60)
    plain = [f"plain{number}" for number in range(3)]
    for name in plain:
        world.submit(name, count=4, training_seconds=600)
    world.run_until_ended(*plain, limit=4_000)
    assert world.job("keeping").state is JobState.PENDING
