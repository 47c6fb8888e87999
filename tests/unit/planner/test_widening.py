"""Running jobs of other kinds get units of their service that nothing waits for, if they hold fewer than they use."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders as b
from other_kind import a_batch
from trainmaster.domain.capacity.units import Kind, Pool
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.policy.settings import Policy, Share
from trainmaster.planner.schedule import schedule

ECHO, OTHER = "batch/echo", "batch/other"


def running(name, calls, held, **fields):
    """A job that could make so many calls at once, and holds fewer."""
    job = lifecycle.start(a_batch(name, calls, **fields), {ECHO: held}, (), b.NOW)
    return lifecycle.observe(job, b.an_observation(job, secondary="Training", started_at=b.NOW), b.NOW)


def widened(cap, *active, waiting=(), policy=None, draining=False):
    pools = [Pool(ECHO, cap, kind=Kind.SERVICE, draining=draining), Pool(OTHER, 8, kind=Kind.SERVICE)]
    snapshot = b.a_snapshot(pools=pools, active=active, waiting=waiting, policy=policy)
    plan = schedule(snapshot, b.NOW, random.Random(1))
    return {decision.job.name: decision.units[ECHO] for decision in plan.widenings}


def test_a_job_that_is_larger_than_its_service_gets_what_this_takes_later():
    assert widened(2, running("a", 80, 2)) == {}
    assert widened(40, running("a", 80, 2)) == {"a": 40}
    assert widened(100, running("a", 80, 2)) == {"a": 80}
    assert widened(40, running("a", 80, 2), running("b", 8, 8)) == {"a": 32}


def test_a_job_that_has_what_it_can_use_gets_no_more():
    assert widened(40, running("a", 8, 8)) == {}


def test_units_for_which_a_job_waits_are_left_to_it():
    large = a_batch("b", 39)
    assert widened(40, running("a", 80, 2), waiting=[large]) == {}
    assert widened(40, running("a", 80, 2), waiting=[a_batch("b", 4)]) == {"a": 36}, "it starts in this plan"
    elsewhere = a_batch("b", 8, service="other"), a_batch("c", 8, service="other")
    assert widened(40, running("a", 80, 2), waiting=elsewhere) == {"a": 40}


def test_of_several_the_job_of_the_highest_priority_comes_first():
    low, high = running("a", 30, 2), running("b", 30, 2, priority=5)
    assert widened(40, low, high) == {"b": 30, "a": 10}


@pytest.mark.parametrize(("cap", "found"), [(81, {}), (89, {}), (90, {"a": 90}), (200, {"a": 200})])
def test_a_little_more_is_not_worth_a_write(cap, found):
    assert widened(cap, running("a", 300, 80)) == found


def test_the_last_units_that_a_job_can_use_are_given_to_it():
    assert widened(200, running("a", 81, 80)) == {"a": 81}


def test_a_share_gets_no_more_than_its_limit():
    policy = Policy(shares={"default": Share(name="default", max={ECHO: 10})})
    assert widened(40, running("a", 80, 2), policy=policy) == {"a": 10}


def test_jobs_that_wait_for_their_own_share_need_no_units():
    policy = Policy(
        shares={name: Share(name=name, max={ECHO: 10} if name == "full" else {}) for name in ("default", "full")}
    )
    full = running("f", 10, 10, share="full")
    assert widened(40, running("a", 80, 2), full, waiting=[a_batch("b", 4, share="full")], policy=policy) == {"a": 30}


def test_nothing_is_given_at_a_service_that_drains_nor_to_a_job_that_stops():
    job = running("a", 80, 2)
    assert widened(40, job, draining=True) == {}
    assert widened(40, lifecycle.request_stop(job, b.NOW, "ann")) == {}
    assert widened(40, lifecycle.preempt(job, "b", b.NOW)) == {}
    starting = lifecycle.start(a_batch("a", 80), {ECHO: 2}, (), b.NOW)
    assert widened(40, starting) == {}
    for other in (starting, lifecycle.preempt(job, "b", b.NOW), a_batch("a")):
        with pytest.raises(IllegalTransition):
            lifecycle.widen(other, {ECHO: 40}, b.NOW)


@given(
    st.integers(1, 60),
    st.lists(st.tuples(st.integers(1, 80), st.integers(1, 80), st.integers(0, 2)), max_size=6),
    st.lists(st.integers(1, 80), max_size=3),
)
def test_no_service_has_to_take_more_than_it_does(cap, jobs, waiting):
    active = [running(f"a{n}", calls, min(calls, held), priority=p) for n, (calls, held, p) in enumerate(jobs)]
    queue = [a_batch(f"w{n}", calls) for n, calls in enumerate(waiting)]
    pools = [Pool(ECHO, cap, kind=Kind.SERVICE)]
    plan = schedule(b.a_snapshot(pools=pools, active=active, waiting=queue), b.NOW, random.Random(1))
    held = {job.name: job.units[ECHO] for job in active}
    before = sum(held.values())
    held |= {decision.job.name: decision.units[ECHO] for decision in plan.widenings}
    held |= {start.job.name: start.units[ECHO] for start in plan.starts}
    assert sum(held.values()) <= max(cap, before)
    assert not (plan.widenings and plan.waits)
    for decision in plan.widenings:
        after = lifecycle.widen(decision.job, decision.units, b.at(1))
        assert after.units == decision.units
        assert replace(after, attempt=decision.job.attempt, version=0, history=()) == replace(
            decision.job, version=0, history=()
        )
