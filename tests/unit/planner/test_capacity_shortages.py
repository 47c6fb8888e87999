"""Pools that have lately turned out to lack instances: the jobs that avoid them, for how long, and exceptions."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import NOW, a_job, a_past_attempt, a_reservation, a_snapshot, an_attempt, at
from trainmaster.domain.capacity.resources import Resources
from trainmaster.domain.capacity.units import Demand, Kind, Pool
from trainmaster.domain.capacity.warm_pools import WarmPool
from trainmaster.domain.elastic.sizes import Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import NOT_PERMITTED, Outcome
from trainmaster.domain.policy.settings import FailureClass, Placement, Policy, Retry, Share
from trainmaster.domain.times import clock
from trainmaster.planner.schedule import schedule

A, B, C = (Pool(name, 4, vcpus=cpus, memory_gib=8.0) for name, cpus in (("a", 4), ("b", 8), ("c", 16)))
MAX_DELAY = Retry().max_delay.total_seconds()


def by_resources(name="job1", count=1, **fields):
    demand = Demand((), queue_selects_pool=True, resources=Resources(vcpus=2), instances=count)
    return a_job(name, demand=demand, **fields)


def by_name(*pools, name="job1", **fields):
    return a_job(name, demand=Demand(tuple({pool: 1} for pool in pools), queue_selects_pool=True), **fields)


def refused(job, *tries, reason="CapacityError: none", launched=True):
    """The job after tries in these pools, each so many seconds after `NOW`, that met no capacity."""
    for pool, seconds in tries:
        count = job.demand.instances or 1
        started = lifecycle.start(job, {pool: count}, (), at(seconds))
        if launched:
            started = lifecycle.mark_launched(started)
        job = lifecycle.requeue_unlaunched(started, at(seconds), reason)
    return replace(job, retry_at=None)


def where(job, *pools, seconds=60.0, others=(), active=(), policy=None, warm=()):
    """The pool in which the job would start."""
    snapshot = a_snapshot(pools=pools or (A, B, C), waiting=[job, *others], active=active, policy=policy)
    plan = schedule(replace(snapshot, warm=warm), at(seconds), random.Random(1))
    (start,) = [start for start in plan.starts if start.job.name == job.name]
    return next(iter(start.units))


class TestOwnTries:
    def test_go_from_pool_to_pool(self):
        job = by_resources()
        assert where(job) == "a"
        assert where(refused(job, ("a", 0))) == "b"
        assert where(refused(job, ("a", 0), ("b", 1))) == "c"

    def test_begin_again_where_it_is_longest_ago(self):
        tries = ("a", 0), ("b", 1), ("c", 2)
        assert where(refused(by_resources(), *tries)) == "a"
        assert where(refused(by_resources(), *tries, ("a", 3))) == "b"

    def test_that_left_no_training_job_behind_are_remembered_too(self):
        job = refused(by_resources(), ("a", 0), ("b", 1), launched=False)
        assert (job.attempt.number, job.past) == (1, ())
        assert where(job) == "c"

    def test_go_through_pools_that_it_names_in_its_order(self):
        assert where(by_name("b", "a")) == "b"
        assert where(refused(by_name("b", "a"), ("b", 0))) == "a"

    @pytest.mark.parametrize("launched", [True, False])
    def test_count_from_the_last_in_any_pool_of_the_same_instances(self, launched):
        twins = [Pool(name, 4, type_="ml.x", vcpus=4, memory_gib=8.0) for name in ("a1", "a2")]
        job = refused(by_resources(), ("a1", 0), ("b", 10), ("a2", 20), launched=launched)
        assert where(job, *twins, B, seconds=2 * MAX_DELAY) == "b"

    def test_outlast_back_offs_but_not_a_day(self):
        job = refused(by_resources(), ("a", 0))
        assert where(job, seconds=23 * 3600) == "b"
        assert where(job, seconds=25 * 3600) == "a"

    def test_that_ended_otherwise_are_forgotten(self):
        job = refused(by_resources(), ("a", 0))
        later = 10 * MAX_DELAY
        ran = a_past_attempt(2, units={"b": 1}, created_at=at(later), ended_at=at(later), training_job_name="job1-2")
        assert where(replace(job, past=(job.attempt,), attempt=ran), seconds=later + 1) == "a"

    def test_take_the_same_pool_where_no_other_is_free(self):
        others = [replace(pool, cap=0) for pool in (B, C)]
        assert where(refused(by_resources(), ("a", 0)), A, *others) == "a"

    def test_go_before_what_the_share_prefers(self):
        policy = Policy(shares={"default": Share(name="default", prefers=("b",))})
        assert where(by_resources(), policy=policy) == "b"
        assert where(refused(by_resources(), ("b", 0)), policy=policy) == "a"

    def test_do_not_keep_it_from_what_was_freed_for_it(self):
        job = replace(refused(by_resources(), ("b", 0)), reservation=a_reservation({"b": 1}))
        assert where(job) == "b"

    def test_do_not_keep_it_from_a_warm_pool_there(self):
        warm = (WarmPool("old", {"b": 1}, "same", at(6_000)),)
        job = refused(by_name("a", "b", warm_pool_key="same"), ("a", 0))
        assert where(job, warm=(replace(warm[0], units={"a": 1}),)) == "a"
        assert where(replace(by_name("a", "b", warm_pool_key="same")), warm=warm) == "a"
        assert where(refused(by_name("a", "b", warm_pool_key="same"), ("a", 0)), warm=warm) == "b"

    def test_of_several_pools_together_say_nothing_of_each(self):
        attempt = an_attempt(units={"a": 1, "b": 1}, outcome=Outcome.RETURNED, ended_at=NOW, reason="none")
        assert attempt.shortages == {}
        assert replace(attempt, choices=("a", "b")).shortages == {"a": NOW, "b": NOW}

    def test_for_spot_instances_that_did_not_come_in_time_count_too(self):
        job = lifecycle.mark_launched(lifecycle.start(by_name("spot", "a"), {"spot": 1}, (), NOW))
        reason = "SageMaker ended it: MaxWaitTimeExceeded"
        job = replace(lifecycle.retry_or_fail(job, FailureClass.SPOT, NOW, reason), retry_at=None)
        assert where(job, Pool("spot", 4, type_="a", kind=Kind.SPOT), A) == "a"


class TestWhatOthersMet:
    @pytest.mark.parametrize("state", ["waiting", "active"])
    def test_counts_for_as_long_as_jobs_back_off_at_most(self, state):
        other = refused(by_resources("other"), ("a", 0))
        if state == "active":
            more = {"active": [lifecycle.start(other, {"b": 1}, (), at(1))]}
        else:
            more = {"others": [replace(other, retry_at=at(99_999))]}
        assert where(by_resources(), seconds=MAX_DELAY - 1, **more) == "b"
        assert where(by_resources(), seconds=MAX_DELAY, **more) == "a"

    def test_counts_as_long_as_the_settings_have_jobs_back_off(self):
        other = replace(refused(by_resources("other"), ("a", 0)), retry_at=at(99_999))
        policy = Policy(retries={FailureClass.CAPACITY: Retry(max_retries=None, max_delay=timedelta(seconds=100))})
        assert where(by_resources(), seconds=99, others=[other], policy=policy) == "b"
        assert where(by_resources(), seconds=100, others=[other], policy=policy) == "a"

    def test_counts_although_it_left_no_training_job_behind(self):
        other = refused(by_resources("other"), ("a", 0), launched=False)
        runs = lifecycle.start(other, {"b": 1}, (), at(1))
        assert (runs.past, runs.attempt.number) == ((), 1)
        assert where(by_resources(), active=[runs]) == "b"

    @pytest.mark.parametrize("launched", [True, False])
    def test_counts_for_who_asks_for_as_much_as_was_refused_there_not_elsewhere_later(self, launched):
        job = a_job("other", demand=Demand(({"a": 3}, {"b": 1}), queue_selects_pool=True))
        for units in ({"a": 3}, {"b": 1}):
            job = lifecycle.start(job, units, (), NOW)
            job = lifecycle.requeue_unlaunched(
                lifecycle.mark_launched(job) if launched else job, NOW, "CapacityError: none"
            )
        job = replace(job, retry_at=at(99_999))
        pools = A, replace(B, cap=0), C
        assert [where(by_resources(count=count), *pools, others=[job]) for count in (1, 2, 3)] == ["a", "a", "c"]

    def test_counts_for_who_asks_for_as_much_as_an_elastic_job_may_have_at_most(self):
        job = replace(by_resources("other"), elastic=Elastic(min_instances=1, max_instances=3, hook=Hook.CUSTOM))
        for pool in "ab":
            job = lifecycle.requeue_unlaunched(lifecycle.start(job, {pool: 1}, (), NOW), NOW, "CapacityError: none")
        job = replace(job, retry_at=at(99_999))
        pools = A, replace(B, cap=0), C
        assert [where(by_resources(count=count), *pools, others=[job]) for count in (2, 3)] == ["a", "c"]

    @pytest.mark.parametrize("order", [1, -1])
    def test_counts_from_when_it_was_met_last(self, order):
        met = [("o1", "a", 0), ("o2", "a", 20), ("o3", "b", 10)][::order]
        others = [replace(refused(by_resources(name), (pool, when)), retry_at=at(99_999)) for name, pool, when in met]
        assert where(by_resources(), A, B, others=others) == "b"

    def test_does_not_count_for_who_asks_for_less(self):
        other = replace(refused(by_resources("other", 3), ("a", 0)), retry_at=at(99_999))
        assert where(by_resources(count=3), others=[other]) == "b"
        assert where(by_resources(count=2), others=[other]) == "a"

    def test_counts_for_all_pools_of_the_same_instances(self):
        twins = [Pool(name, 4, type_="ml.m5.xlarge") for name in ("team1", "team2")]
        other = replace(refused(by_resources("other"), ("team1", 0)), retry_at=at(99_999))
        assert where(by_resources(), *twins, Pool("ml.m5.4xlarge", 4), others=[other]) == "ml.m5.4xlarge"

    def test_does_not_count_where_only_a_permission_was_missing(self):
        other = refused(by_resources("other"), ("a", 0), reason=f"{NOT_PERMITTED}iam:PassRole")
        assert where(by_resources(), others=[replace(other, retry_at=at(99_999))]) == "a"


def test_jobs_that_have_met_something_else_are_not_alike():
    """A person may have held and released one, which ends its back-off."""
    assert by_resources().equivalence_key is not None
    assert refused(by_resources(), ("a", 0)).equivalence_key is None


def test_a_blocked_job_waits_where_nothing_has_been_lacking():
    full = [replace(pool, cap=1) for pool in (A, B)]
    busy = [lifecycle.start(a_job(f"busy-{n}"), {n: 1}, (), NOW) for n in "ab"]
    for job, expected in ((by_resources(), "a"), (refused(by_resources(), ("a", 0)), "b")):
        snapshot = a_snapshot(pools=full, active=busy, waiting=[job])
        (wait,) = schedule(snapshot, at(60), random.Random(1)).waits
        assert wait.reason.pool == expected


def test_a_start_elsewhere_says_why_as_far_as_its_own_last_try_tells():
    job = lifecycle.start(refused(by_resources(), ("a", 0)), {"b": 1}, (), at(60))
    assert job.history[-1].reason == f"takes 1 x b: a had no capacity at {clock(NOW)}"


@pytest.mark.parametrize(
    ("job", "met", "expected"),
    [
        (by_resources(), "a", ("a", NOW)),
        (by_resources(), "b", None),  # it would not have gone there
        (by_name("b", "a"), "b", ("b", NOW)),
        (by_name("b", "a"), "a", None),
    ],
)
def test_the_plan_says_which_pool_it_would_have_been(job, met, expected):
    other = replace(refused(by_name(met, name="other"), (met, 0)), retry_at=at(99_999))
    (start,) = schedule(a_snapshot(pools=[A, B, C], waiting=[job, other]), at(60), random.Random(1)).starts
    assert start.instead_of == expected


def test_where_the_policy_draws_the_plan_names_no_other_pool():
    other = replace(refused(by_name("a", name="other"), ("a", 0)), retry_at=at(99_999))
    snapshot = a_snapshot(pools=[A, B], waiting=[by_resources(), other], policy=Policy(placement=Placement.RANDOM))
    (start,) = schedule(snapshot, at(60), random.Random(1)).starts
    assert (start.units, start.instead_of) == ({"b": 1}, None)
