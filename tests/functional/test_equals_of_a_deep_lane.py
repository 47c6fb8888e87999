"""More of a lane than one pass reads displace their equals: the others follow as soon as those have been served."""

from __future__ import annotations

from builders import P5
from trainmaster.domain.capacity.read_limits import FIRST
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Gittins, Order, Policy
from world import BRISK, World

MANY = FIRST + 12


def test_of_a_lane_deeper_than_a_pass_reads_all_displace_those_that_have_received_more_within_two_stops():
    at_once = Gittins(average_weight=100, restart_budget=1, switch_ratio=1)
    policy = Policy(order=Order.GITTINS, gittins=at_once, max_actions=2 * MANY)
    world = World(pools=f"{P5}={MANY}", policy=policy, profile=BRISK)
    for number in range(MANY):
        world.submit(f"served{number:03}", training_seconds=40_000)
    world.run(6_000, step=500)
    fresh = [f"fresh{number:03}" for number in range(MANY)]
    for name in fresh:
        world.submit(name, training_seconds=40_000)
    world.run(1, step=1)
    asked = sum(world.job(f"served{number:03}").stopping for number in range(MANY))
    assert FIRST <= asked < MANY
    # A stop takes five seconds, a start eight.
    world.run(30)
    assert {world.job(name).state for name in fresh} == {JobState.RUNNING}
    assert world.peaks[P5] == MANY
