"""Jobs by resources with several candidates, where it gets tight: preemption, reservations, holds, barriers, depth."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, a_job, a_preempting_job, a_reservation, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.policy.settings import Order, Placement, Policy, Share
from trainmaster.domain.reasons.capacity import (
    Behind,
    Infeasible,
    Preempts,
    ReservedForOther,
    WaitsForCapacity,
    WaitsForRelease,
)
from trainmaster.planner.forecast.simulation import QueueSimulation
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)


def a_type(name, cap=4, *, gpus=8):
    return Pool(name, cap, vcpus=96, memory_gib=1_024.0, accelerators_per_unit=gpus, accelerator="nvidia")


def asking(name="job1", count=1, *, gpus=1, **fields):
    demand = Demand((), queue_selects_pool=True, resources=Resources(accelerators=gpus), instances=count)
    return a_job(name, demand=demand, **fields)


def running(name, pool, count=4, **fields):
    return a_running_job(name, units={pool: count}, **fields)


def planned(*waiting, pools, active=(), **policy):
    snapshot = a_snapshot(pools=pools, waiting=waiting, active=active, policy=Policy(**policy))
    return schedule(snapshot, NOW, random.Random(1))


def reasons_of(plan):
    return {wait.job.name: wait.reason for wait in plan.waits}


# -- preemption --------------------------------------------------------------------------------------------------------


def test_victims_are_where_they_are_lowest_whichever_pool_the_policy_would_take():
    active = [running("high", "a", priority=3), running("low", "b", priority=1)]
    plan = planned(asking(count=4, priority=5), pools=[a_type("a"), a_type("b", gpus=16)], active=active)
    assert [(each.reservation.units, [victim.name for victim in each.victims]) for each in plan.preemptions] == [
        ({"b": 4}, ["low"])
    ]


@pytest.mark.parametrize("placement", Placement)
def test_where_victims_are_equal_they_go_where_the_share_prefers_to_be(placement):
    active = [running(f"on-{name}", name) for name in "abc"]
    plan = planned(
        asking(count=4, priority=5),
        pools=[a_type(name) for name in "abc"],
        active=active,
        placement=placement,
        shares={"default": Share(name="default", prefers=("c",))},
    )
    assert [each.reservation.units for each in plan.preemptions] == [{"c": 4}]


def test_where_victims_are_equal_the_best_fit_is_freed():
    active = [running("on-a", "a"), running("on-b", "b")]
    plan = planned(asking(count=4, priority=5), pools=[a_type("a", gpus=8), a_type("b", gpus=1)], active=active)
    assert [each.reservation.units for each in plan.preemptions] == [{"b": 4}]


def test_what_is_free_in_any_candidate_goes_before_preempting_in_a_better_one():
    plan = planned(
        asking(count=4, priority=5), pools=[a_type("a", gpus=1), a_type("b", gpus=8)], active=[running("on-a", "a")]
    )
    assert [start.units for start in plan.starts] == [{"b": 4}]
    assert not plan.preemptions


# -- holds and what is on the way --------------------------------------------------------------------------------------


def test_a_job_waits_for_what_was_freed_for_it_and_starts_elsewhere_if_that_is_free_first():
    stopping = a_preempting_job("old", units={"b": 4}, beneficiary="job1")
    job = asking(count=4, priority=5, reservation=a_reservation({"b": 4}))
    full = planned(job, pools=[a_type("a"), a_type("b")], active=[stopping, running("on-a", "a", priority=9)])
    assert reasons_of(full) == {"job1": WaitsForRelease(("b",), at(3_600))}
    free = planned(job, pools=[a_type("a"), a_type("b")], active=[stopping])
    assert [start.units for start in free.starts] == [{"a": 4}]


def test_of_several_pools_that_are_being_freed_it_waits_where_its_share_prefers_to_be():
    active = [a_preempting_job(f"old-{name}", units={name: 4}) for name in "abc"]
    share = Share(name="default", prefers=("b",))
    plan = planned(asking(count=4), pools=[a_type(name) for name in "abc"], active=active, shares={"default": share})
    assert reasons_of(plan)["job1"].pools == ("b",)


def test_what_is_held_for_one_job_is_no_room_for_another_by_resources():
    holder = asking("holder", 4, priority=1, reservation=a_reservation({"b": 4}), retry_at=None)
    stopping = a_preempting_job("old", units={"b": 4}, beneficiary="holder")
    plan = planned(
        holder,
        asking("other", 4),
        pools=[a_type("a"), a_type("b")],
        active=[stopping, running("on-a", "a", priority=9)],
    )
    assert not plan.starts
    assert isinstance(reasons_of(plan)["other"], ReservedForOther | WaitsForCapacity)


# -- reservations ------------------------------------------------------------------------------------------------------


def test_one_reservation_a_pool_is_made_even_where_a_candidate_is_too_small_to_be_reserved():
    """A pool in which the job never fits has no reservation either: it is no room for one."""
    jobs = [asking(f"j{number}", 4, entry_time=at(number - 9)) for number in range(5)]
    plan = planned(*jobs, pools=[a_type("a"), a_type("small", 2)], active=[running("on-a", "a")], reservations=1)
    assert [(each.job, each.units) for each in plan.reservations] == [("j0", {"a": 4})]


def test_each_candidate_is_reserved_once_however_many_wait():
    jobs = [asking(f"j{number}", 4, entry_time=at(number - 9)) for number in range(5)]
    active = [running("on-a", "a", max_runtime=HOUR), running("on-b", "b", max_runtime=9 * HOUR)]
    plan = planned(*jobs, pools=[a_type("a"), a_type("b")], active=active, reservations=1)
    assert [(each.job, each.units) for each in plan.reservations] == [("j0", {"a": 4}), ("j1", {"b": 4})]


def test_the_pool_that_is_free_first_is_reserved_whichever_the_policy_would_take():
    active = [running("on-a", "a", max_runtime=9 * HOUR), running("on-b", "b", max_runtime=HOUR)]
    plan = planned(asking(count=4), pools=[a_type("a", gpus=1), a_type("b", gpus=8)], active=active)
    assert [each.units for each in plan.reservations] == [{"b": 4}]


# -- barriers ----------------------------------------------------------------------------------------------------------


def test_first_in_first_out_bars_no_pool_that_could_never_hold_who_waits():
    large, small = asking("large", 4, entry_time=at(-9)), asking("small", 2)
    plan = planned(
        large, small, pools=[a_type("a"), a_type("small", 2)], active=[running("on-a", "a", 2)], order=Order.FIFO
    )
    assert [(start.job.name, start.units) for start in plan.starts] == [("small", {"small": 2})]


def test_first_in_first_out_bars_every_pool_that_could_hold_who_waits():
    large, small = asking("large", 4, entry_time=at(-9)), asking("small", 2)
    active = [running("on-a", "a", 2), running("on-b", "b", 2)]
    plan = planned(large, small, pools=[a_type("a"), a_type("b")], active=active, order=Order.FIFO)
    assert not plan.starts
    assert reasons_of(plan)["small"] == Behind("large", "a")


# -- deep queues -------------------------------------------------------------------------------------------------------


def test_jobs_that_ask_for_the_same_are_told_the_same_and_looked_at_once():
    pools = [a_type(f"p{number:02d}") for number in range(20)]
    active = [running(f"on-{pool.name}", pool.name, preemptible=False) for pool in pools]
    jobs = [asking(f"j{number:03d}", 2, entry_time=at(number - 999)) for number in range(300)]
    plan = planned(*jobs, pools=pools, active=active)
    told = [wait.reason for wait in plan.waits]
    assert len(told) == 300
    # All but those that are reserved for share one and the same answer.
    reserved = len(pools) * Policy().reservations
    assert len({id(reason) for reason in told}) <= reserved + 1
    assert len(plan.reservations) == reserved


def test_jobs_that_nothing_can_hold_share_one_answer():
    jobs = [asking(f"j{number:03d}", gpus=64) for number in range(50)]
    told = [wait.reason for wait in planned(*jobs, pools=[a_type("a")]).waits]
    assert all(isinstance(reason, Infeasible) for reason in told)
    assert len({id(reason) for reason in told}) == 1


@pytest.mark.parametrize(
    "other",
    [
        asking("b", 2),
        asking("b", gpus=2),
        replace(asking("b"), demand=replace(asking().demand, alternatives=({"a": 1},), listed=1)),
        a_job("b", units={"a": 1}),
        a_job("b", demand=Demand(({"a": 1}, {"c": 1}), queue_selects_pool=True)),
        a_job("b", demand=Demand(({"a": 1}, {"c": 1}))),
    ],
    ids=lambda job: str(job.demand.equivalence_key),
)
def test_jobs_that_ask_for_different_things_are_not_alike(other):
    assert asking("a").equivalence_key != other.equivalence_key


def test_jobs_that_ask_for_the_same_are_alike_whatever_pools_there_are():
    now = replace(asking("b"), demand=replace(asking().demand, alternatives=({"a": 1}, {"c": 1})))
    assert asking("a").equivalence_key == now.equivalence_key
    two = Demand(({"a": 1}, {"c": 1}))
    assert a_job("a", demand=two).equivalence_key == a_job("b", demand=Demand(({"a": 1}, {"c": 1}))).equivalence_key


def test_a_job_of_lower_priority_may_have_the_candidate_that_a_higher_one_cannot_use():
    plan = planned(
        asking("large", 4, priority=1, entry_time=at(-9)),
        asking("small", 2),
        pools=[a_type("a"), a_type("b", 2)],
        active=[running("on-a", "a", priority=2)],
    )
    assert {start.job.name: start.units for start in plan.starts} == {"small": {"b": 2}}
    assert not isinstance(reasons_of(plan)["large"], Preempts)


# -- warm pools --------------------------------------------------------------------------------------------------------


def on_warm(job, *, free=("a", "b"), warm="b", prefers=()):
    """The start of a job where one instance is warm in one pool, and there is room in some."""
    pools = [a_type(name) for name in "ab"]
    active = [running(f"on-{name}", name, 3 if name == warm else 4) for name in "ab" if name not in free]
    share = {"default": Share(name="default", prefers=prefers)} if prefers else {}
    snapshot = a_snapshot(pools=pools, waiting=[job], active=active, policy=Policy(shares=share))
    left = WarmPool("old", {warm: 1}, "same", at(600))
    (start,) = schedule(replace(snapshot, warm=(left,)), NOW, random.Random(1)).starts
    return dict(start.units), None if start.warm is None else start.warm.training_job_name


def test_a_job_takes_the_warm_pool_of_any_candidate_whichever_the_policy_would_take():
    """SageMaker starts it there wherever it can, so a start in that pool must not be charged other instances."""
    assert on_warm(asking(warm_pool_key="same")) == ({"b": 1}, "old")
    assert on_warm(asking(warm_pool_key="same"), free=("a",)) == ({"b": 1}, "old")
    assert on_warm(asking(warm_pool_key="same"), prefers=("a",)) == ({"b": 1}, "old")


def test_a_warm_pool_does_not_go_before_what_the_job_names_itself():
    demand = replace(asking().demand, alternatives=({"a": 1},), listed=1)
    assert on_warm(a_job(demand=demand, warm_pool_key="same")) == ({"a": 1}, None)
    assert on_warm(a_job(demand=demand, warm_pool_key="same"), free=("b",)) == ({"b": 1}, "old")


def test_a_warm_pool_that_does_not_match_is_left_alone():
    assert on_warm(asking(warm_pool_key="other"))[1] is None


def test_a_forecast_goes_round_from_start_to_start():
    snapshot = a_snapshot(
        pools=[a_type("a"), a_type("b")],
        waiting=[asking()],
        policy=Policy(placement=Placement.SMOOTH_WEIGHTED_ROUND_ROBIN),
    )
    simulation, plan = QueueSimulation.of(snapshot, NOW, 0.5), schedule(snapshot, NOW, random.Random(1))
    simulation.apply(plan)
    assert simulation.snapshot.cursors == plan.starts[0].cursors != snapshot.cursors
