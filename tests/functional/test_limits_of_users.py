"""A user at the limit of his share: however many of his jobs wait, they hide no other user's."""

from __future__ import annotations

import pytest

from builders import P5, Caller
from trainmaster.domain.capacity.read_limits import FIRST
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Order, Policy, Share
from trainmaster.service.submit import submit
from world import BRISK, World, a_request

SWEEP = 3 * FIRST
SHARED = {"Key": "trainmaster:share", "Value": "team"}


def submit_as(world, user, name, **fields):
    request = a_request(name, **fields)
    request["Tags"].append(SHARED)
    submit(world.api_context, Caller(f"arn:aws:iam::111122223333:user/{user}"), world.admission, request)


@pytest.mark.parametrize("order", Order)
def test_behind_the_sweep_of_a_user_at_his_limit_others_start_at_once(order):
    policy = Policy(order=order, shares={"team": Share(name="team", max_per_user={P5: 2})})
    world = World(pools=f"{P5}=4", policy=policy, profile=BRISK)
    for number in range(SWEEP):
        submit_as(world, "ada", f"sweep{number:03}", training_seconds=4_000)
    submit_as(world, "bob", "the-only-one", training_seconds=4_000)
    world.run(60)
    running = {job.name for job in world.api_context.store.read_snapshot().active if job.state is JobState.RUNNING}
    assert running == {"sweep000", "sweep001", "the-only-one"}
