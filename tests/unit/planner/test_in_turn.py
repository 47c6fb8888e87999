"""Jobs that only this pass reads: they start on free units where that delays no other job, and keep none."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from builders import G5, NOW, P5, a_demand, a_job, a_pool, a_running_job, a_snapshot, a_starting_job, at
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.plan import Start, Wait
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import NotConsideredYet
from trainmaster.planner.schedule import schedule

HIDDEN = a_job("hidden", entry_time=at(-60), units={P5: 2}, priority=1)
RUNNING = a_running_job("running", units={P5: 3}, priority=0)


def plan(*waiting, cap=4, pools=(), active=(RUNNING,), **policy):
    snapshot = a_snapshot(pools=pools or [a_pool(cap=cap)], active=active, waiting=waiting, policy=Policy(**policy))
    return schedule(replace(snapshot, in_turn=frozenset({"hidden"})), NOW, random.Random(1))


@pytest.mark.parametrize("order", Order)
def test_it_preempts_no_job(order):
    assert plan(HIDDEN, order=order).decisions == (Wait(HIDDEN, NotConsideredYet()),)
    assert plan(HIDDEN, order=order, cap=5).decisions == (Start(HIDDEN, {P5: 2}),)


def test_it_does_not_wait_for_the_next_pass_which_does_not_read_it():
    first, second = plan(a_job("first", priority=2), HIDDEN, cap=6, max_actions=1).decisions
    assert first == Start(first.job, {P5: 1})
    assert second == Wait(HIDDEN, NotConsideredYet())


@pytest.mark.parametrize("order", Order)
def test_in_back_off_it_preempts_no_job_in_another_pool(order):
    demand = replace(a_demand({G5: 2}, {P5: 2}), queue_selects_pool=True)
    tried = a_starting_job("hidden", demand=demand, priority=1)
    hidden = lifecycle.requeue_unlaunched(tried, NOW, "ResourceLimitExceeded: full")
    made = plan(hidden, order=order, pools=[a_pool(cap=3), a_pool(G5)])
    assert [type(decision) for decision in made.decisions] == [Wait]


@pytest.mark.parametrize("order", Order)
def test_no_other_waits_behind_it(order):
    other = a_job("other", entry_time=at(0), units={P5: 1})
    assert plan(HIDDEN, other, order=order).decisions == (Wait(HIDDEN, NotConsideredYet()), Start(other, {P5: 1}))


def test_it_passes_no_job_that_it_would_delay():
    wide, hidden = a_job("wide", entry_time=at(-90), units={P5: 6}), replace(HIDDEN, priority=0)
    first, second = plan(wide, hidden, cap=6, order=Order.FIFO).decisions
    assert first.job == wide
    assert second == Wait(hidden, NotConsideredYet())
