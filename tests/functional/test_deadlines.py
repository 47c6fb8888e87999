"""Deadlines through the shipped manager: the order of jobs, and the time from which it applies."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import P5
from samples import sample
from tables import new_table
from trainmaster.local.simulator import Profile
from world import EPOCH, World, a_request

BRISK = Profile(
    requesting_seconds=1, starting_seconds=5, downloading_seconds=2, uploading_seconds=2, stopping_seconds=5
)
LIMIT = 600


@pytest.fixture(params=sample(["memory", "dynamodb"]))
def world(request):
    if request.param == "memory":
        yield World(profile=BRISK, pools=f"{P5}=1")
        return
    with new_table() as client:
        yield World(client, profile=BRISK, pools=f"{P5}=1")


def submit_request(world, name, deadline=None, seconds=300, priority=0):
    """A second after the one before; `deadline` in seconds from the beginning."""
    world.run(1, step=1)
    request = a_request(name, training_seconds=seconds, priority=priority)
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": LIMIT}
    if deadline is not None:
        due = (EPOCH + timedelta(seconds=deadline)).strftime("%Y-%m-%dT%H:%M:%SZ")
        request["Tags"] = [*request["Tags"], {"Key": "trainmaster:deadline", "Value": due}]
    return world.submit_request(request)


def test_a_near_deadline_goes_before_equals_that_came_earlier(world):
    submit_request(world, "first", seconds=560)
    for number in range(40):
        submit_request(world, f"early-{number:02d}")
    submit_request(world, "due", deadline=1300)
    world.run_until_ended("due")
    assert world.opened[:2] == ["first", "due"]
    assert world.job("due").ended_at <= EPOCH + timedelta(seconds=1300)


def test_the_most_urgent_goes_first_of_many_that_are_due_on_the_same_day(world):
    submit_request(world, "first", seconds=560)
    for number in range(60):
        submit_request(world, f"later-{number:02d}", deadline=30_000)
    submit_request(world, "due", deadline=1_310)
    world.run_until_ended("due")
    assert world.opened[:2] == ["first", "due"]


def test_a_far_deadline_waits_for_its_turn(world):
    submit_request(world, "first", seconds=500)
    submit_request(world, "early", seconds=100)
    submit_request(world, "due", deadline=90_000)
    world.run_until_ended("due")
    assert world.opened == ["first", "early", "due"]


def test_a_deadline_without_time_to_wait_passes_no_job(world):
    submit_request(world, "first", seconds=500)
    submit_request(world, "early", seconds=100)
    submit_request(world, "due", deadline=2 * LIMIT - 1)
    world.run_until_ended("due")
    assert world.opened == ["first", "early", "due"]


def test_the_most_urgent_first_and_never_before_a_higher_priority(world):
    submit_request(world, "first", seconds=550, priority=1)
    submit_request(world, "early")
    submit_request(world, "due-2", deadline=1360, seconds=100)
    submit_request(world, "due-1", deadline=1300, seconds=100)
    world.run(500)
    submit_request(world, "high", seconds=60, priority=1)
    world.run_until_ended("early", "due-1", "due-2", "high")
    assert world.opened == ["first", "high", "due-1", "due-2", "early"]
