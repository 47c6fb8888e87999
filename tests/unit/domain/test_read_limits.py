"""Depth to which a pass reads a lane: as far as jobs could start, from any source of units."""

from __future__ import annotations

from typing import ClassVar

import pytest

from builders import G5, NOW, P5, a_job, a_pool, a_preempted_job, a_preempting_job, a_running_job, at, pools_of
from trainmaster.domain.capacity.catalogue import Catalogue
from trainmaster.domain.capacity.read_limits import (
    FIRST,
    FIRST_OF_FULL,
    FIRST_OF_SERVED,
    SPARE,
    ReadLimits,
    first_guess,
    first_of,
)
from trainmaster.domain.capacity.refusals import Refusal, RefusedKinds, kind_of
from trainmaster.domain.capacity.units import Demand, Pool
from trainmaster.domain.jobs.attempt import NOT_PERMITTED
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.lifecycle import requeue_unlaunched, start
from trainmaster.domain.policy.settings import Order, Policy, Share

CAP = 80


def wanted(*active, external=0, priority=0):
    head = a_job("head", units={P5: 1}, priority=priority)
    return ReadLimits(pools_of(a_pool(P5, CAP)), active, {P5: external}, Catalogue(), NOW).for_query(head)


def running(count, **fields):
    return [a_running_job(f"job{number}", units={P5: 1}, **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("active", "count"),
    [
        ([], CAP),
        (running(30), CAP - 30),
        (running(CAP, priority=1), CAP),
        ([a_preempting_job(f"job{number}", units={P5: 1}) for number in range(CAP)], CAP),
    ],
    ids=["free", "partly free", "of lower priority", "being freed"],
)
def test_as_many_are_read_as_units_could_come_to_them_and_a_few_more(active, count):
    assert wanted(*active, priority=2 if active and active[0].priority else 0) == count + SPARE


@pytest.mark.parametrize(
    "active",
    [running(CAP), running(CAP, priority=1), running(CAP, preemptible=False)],
    ids=["equals", "of higher priority", "never preempted"],
)
def test_units_of_equal_and_higher_jobs_are_not_counted(active):
    assert wanted(*active) == FIRST


def test_external_units_are_not_available():
    assert wanted(external=CAP - 40) == 40 + SPARE


def test_the_guess_before_a_lane_is_read_is_what_its_first_job_will_ask_for_at_least():
    stopping = [a_preempting_job("stopping", units={P5: 1})]
    for active in ([], running(30), running(30) + stopping, running(CAP)):
        guess = first_guess(pools_of(a_pool(P5, CAP)), active, {P5: 4}, Order.BACKFILL)
        assert guess(a_job("head").lane) == wanted(*active, external=4)
        assert guess("team/several ml.g5.2xlarge") == FIRST


def test_fewer_are_read_of_the_many_lanes_of_jobs_that_have_run_before():
    served = a_preempted_job("served", units={P5: 1}).changed(attempt_totals=AttemptTotals(served=3_600))
    pools = pools_of(a_pool(P5, CAP))
    assert ReadLimits(pools, running(CAP), {}, Catalogue(), NOW).for_query(served) == FIRST_OF_SERVED
    assert first_of(served.lane) == first_guess(pools, running(CAP), {}, Order.GITTINS)(served.lane)
    free = ReadLimits(pools, (), {}, Catalogue(), NOW).for_query(served)
    assert free == CAP + SPARE, "any of them could start"


class TestFullUsers:
    """Users who hold as much as each of their share may."""

    POLICY: ClassVar = Policy(shares={"team": Share(name="team", max_per_user={P5: 3})})

    def heads(self, jobs, wanted, *active):
        limits = ReadLimits(pools_of(a_pool(P5, CAP)), active, {}, Catalogue(), NOW, self.POLICY)
        found, more = limits.heads(jobs, wanted)
        return [job.name for job in found], more

    def of(self, user, count, *, units=1, share="team", prefix=""):
        fields = {"share": share, "submitted_by": user, "units": {P5: units}}
        return [a_job(f"{prefix}{user}{number}", **fields) for number in range(count)]

    def holding(self, user, units, share="team"):
        return a_running_job(f"held by {user}", share=share, submitted_by=user, units={P5: units})

    def test_jobs_of_a_full_user_are_passed_over(self):
        jobs = [*self.of("ada", 5), *self.of("bob", 4), *self.of("ada", 2, prefix="later "), *self.of("eve", 1)]
        assert self.heads(jobs, 3) == (["ada0", "ada1", "ada2"], True)
        full = self.holding("ada", 3)
        assert self.heads(jobs, 3, full) == (["ada0", "ada1", "ada2", "bob0", "bob1", "bob2"], True)
        assert self.heads(jobs, 4, full) == (
            [*("ada0", "ada1", "ada2", "ada3"), *("bob0", "bob1", "bob2", "bob3")],
            True,
        )
        all_others = [*("bob0", "bob1", "bob2", "bob3"), "eve0"]
        assert self.heads(jobs, 6, full) == ([*(f"ada{n}" for n in range(5)), *all_others], True), "later ones are left"
        assert self.heads(jobs[:9], 6, full) == ([job.name for job in jobs[:9]], False)

    def test_nothing_more_is_read_while_no_user_is_full(self):
        lane = iter(self.of("ada", 5))
        assert self.heads(lane, 3) == (["ada0", "ada1", "ada2"], True)
        assert next(lane).name == "ada3"

    @pytest.mark.parametrize(("units", "waits"), [(1, False), (2, True)])
    def test_a_user_is_full_for_jobs_that_need_more_than_is_left(self, units, waits):
        jobs = [*self.of("ada", 2, units=units), *self.of("bob", 2, units=units)]
        assert self.heads(jobs, 1, self.holding("ada", 2)) == (["ada0", *(["bob0"] if waits else [])], True)

    def test_an_alternative_that_the_user_may_have_is_enough(self):
        either = a_job("either", share="team", submitted_by="ada", demand=Demand(({P5: 1}, {G5: 1})))
        assert self.heads([either, *self.of("bob", 2)], 1, self.holding("ada", 3)) == (["either"], True)

    def test_limits_of_one_share_are_none_of_another(self):
        elsewhere = self.holding("ada", 9, "other")
        assert self.heads([*self.of("ada", 1, share="other"), *self.of("bob", 1)], 1, elsewhere) == (["ada0"], True)
        assert self.heads([*self.of("ada", 1), *self.of("bob", 1)], 1, elsewhere) == (["ada0"], True)

    def test_those_passed_over_are_named(self):
        limits = ReadLimits(pools_of(a_pool(P5, CAP)), [self.holding("ada", 3)], {}, Catalogue(), NOW, self.POLICY)
        passed: list[Job] = []
        found, _ = limits.heads([*self.of("ada", 5), *self.of("bob", 2)], 2, passed.append)
        assert [job.name for job in found] == ["ada0", "ada1", "bob0", "bob1"]
        assert [job.name for job in passed] == ["ada2", "ada3", "ada4"]

    @pytest.mark.parametrize(
        ("share", "wanted", "some"),
        [("team", FIRST_OF_FULL + 1, True), ("team", FIRST_OF_FULL, False), ("other", FIRST, False)],
        ids=["limited", "full service", "no limit"],
    )
    def test_nothing_is_passed_over_where_users_have_no_limit_or_no_job_can_start(self, share, wanted, some):
        limits = ReadLimits(pools_of(a_pool(P5, CAP)), [self.holding("ada", 3)], {}, Catalogue(), NOW, self.POLICY)
        assert limits.may_pass_over(self.of("ada", 1, share=share), wanted) is some


class TestJobsThatCannotStart:
    """Those that back off for reasons of their own, of refused kinds, or for which no pool is large enough."""

    def limits(self, cap=CAP, refused=(), **pool):
        found = RefusedKinds.of({kind_of(job): Refusal("first", NOW) for job in refused}, (), NOW)
        return ReadLimits(pools_of(Pool(P5, cap, **pool)), (), {}, Catalogue(), NOW, refused=found)

    def requeued(self, reason):
        job = a_job("job1")
        return requeue_unlaunched(start(job, {P5: 1}, (), NOW), NOW, reason)

    def test_a_job_that_backs_off_for_a_reason_of_its_own_is_passed_over_until_its_next_try(self):
        job = self.requeued(f"{NOT_PERMITTED}iam:PassRole")
        assert self.limits().keeps_waiting(job)
        assert not self.limits().keeps_waiting(job.changed(retry_at=NOW))
        assert self.limits().keeps_waiting(a_job("retried", retry_at=at(1)))

    def test_a_job_for_which_sagemaker_has_no_capacity_keeps_its_place(self):
        assert not self.limits().keeps_waiting(self.requeued("InsufficientCapacityError"))

    def test_jobs_of_refused_kinds_are_passed_over(self):
        refused, other = a_job("job1", submitted_by="ada"), a_job("job2", submitted_by="bob")
        limits = self.limits(refused=[refused])
        assert (limits.keeps_waiting(refused), limits.keeps_waiting(other)) == (True, False)
        assert limits.may_pass_over([other, refused], FIRST)
        assert not limits.may_pass_over([other], FIRST)

    @pytest.mark.parametrize(
        ("units", "cap", "passed"),
        [(7, 7, False), (7, 6, True), (7, 4, True), (7, 3, False), (4, 3, False), (1, 0, False), (8, 7, False)],
    )
    def test_a_job_too_large_for_the_pool_is_passed_over_where_others_of_its_lane_may_fit(self, units, cap, passed):
        assert self.limits(cap).keeps_waiting(a_job("large", units={P5: units})) is passed

    def test_nothing_is_passed_over_in_lanes_of_a_draining_pool(self):
        assert not self.limits(6, draining=True).keeps_waiting(a_job("large", units={P5: 7}))
