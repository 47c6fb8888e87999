"""Jobs that AWS refuses again and again: no other job loses its work for them each time, and none waits without end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from test_none_hides_others import SHARED, Refusing, sweep_of_a_forbidden_role

from builders import P5
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import Lending, Order, Policy, Share
from world import BRISK, World, a_request

HOUR = 3_600


def submit_to(world, share, name, **fields):
    request = a_request(name, **fields)
    request["Tags"].append({**SHARED, "Value": share})
    return world.submit_request(request)


@pytest.mark.parametrize("order", [Order.BACKFILL, Order.FAIR])
def test_an_owner_whom_aws_cannot_serve_takes_borrowers_work_ever_more_rarely(order):
    shares = {"owner": Share(name="owner", nominal={P5: 4}), "borrower": Share(name="borrower")}
    world = World(pools=f"{P5}=4", policy=Policy(order=order, shares=shares), profile=BRISK, capacity={P5: 2})
    for name in ("one", "other"):
        submit_to(world, "borrower", name, priority=5, training_seconds=30_000)
    world.run(120)
    submit_to(world, "owner", "wide", count=4, training_seconds=600)
    world.run(4 * HOUR, step=30)
    assert {world.job(name).preemptions for name in ("one", "other")} <= {1, 2, 3}


def test_a_quota_that_has_lapsed_is_not_tested_at_the_cost_of_other_jobs():
    world = World(pools=f"{P5}=8", profile=BRISK, limits={P5: 4})
    world.submit("big", count=7, priority=5, training_seconds=600)
    world.run(300)
    for number in range(3):
        world.submit(f"small{number}", training_seconds=60_000)
    world.run(6 * HOUR, step=30)
    assert all(world.job(f"small{number}").preemptions == 0 for number in range(3))


def test_a_refused_kind_that_is_tried_again_takes_nobodys_work_for_a_day():
    world = World(pools=f"{P5}=4", profile=BRISK)
    small = [f"small{number}" for number in range(4)]
    for name in small:
        world.submit(name, training_seconds=40_000)
    world.run(60)
    Refusing(world)
    sweep_of_a_forbidden_role(world, priority=9, count=4)
    world.run(8 * HOUR, step=60)
    assert [world.job(name).preemptions for name in small] == [1] * 4
    assert all(world.job(name).state is JobState.RUNNING for name in small)


@pytest.mark.parametrize("order", Order)
def test_a_job_that_needs_what_another_share_reserves_blocks_no_other(order):
    kept = Share(name="kept", nominal={P5: 4}, lending=Lending.RESERVE)
    policy = Policy(order=order, patience=timedelta(hours=1), shares={"kept": kept, "other": Share(name="other")})
    world = World(pools=f"{P5}=8", policy=policy, profile=BRISK)
    submit_to(world, "other", "big", count=7)
    world.run(2 * HOUR, step=60)
    for number in range(3):
        submit_to(world, "other", f"small{number}", training_seconds=40_000)
    world.run(120)
    assert all(world.job(f"small{number}").state is JobState.RUNNING for number in range(3))
    assert world.job("big").state is JobState.PENDING
