"""Jobs behind the heads of their lane: where units stay idle that they could use, they start within minutes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import ADA, P5
from trainmaster.domain.capacity.read_limits import FIRST, SPARE
from trainmaster.domain.capacity.rotation import IDLE_FOR, MAX_READ
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.service.capacity.pools import set_pools
from world import BRISK, World, a_request

HEADS = FIRST + SPARE + 8
HOUR = 3_600


def running(world):
    return {job.name for job in world.api_context.store.read_snapshot().active if job.state is JobState.RUNNING}


def submit(world, name, *, hours, priority=0, count=1, **fields):
    """A job that has no checkpoints, so it cannot be stopped in between."""
    request = a_request(name, training_seconds=1_700 if hours < 1 else hours * HOUR, priority=priority, count=count)
    del request["CheckpointConfig"]
    return world.submit_request(request | {"StoppingCondition": {"MaxRuntimeInSeconds": int(hours * HOUR)}} | fields)


@pytest.mark.parametrize("order", [Order.BACKFILL, Order.FAIR])
@pytest.mark.parametrize("heads", [HEADS, HEADS + MAX_READ])
def test_a_short_job_starts_behind_jobs_that_are_too_long_to_pass_a_reservation(order, heads):
    world = World(pools=f"{P5}=16", policy=Policy(order=order), profile=BRISK, warm=True)
    submit(world, "running", hours=4, count=12, priority=9)
    world.run(60)
    submit(world, "wide", hours=1, count=16)
    world.run(60)
    for number in range(heads):
        submit(world, f"long{number:04}", hours=24)
    submit(world, "short", hours=0.5)
    world.run((2 * IDLE_FOR).total_seconds() + (60 if heads == HEADS else 120))
    assert running(world) == {"running", "short"}


def test_jobs_for_which_a_pass_has_no_starts_left_are_read_again_before_others():
    policy = Policy(max_actions=1)
    world = World(pools=f"{P5}=16", policy=policy, profile=BRISK, warm=True)
    submit(world, "running", hours=4, count=12, priority=9)
    world.run(60)
    submit(world, "wide", hours=1, count=16)
    world.run(60)
    shorts = {f"short{number}" for number in range(4)}
    for number in range(HEADS):
        submit(world, f"long{number:04}", hours=24)
    for name in sorted(shorts):
        submit(world, name, hours=0.5)
    for number in range(3 * MAX_READ):
        submit(world, f"later{number:04}", hours=24)
    world.run((2 * IDLE_FOR).total_seconds() + 4 * 60, step=20)
    assert running(world) == {"running", *shorts}


@pytest.mark.parametrize("order", Order)
def test_a_job_that_fits_into_the_window_of_a_training_plan_starts_behind_longer_ones(order):
    world = World(policy=Policy(order=order), profile=BRISK, warm=True)
    arn = world.simulator.add_plan("spring", P5, 2, (world.now(), world.now() + timedelta(hours=6)))
    plan = Pool("spring", 2, type_=P5, kind=Kind.TRAINING_PLAN, plan_arn=arn)
    set_pools(world.api_context, ADA, [plan])
    in_plan = {"Tags": [{"Key": "trainmaster:pools", "Value": "spring"}]}
    for number in range(HEADS):
        submit(world, f"long{number:04}", hours=24, **in_plan)
    submit(world, "short", hours=0.5, **in_plan)
    world.run((2 * IDLE_FOR).total_seconds() + 60)
    assert running(world) == {"short"}


@pytest.mark.parametrize("order", Order)
def test_a_job_that_is_small_enough_starts_behind_larger_ones_of_its_lane(order):
    world = World(pools=f"{P5}=9", policy=Policy(order=order), profile=BRISK, warm=True)
    submit(world, "running", hours=4, count=4, priority=9)
    world.run(60)
    for number in range(HEADS):
        submit(world, f"seven{number:04}", hours=24, count=7, priority=1)
    submit(world, "five", hours=1, count=5)
    world.run((2 * IDLE_FOR).total_seconds() + 60)
    assert running(world) == {"running", "five"}
