"""Jobs that found no capacity keep their place: no lower priority starts before them, and free units wake them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from builders import ADA, P5
from trainmaster.cli.queue.pools_table import quota_notes
from trainmaster.domain.jobs.job import JobState
from trainmaster.domain.policy.settings import FailureClass, Policy, Retry
from trainmaster.domain.reasons.capacity import BehindBackingOff
from trainmaster.handlers.views.pools import pools as pools_view
from trainmaster.service.capacity.pools import change_pool
from trainmaster.service.explain.explain import explain
from trainmaster.service.wake import wake
from world import BRISK, EPOCH, World, a_request

AFTER_AN_HOUR = Retry(max_retries=None, first_delay=timedelta(hours=1), max_delay=timedelta(hours=1))
PATIENT = Policy(retries={FailureClass.CAPACITY: AFTER_AN_HOUR})
SHORT = ({"limits": {P5: 2}}, {"capacity": {P5: 2}})


def a_world(**without):
    return World(pools=f"{P5}=8", profile=BRISK, **without)


def three_jobs(world):
    """A runs; B is refused; C, of the lowest priority, comes while B backs off."""
    world.submit("a", count=2, priority=9, training_seconds=300)
    world.run(60)
    world.submit("b", count=2, priority=5, training_seconds=100)
    while world.job("b").retry_at is None:
        world.run(5)
    world.submit("c", count=2, priority=-2, training_seconds=100)


def running_since(world, name):
    return next(line.at for line in world.job(name).history if line.after is JobState.RUNNING)


def reason_of(world, name):
    store, now = world.api_context.store, world.clock.now()
    return explain(store, now, [world.job(name)])[name].reason


@pytest.mark.parametrize("short", SHORT)
def test_a_lower_priority_never_takes_what_a_refused_job_waits_for(short):
    world = a_world(**short)
    three_jobs(world)
    world.run_until_ended("a", "b", "c", limit=3_000)
    assert {world.job(name).state for name in ("a", "b", "c")} == {JobState.COMPLETED}
    begun = [name.partition("-")[0] for name in world.opened]
    assert begun.index("c") > begun.index("b", begun.index("a"))
    assert min(line.at for line in world.job("c").history if line.attempt) >= running_since(world, "b")


def test_a_refused_job_starts_as_soon_as_units_become_free():
    world = a_world(limits={P5: 2})
    three_jobs(world)
    world.run_until_ended("b", limit=3_000)
    ended = world.job("a").ended_at
    assert world.job("b").attempt.created_at - ended <= timedelta(seconds=10)
    # It was refused once, and not tried again while nothing had become free.
    assert [line.reason[:10] for line in world.job("b").history].count("ResourceLi") == 1


def test_the_reasons_name_the_quota_and_the_job_in_front():
    world = a_world(limits={P5: 2})
    three_jobs(world)
    world.run(5)
    waits = reason_of(world, "b").message()
    assert f"waits for 2 of 2 x {P5}: 0 free for it now" in waits
    assert waits.endswith(f"; the account's quota of 2 x {P5} is below the pool's cap")
    assert "waits for" in reason_of(world, "c").message()


def test_the_pools_say_that_the_cap_is_above_the_quota():
    world = a_world(limits={P5: 2})
    assert shown(world).quota is None
    three_jobs(world)
    refused = world.job("b").attempt.ended_at
    pool = shown(world)
    assert (pool.cap, pool.quota, pool.quota_at, pool.free) == (8, 2, refused, 0)
    (note,) = quota_notes([pool.model_dump(mode="json", by_alias=True)], world.now())
    assert f"{P5}: its cap of 8 is above the account's quota of 2 x {P5}, which SageMaker reported at 2026" in note


def test_capacity_errors_report_no_quota():
    world = a_world(capacity={P5: 2})
    three_jobs(world)
    assert shown(world).quota is None
    assert "CapacityError" in reason_of(world, "b").message()
    waits = reason_of(world, "c")
    assert isinstance(waits, BehindBackingOff)
    assert waits.job == "b"


def test_a_raised_quota_is_found_within_the_hour():
    world = a_world(limits={P5: 2})
    world.submit("a", count=2, priority=9, training_seconds=9_000)
    world.run(60)
    world.submit("b", count=2, priority=5, training_seconds=100)
    world.run(60)
    world.simulator.quotas.set_limit(P5, 4)
    world.run_until_ended("b", limit=4_500)
    assert world.job("b").state is JobState.COMPLETED


def test_the_end_of_an_external_job_wakes_a_refused_job():
    world = a_world(limits={P5: 2})
    world.simulator.client().create_training_job(**a_request("theirs", count=2, training_seconds=400))
    # It is not known yet when B starts, and counts from the next tick on.
    world.submit("b", count=2, priority=5, training_seconds=100)
    world.run(100)
    world.submit("c", count=2, priority=-2, training_seconds=100)
    world.run(60)
    assert world.job("b").state is JobState.PENDING
    assert shown(world).external == 2
    while world.job("b").state is JobState.PENDING:
        world.run(5)
    assert world.job("b").attempt.created_at - EPOCH < timedelta(seconds=500)
    world.run_until_ended("b", "c", limit=1_000)
    assert world.opened == ["theirs", "b", "c"]


@pytest.mark.parametrize("short", SHORT)
@pytest.mark.parametrize("other", ["job", "external"])
def test_what_ends_early_ends_a_back_off_of_an_hour(short, other):
    world = a_world(policy=PATIENT, **short)
    if other == "job":
        world.submit("a", count=2, priority=9, training_seconds=400)
    else:
        world.simulator.client().create_training_job(**a_request("a", count=2, training_seconds=400))
    world.run(30)
    world.submit("b", count=2, priority=5, training_seconds=100)
    world.run(200)
    assert world.job("b").state is JobState.PENDING
    assert world.job("b").retry_at > world.now() + timedelta(minutes=45)
    world.run_until_ended("b", limit=800)
    assert world.job("b").state is JobState.COMPLETED


def test_a_larger_cap_wakes_a_refused_job():
    world = a_world(capacity={P5: 0})
    world.submit("b", count=2, training_seconds=100)
    while world.job("b").retry_at is None:
        world.run(5)
    world.simulator.set_capacity(P5, 2)
    change_pool(world.api_context, ADA, P5, {"cap": 9})
    wake(world.api_context.store, world.queue)
    world.run(5)
    assert world.job("b").retry_at is None
    assert world.job("b").state is JobState.STARTING


def shown(world):
    (pool,) = pools_view(world.api_context, world.api_context.store.settings()).pools
    return pool


def test_many_starts_in_one_pool_share_transactions_but_few_are_refused_together():
    world = World(pools=f"{P5}=40", limits={P5: 6}, profile=BRISK, policy=PATIENT)
    names = [f"job{number:02}" for number in range(30)]
    for name in names:
        world.submit(name, count=1, training_seconds=5_000)
    world.run(50)
    starts = [name for name in names if world.job(name).attempts]
    refused = [name for name in starts if world.job(name).retry_at is not None]
    assert len(starts) - len(refused) == 6
    # 1, 1, 2 and 4 starts: in the last batch SageMaker accepts two.
    assert (len(starts), len(refused)) == (8, 2)
