"""Caps of users, groups and budgets hold however idle the pools are, and say what they wait for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from builders import (
    G5,
    NOW,
    P5,
    a_job,
    a_preempting_job,
    a_reservation,
    a_running_job,
    a_snapshot,
    an_observation,
    at,
    pools_of,
)
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Budget, Policy, Share
from trainmaster.domain.reasons.rules import BudgetSpent, GroupFull, UserFull
from trainmaster.domain.records import Records
from trainmaster.domain.shares.usage import Account, Usage, period_end, period_of
from trainmaster.planner.sharing.limits import UNKNOWN_USER, Limits

ANN, BOB = "arn:aws:iam::111122223333:user/ann", "arn:aws:iam::111122223333:user/bob"
ONE = {P5: 1}
DAY = timedelta(days=1)
HOUR = 3600
POOLS = pools_of(Pool(P5, 100, price=100.0), Pool(G5, 100, price=2.0))


def limits_of(policy: Policy | None = None, *, active=(), waiting=(), usage: Usage | None = None) -> Limits:
    snapshot: Snapshot = a_snapshot(pools=POOLS, active=active, waiting=waiting, policy=policy)
    return Limits(replace(snapshot, records=Records(usage=usage or Usage())), NOW)


def a_policy(**of_vision) -> Policy:
    return Policy(shares={"vision": Share(name="vision", **of_vision), "speech": Share(name="speech")})


def a_vision_job(name="new", **fields):
    return a_job(name, share="vision", **{"submitted_by": ANN, **fields})


def running(name="old", **fields):
    return a_running_job(name, **{"share": "vision", "submitted_by": ANN, **fields})


class TestUsers:
    policy = a_policy(max_per_user={P5: 3})

    def test_a_user_has_no_more_of_a_pool_than_one_user_may_have(self):
        limits = limits_of(self.policy, active=[running(units={P5: 2})])
        assert limits.refusal(a_vision_job(), {P5: 1}) is None
        assert limits.refusal(a_vision_job(), {P5: 2}) == UserFull(ANN, P5, 3)

    def test_another_user_another_share_and_another_pool_are_not_counted(self):
        others = [
            running("b", units={P5: 3}, submitted_by=BOB),
            running("s", units={P5: 3}, share="speech"),
            running("g", units={G5: 3}),
        ]
        limits = limits_of(self.policy, active=others)
        assert limits.refusal(a_vision_job(), {P5: 3, G5: 50}) is None
        assert limits.refusal(a_job(share="speech", submitted_by=ANN), {P5: 50}) is None

    def test_units_of_jobs_that_are_stopping_count_until_they_have_stopped(self):
        stopping = a_preempting_job("old", share="vision", submitted_by=ANN, units={P5: 3})
        assert limits_of(self.policy, active=[stopping]).refusal(a_vision_job(), ONE) == UserFull(ANN, P5, 3)

    def test_what_is_taken_in_the_plan_counts_and_is_taken_once(self):
        limits = limits_of(self.policy)
        limits.take(a_vision_job("first"), {P5: 1})
        limits.take(a_vision_job("first"), {P5: 2})
        assert limits.refusal(a_vision_job(), ONE) is None
        assert limits.refusal(a_vision_job(), {P5: 2}) == UserFull(ANN, P5, 3)

    def test_what_is_held_for_a_waiting_job_counts_for_others_but_not_for_itself(self):
        holder = replace(a_vision_job("holder"), reservation=a_reservation({P5: 3}))
        limits = limits_of(self.policy, waiting=[holder])
        assert limits.refusal(a_vision_job(), ONE) == UserFull(ANN, P5, 3)
        assert limits.refusal(holder, {P5: 3}) is None
        assert limits.refusal(a_vision_job(), ONE) == UserFull(ANN, P5, 3), "asking changes nothing"
        limits.release(holder)
        assert limits.refusal(a_vision_job(), ONE) is None, "the holder was considered, and nothing was kept for it"

    @pytest.mark.parametrize(
        "fields",
        [
            {"reservation": a_reservation({P5: 3}, until=NOW)},
            {"reservation": a_reservation({P5: 3}), "retry_at": at(1), "capacity_failures": 1},
        ],
    )
    def test_a_hold_that_has_lapsed_or_whose_job_backs_off_does_not_count(self, fields):
        limits = limits_of(self.policy, waiting=[replace(a_vision_job("holder"), **fields)])
        assert limits.refusal(a_vision_job(), ONE) is None

    def test_all_whose_submitter_is_not_known_are_one_user(self):
        limits = limits_of(self.policy, active=[running(units={P5: 3}, submitted_by=None)])
        assert limits.refusal(a_vision_job(submitted_by=None), ONE) == UserFull(UNKNOWN_USER, P5, 3)
        assert limits.refusal(a_vision_job(), ONE) is None

    def test_the_reason_says_who_and_how_many(self):
        assert UserFull(ANN, P5, 3).message() == f"user {ANN} may have 3 x {P5}, the share's cap for one user"


class TestGroups:
    def test_no_more_jobs_of_a_group_run_at_once_than_it_allows(self):
        active = [running(f"r{i}", group="sweep", max_concurrent=2) for i in range(2)]
        new = a_vision_job(group="sweep", max_concurrent=2)
        assert limits_of(active=active, waiting=[new]).refusal(new, ONE) == GroupFull("sweep", 2)
        assert limits_of(active=active[:1], waiting=[new]).refusal(new, ONE) is None

    def test_the_smallest_bound_that_any_member_gives_holds_for_all(self):
        active = [running("r0", group="sweep", max_concurrent=5)]
        new, strict = a_vision_job(group="sweep"), a_vision_job("strict", group="sweep", max_concurrent=1)
        assert limits_of(active=active, waiting=[new]).refusal(new, ONE) is None
        assert limits_of(active=active, waiting=[new, strict]).refusal(new, ONE) == GroupFull("sweep", 1)

    def test_members_that_were_taken_in_the_plan_or_are_held_for_count(self):
        members = [a_vision_job(f"w{i}", group="sweep", max_concurrent=2) for i in range(3)]
        holder = replace(members[0], reservation=a_reservation())
        limits = limits_of(waiting=[holder, *members[1:]])
        limits.take(members[1], ONE)
        assert limits.refusal(members[2], ONE) == GroupFull("sweep", 2)
        assert limits.refusal(holder, ONE) is None

    def test_what_another_share_calls_by_the_same_name_is_another_group(self):
        active = [running("r0", group="sweep", max_concurrent=1, share="speech")]
        new = a_vision_job(group="sweep", max_concurrent=1)
        assert limits_of(active=active, waiting=[new]).refusal(new, ONE) is None

    def test_a_group_without_a_bound_has_none(self):
        new = a_vision_job(group="sweep")
        active = [running(f"r{i}", group="sweep") for i in range(9)]
        assert limits_of(active=active, waiting=[new]).refusal(new, ONE) is None

    def test_members_that_are_stopping_still_run(self):
        active = [a_preempting_job("r0", share="vision", group="sweep", max_concurrent=1)]
        new = a_vision_job(group="sweep", max_concurrent=1)
        assert limits_of(active=active, waiting=[new]).refusal(new, ONE) == GroupFull("sweep", 1)


class TestBudgets:
    def test_what_ended_attempts_have_used_in_the_period_counts(self):
        budget = Budget(gpu_hours=10, period=DAY)
        account = Account(0, NOW, period_of(budget, NOW), gpu_seconds=10 * HOUR, dollars=5)
        reason = limits_of(a_policy(budget=budget), usage=Usage({"vision": account})).refusal(a_vision_job(), ONE)
        assert reason == BudgetSpent("vision", 10, 10, "GPU-hours", period_end(budget, NOW))
        assert "has spent 10.0 of its 10.0 GPU-hours" in reason.message()

    def test_active_attempts_count_from_their_start_or_that_of_the_period(self):
        budget = Budget(gpu_hours=96, period=DAY)
        policy = a_policy(budget=budget)
        since_yesterday = running(now=at(-30 * HOUR))
        assert limits_of(policy, active=[since_yesterday]).refusal(a_vision_job(), ONE) == BudgetSpent(
            "vision", 12 * 8, 96, "GPU-hours", period_end(budget, NOW)
        )
        assert limits_of(policy, active=[running(now=at(-11 * HOUR))]).refusal(a_vision_job(), ONE) is None

    def test_dollars_count_by_the_prices_of_the_pools(self):
        policy = a_policy(budget=Budget(dollars=300))
        active = [running("p", now=at(-2 * HOUR)), running("g", now=at(-2 * HOUR), units={G5: 25})]
        reason = limits_of(policy, active=active).refusal(a_vision_job(), ONE)
        assert isinstance(reason, BudgetSpent)
        assert (reason.spent, reason.budget, reason.unit) == (300, 300, "dollars")
        assert limits_of(policy, active=active[:1]).refusal(a_vision_job(), ONE) is None

    def test_usage_of_another_period_or_share_does_not_count(self):
        budget = Budget(gpu_hours=1, period=DAY)
        old = Account(0, NOW, period_of(budget, NOW) - 1, gpu_seconds=10 * HOUR)
        limits = limits_of(
            a_policy(budget=budget),
            active=[running(share="speech", now=at(-5 * HOUR))],
            usage=Usage({"vision": old, "speech": Account(0, NOW, period_of(budget, NOW), 10 * HOUR)}),
        )
        assert limits.refusal(a_vision_job(), ONE) is None
        assert limits.refusal(a_job(share="speech"), ONE) is None

    def test_a_budget_of_nothing_is_spent_from_the_start(self):
        limits = limits_of(a_policy(budget=Budget(gpu_hours=0)))
        assert isinstance(limits.refusal(a_vision_job(), ONE), BudgetSpent)

    def test_an_attempt_counts_the_same_just_before_and_just_after_its_end(self):
        budget = Budget(gpu_hours=16, period=DAY)
        policy, before = a_policy(budget=budget), running(now=at(-2 * HOUR))
        after = lifecycle.observe(before, an_observation(before, status=Status.COMPLETED), NOW)
        while_active = limits_of(policy, active=[before]).refusal(a_vision_job(), ONE)
        booked = Usage().after(before, after, policy, POOLS)
        assert isinstance(while_active, BudgetSpent)
        assert limits_of(policy, usage=booked).refusal(a_vision_job(), ONE) == while_active


def test_without_any_rule_nothing_is_refused():
    limits = limits_of(active=[running(f"r{i}") for i in range(5)])
    assert limits.refusal(a_vision_job(), {P5: 50}) is None
    assert limits.refusal(a_job(share="unknown"), {P5: 50}) is None
