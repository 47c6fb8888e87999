"""Metrics of a pass from its snapshot and plan: units by pool, waits and budgets by share, idle units."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    G5,
    NOW,
    P5,
    a_job,
    a_pool,
    a_preempted_job,
    a_reservation,
    a_running_job,
    a_snapshot,
    at,
    pools_of,
)
from samples import examples
from trainmaster.domain.policy.settings import Budget, Policy, Share
from trainmaster.domain.reasons.reason import REASONS
from trainmaster.planner.schedule import schedule
from trainmaster.service.apply_plan import PassReport
from trainmaster.service.metrics.pass_metrics import WAITS_FOR_UNITS, pass_metrics


def measured(now=NOW, **snapshot):
    """The metrics of a pass that applies the whole plan."""
    read = a_snapshot(**snapshot)
    plan = schedule(read, now, random.Random(1))
    report = PassReport(1, snapshot=read, plan=plan, started=[start.job.name for start in plan.starts])
    return pass_metrics(report, now)


def pool_of(metrics, name=P5):
    (found,) = [pool for pool in metrics.pools if pool.pool == name]
    return found


def share_of(metrics, name):
    (found,) = [share for share in metrics.shares if share.share == name]
    return found


def test_a_pass_that_read_nothing_has_no_metrics():
    assert pass_metrics(PassReport(1), NOW) is None


def test_an_empty_queue_has_free_units_and_none_is_idle():
    metrics = measured()
    assert (pool_of(metrics).free, metrics.idle_units, metrics.oldest_wait, metrics.budget_used) == (2, 0, None, None)


def test_free_units_are_idle_while_a_feasible_job_waits_for_more():
    metrics = measured(active=[a_running_job("one")], waiting=[a_job("two", units={P5: 2})])
    pool = pool_of(metrics)
    assert (pool.used, pool.free, pool.idle, pool.waiting) == (1, 1, 1, 1)


def test_jobs_that_start_use_their_units():
    metrics = measured(waiting=[a_job("one"), a_job("two", units={P5: 2})])
    assert (pool_of(metrics).used, metrics.idle_units) == (1, 1)
    assert share_of(metrics, "default").accelerators == 8


@pytest.mark.parametrize(
    ("what", "waiting", "more"),
    [
        ("no pool could hold it", a_job("two", units={P5: 3}), {}),
        ("its group is full", a_job("two", group="g", max_concurrent=1), {"active": [a_running_job("one", group="g")]}),
        (
            "its share's budget is spent",
            a_job("two", share="x"),
            {"policy": Policy(shares={"x": Share(name="x", budget=Budget(gpu_hours=0))})},
        ),
        ("its share is full", a_job("two", share="x"), {"policy": Policy(shares={"x": Share(name="x", max={P5: 0})})}),
        ("its pool drains", a_job("two"), {"pools": pools_of(replace(a_pool(), draining=True))}),
        ("it waits for another pool", a_job("two", units={G5: 2}), {"pools": pools_of(a_pool(), a_pool(G5, 1))}),
    ],
)
def test_units_are_not_idle_for_a_job_that_a_rule_or_its_size_keeps_waiting(what, waiting, more):
    metrics = measured(waiting=[waiting], **more)
    assert pool_of(metrics).waiting == (P5 in waiting.demand.pools)
    assert metrics.idle_units == 0, what


def test_units_that_are_reserved_for_a_job_are_not_idle():
    waiting = [a_job("two", units={P5: 2}, reservation=a_reservation({P5: 2}))]
    metrics = measured(active=[a_running_job("one")], waiting=waiting)
    assert (pool_of(metrics).free, metrics.idle_units) == (1, 0)


@pytest.mark.parametrize(("waits_too", "idle"), [(False, 0), (True, 1)])
def test_units_that_a_share_does_not_lend_are_idle_only_if_its_own_job_waits_for_them(waits_too, idle):
    shares = {"keeper": Share(name="keeper", nominal={P5: 2}, lends={P5: 1})}
    own = [a_job("own", share="keeper", units={P5: 2})] if waits_too else []
    metrics = measured(
        policy=Policy(shares=shares),
        pools=pools_of(a_pool(cap=4)),
        active=[a_running_job("one", units={P5: 3}, preemptible=False)],
        waiting=[a_job("two"), *own],
    )
    assert pool_of(metrics).free == 1
    assert metrics.idle_units == idle


def test_a_wait_begins_at_the_entry_or_with_the_end_of_the_last_attempt():
    again = a_preempted_job("again", entry_time=at(-9_000), now=at(-60), units={P5: 2})
    late = a_job("late", entry_time=at(-30), units={P5: 2}, share="x")
    policy = Policy(shares={"x": Share(name="x")})
    metrics = measured(active=[a_running_job("one")], waiting=[again, late], policy=policy)
    assert metrics.oldest_wait == 60
    assert (share_of(metrics, "default").oldest_wait, share_of(metrics, "x").oldest_wait) == (60, 30)


def test_a_budget_counts_what_runs():
    policy = Policy(shares={
        "x": Share(name="x", budget=Budget(gpu_hours=16, period=timedelta(days=36_500))),
        "y": Share(name="y", budget=Budget(gpu_hours=1_000, period=timedelta(days=36_500))),
        "z": Share(name="z"),
    })  # fmt: skip
    metrics = measured(now=at(3_600), active=[a_running_job("one", share="x")], policy=policy)
    assert {each.share: each.budget_used for each in metrics.shares} == {"default": None, "x": 50, "y": 0, "z": None}
    assert metrics.budget_used == 50


def test_a_share_that_the_settings_do_not_name_has_no_series():
    metrics = measured(waiting=[a_job("one", share="made-up"), a_job("two", share="made-up", units={P5: 2})])
    assert [share.share for share in metrics.shares] == ["default"]
    assert metrics.oldest_wait == 0


def test_reasons_that_wait_for_units_are_of_capacity():
    assert {*WAITS_FOR_UNITS} <= {*REASONS.values()}
    assert all(reason.__module__ == "trainmaster.domain.reasons.capacity" for reason in WAITS_FOR_UNITS)


@examples(50, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from((P5, G5)), st.integers(1, 5), st.integers(0, 2)), max_size=6),
    st.lists(st.tuples(st.sampled_from((P5, G5)), st.integers(1, 2)), max_size=3),
)
def test_idle_units_are_free_units_of_pools_for_which_jobs_wait(waiting, running):
    jobs = [a_job(f"w{n}", units={kind: count}, priority=priority) for n, (kind, count, priority) in enumerate(waiting)]
    active = [a_running_job(f"r{n}", units={kind: count}) for n, (kind, count) in enumerate(running)]
    metrics = measured(waiting=jobs, active=active, pools=pools_of(a_pool(cap=4), a_pool(G5, 3)))
    for pool in metrics.pools:
        assert 0 <= pool.idle <= pool.free <= pool.cap
        assert pool.used + pool.free >= pool.cap
        assert pool.waiting or not pool.idle
    assert metrics.idle_units == sum(pool.idle for pool in metrics.pools)
