"""Pools that are being drained, through the planner: nothing starts there, and no job is preempted for that."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import (
    G5,
    NOW,
    P5,
    a_demand,
    a_job,
    a_pool,
    a_preempting_job,
    a_reservation,
    a_running_job,
    a_snapshot,
    at,
)
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import CanNeverFit, Preempts, WaitsForCapacity
from trainmaster.domain.reasons.rules import Draining
from trainmaster.planner.placement.warm_pools import stranded_warm_pools
from trainmaster.planner.schedule import schedule
from trainmaster.service.explain.explain import explain_in

DRAINING = replace(a_pool(P5, 4), draining=True)
OPEN = a_pool(G5, 2)
EITHER = Demand(({P5: 1}, {G5: 1}), queue_selects_pool=True)


def plan(*pools, active=(), waiting=(), warm=(), **fields):
    snapshot = a_snapshot(pools=pools or (DRAINING, OPEN), active=active, waiting=waiting, **fields)
    return schedule(replace(snapshot, warm=tuple(warm)), NOW, random.Random(1))


def starts(made):
    return {start.job.name: dict(start.units) for start in made.starts}


def reasons(made):
    return {wait.job.name: wait.reason for wait in made.waits}


@pytest.mark.parametrize("order", Order)
def test_nothing_starts_where_a_pool_drains_and_its_jobs_are_told(order):
    made = plan(waiting=[a_job("job1"), a_job("job2", units={G5: 1})], policy=Policy(order=order))
    assert (starts(made), reasons(made)) == ({"job2": {G5: 1}}, {"job1": Draining((P5,))})
    assert made.reservations == ()


def test_a_job_with_other_alternatives_goes_there():
    made = plan(waiting=[a_job("job1", demand=EITHER), a_job("job2", demand=EITHER), a_job("job3", demand=EITHER)])
    assert starts(made) == {"job1": {G5: 1}, "job2": {G5: 1}}
    assert isinstance(reasons(made)["job3"], WaitsForCapacity)
    assert reasons(made)["job3"].pool == G5


def test_a_job_by_resource_goes_where_it_can():
    asks = Demand((), queue_selects_pool=True, resources=Resources(accelerators=1), instances=1)
    made = plan(waiting=[a_job("job1", demand=asks)])
    assert starts(made) == {"job1": {G5: 1}}
    made = plan(DRAINING, waiting=[a_job("job1", demand=asks)])
    assert reasons(made) == {"job1": Draining((P5,))}


def test_a_gang_over_two_pools_waits_where_one_of_them_drains():
    made = plan(waiting=[a_job("job1", demand=a_demand({P5: 1, G5: 1}))])
    assert reasons(made) == {"job1": Draining((P5,))}


def test_what_would_not_fit_even_if_it_did_not_drain_can_never_fit():
    made = plan(waiting=[a_job("job1", units={P5: 5})])
    assert reasons(made) == {"job1": CanNeverFit(P5, 5, DRAINING.cap)}


def test_no_job_is_preempted_for_a_start_in_a_draining_pool():
    low = a_running_job("low", priority=-5, units={P5: 4})
    made = plan(active=[low], waiting=[a_job("high", priority=9)])
    assert (made.preemptions, reasons(made)) == ((), {"high": Draining((P5,))})


def test_a_job_is_preempted_only_in_the_pool_that_does_not_drain():
    low = a_running_job("low", priority=-5, units={P5: 1})
    other = a_running_job("other", priority=-4, units={G5: 2})
    made = plan(active=[low, other], waiting=[a_job("high", priority=9, demand=EITHER)])
    assert [victim.name for each in made.preemptions for victim in each.victims] == ["other"]
    assert isinstance(reasons(made)["high"], Preempts)


def test_no_job_waits_for_units_that_are_freed_in_a_draining_pool():
    stopping = a_preempting_job("low", beneficiary="high", units={P5: 4})
    high = a_job("high", priority=9, units={P5: 4}, reservation=a_reservation({P5: 4}))
    made = plan(active=[stopping], waiting=[high])
    assert reasons(made) == {"high": Draining((P5,))}


def test_a_job_for_which_something_was_freed_there_starts_elsewhere():
    made = plan(waiting=[a_job("job1", demand=EITHER, reservation=a_reservation({P5: 1}))])
    assert starts(made) == {"job1": {G5: 1}}


def test_who_waits_for_a_pool_that_drains_keeps_nothing_from_others():
    """A gang that could be reserved for, or bar its equals, if the pool came back."""
    waiting = [a_job("gang", units={P5: 4}), a_job("job2", entry_time=at(5), demand=EITHER)]
    for order in Order:
        made = plan(waiting=waiting, policy=Policy(order=order))
        assert starts(made) == {"job2": {G5: 1}}, order


def test_no_job_starts_on_a_warm_pool_in_a_draining_pool():
    warm = WarmPool("old", {P5: 1}, "same", at(3000))
    matching = a_job("job1", warm_pool_key="same", demand=EITHER)
    assert starts(plan(waiting=[matching], warm=[warm])) == {"job1": {G5: 1}}
    assert starts(plan(a_pool(P5, 4), OPEN, waiting=[matching], warm=[warm])) == {"job1": {P5: 1}}


def test_warm_pools_are_left_over_where_a_pool_drains():
    idle = WarmPool("idle", {P5: 1}, "f", at(3000))
    others = [
        WarmPool("elsewhere", {G5: 1}, "f", at(3000)),
        WarmPool("used", {P5: 1}, "f", at(3000), used_by="job9"),
        WarmPool("ending", {P5: 1}, "f", at(3000), ending_since=NOW),
    ]
    snapshot = replace(a_snapshot(pools=[DRAINING, OPEN]), warm=(idle, *others))
    assert stranded_warm_pools(snapshot) == (idle,)
    assert stranded_warm_pools(replace(snapshot, pools={P5: a_pool(P5, 4)})) == ()


@pytest.mark.parametrize("many", [2, 400])
def test_when_a_job_starts_cannot_be_foreseen_where_only_a_pool_that_drains_could_hold_it(many):
    """Told by the planner, and roughly where the queue is long."""
    running = a_running_job("running", units={P5: 2})
    stuck = [a_job(f"stuck{number:03}", entry_time=at(number)) for number in range(many)]
    others = [a_job(f"other{number:03}", entry_time=at(number), demand=EITHER) for number in range(many)]
    snapshot = a_snapshot(pools=(DRAINING, OPEN), active=[running], waiting=[*stuck, *others])
    told = explain_in(snapshot, NOW, snapshot.waiting)
    assert {told[job.name].estimated_start for job in stuck} == {None}
    assert told["other000"].estimated_start == NOW
    # Two at a time, each for a day, and nowhere else.
    last = told[others[-1].name].estimated_start
    days = (many - 1) // 2
    assert last is None if days > 366 else abs(last - NOW - timedelta(days=days)) <= timedelta(days=days * 0.1)


def test_a_pool_that_is_resumed_starts_jobs_again():
    made = plan(Pool(P5, 4), waiting=[a_job("job1")])
    assert starts(made) == {"job1": {P5: 1}}
