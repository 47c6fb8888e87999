"""Jobs that only this pass reads: they start on free units where that delays no other job, and keep none."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from builders import NOW, P5, a_job, a_pool, a_running_job, a_snapshot, at
from trainmaster.domain.plan import Start, Wait
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.reasons.capacity import NotConsideredYet
from trainmaster.planner.schedule import schedule

HIDDEN = a_job("hidden", entry_time=at(-60), units={P5: 2}, priority=1)
RUNNING = a_running_job("running", units={P5: 3}, priority=0)


def plan(*waiting, order=Order.BACKFILL, cap=4, active=(RUNNING,)):
    snapshot = a_snapshot(pools=[a_pool(cap=cap)], active=active, waiting=waiting, policy=Policy(order=order))
    return schedule(replace(snapshot, in_turn=frozenset({"hidden"})), NOW, random.Random(1))


@pytest.mark.parametrize("order", Order)
def test_it_preempts_no_job(order):
    assert plan(HIDDEN, order=order).decisions == (Wait(HIDDEN, NotConsideredYet()),)
    assert plan(HIDDEN, order=order, cap=5).decisions == (Start(HIDDEN, {P5: 2}),)


@pytest.mark.parametrize("order", Order)
def test_no_other_waits_behind_it(order):
    other = a_job("other", entry_time=at(0), units={P5: 1})
    assert plan(HIDDEN, other, order=order).decisions == (Wait(HIDDEN, NotConsideredYet()), Start(other, {P5: 1}))


def test_it_passes_no_job_that_it_would_delay():
    wide, hidden = a_job("wide", entry_time=at(-90), units={P5: 6}), replace(HIDDEN, priority=0)
    first, second = plan(wide, hidden, cap=6, order=Order.FIFO).decisions
    assert first.job == wide
    assert second == Wait(hidden, NotConsideredYet())
