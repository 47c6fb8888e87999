"""Jobs that found no capacity: the jobs that wait for them, what wakes them, and quotas below caps."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

import pytest

from builders import (
    G5,
    NOW,
    P5,
    a_demand,
    a_job,
    a_pool,
    a_running_job,
    a_snapshot,
    a_starting_job,
    an_observation,
    at,
    pools_of,
)
from trainmaster.domain.capacity.catalogue import Catalogue, ReportedQuota
from trainmaster.domain.capacity.refusals import Refusal, kind_of
from trainmaster.domain.capacity.reported_quotas import reported_quota, without_larger
from trainmaster.domain.errors import AccountLimitReached
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.attempt import NOT_PERMITTED
from trainmaster.domain.jobs.job import Reservation
from trainmaster.domain.jobs.observation import Status
from trainmaster.domain.policy.settings import Order, Policy, Share
from trainmaster.domain.reasons.capacity import (
    BackingOff,
    BehindBackingOff,
    CanNeverFit,
    KindRefused,
    QuotaTooSmall,
    WaitsForCapacity,
)
from trainmaster.domain.records import Records, booked
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)
FULL = "ResourceLimitExceeded: full"


def refused(name="off", *, priority=5, launched=False, reason=FULL, now=NOW, **fields):
    tried = a_starting_job(name, priority=priority, now=now, **fields)
    return lifecycle.requeue_unlaunched(lifecycle.mark_launched(tried) if launched else tried, now, reason)


def plan(now=NOW, *, quota=None, freed=None, refusals=None, **snapshot):
    read = a_snapshot(**{"pools": pools_of(a_pool(cap=8)), **snapshot})
    reported = {} if quota is None else {P5: ReportedQuota(quota, NOW)}
    read = replace(
        read, catalogue=Catalogue(reported=reported), records=Records(freed=freed or {}, refusals=refusals or {})
    )
    return schedule(read, now, random.Random(0))


def started(made):
    return [start.job.name for start in made.starts]


def reason(made, name):
    return next(wait.reason for wait in made.waits if wait.job.name == name)


def test_no_lower_priority_starts_where_it_would_fit():
    made = plan(waiting=[refused(), a_job("low", priority=-2)])
    assert started(made) == []
    assert reason(made, "off") == BackingOff(at(60), FULL)
    assert reason(made, "low") == BehindBackingOff("off", P5, at(60))
    assert "waits behind off" in reason(made, "low").message()


def test_higher_priorities_and_smaller_equals_start():
    off = refused(units={P5: 2})
    waiting = [off, a_job("same", priority=5, units={P5: 2}), a_job("small", priority=5), a_job("high", priority=6)]
    made = plan(waiting=waiting)
    assert started(made) == ["high", "small"]
    assert reason(made, "same") == BehindBackingOff("off", P5, at(60))


def test_equals_do_not_wait_behind_one_for_which_aws_had_instances_since_though_not_for_another():
    began = {"now": at(-60), "units": {P5: 2}}
    first, again = (refused(name, launched=True, **began) for name in ("first", "off"))
    waiting = [again, a_job("same", priority=5, units={P5: 3})]
    retried = lifecycle.start(first, {P5: 2}, (), at(1))
    assert started(plan(active=[retried], waiting=waiting, now=at(30))) == []
    work = lifecycle.observe(retried, an_observation(retried, secondary="Training"), at(40))
    assert started(plan(active=[work], waiting=waiting, now=at(50))) == ["off", "same"]


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("other", [{"warm_pool_key": "in another zone"}, {"keep_alive": True}], ids=str)
def test_equals_of_another_zone_or_quota_start_behind_those_that_wait(order, other):
    same, elsewhere = a_job("same", priority=5, entry_time=at(1)), a_job("other", priority=5, entry_time=at(2), **other)
    made = plan(waiting=[refused(), same, elsewhere], policy=Policy(order=order), now=at(3))
    assert started(made) == ["other"]
    assert reason(made, "same") == BehindBackingOff("off", P5, at(60))


def test_the_larger_of_two_in_back_off_waits_behind_the_smaller():
    made = plan(waiting=[refused("large", units={P5: 3}), refused("off", units={P5: 2}, now=at(-30))], now=at(1))
    assert reason(made, "large") == BackingOff(at(60), FULL)
    made = plan(waiting=[refused(units={P5: 2}), refused("slow", units={P5: 3}, now=at(-30))], now=at(1))
    assert reason(made, "slow") == BehindBackingOff("off", P5, at(60))


def test_where_it_would_not_fit_the_usual_rules_apply():
    wide = refused(units={P5: 8}, max_runtime=HOUR)
    holder = a_running_job("holder", priority=9, units={P5: 4}, max_runtime=HOUR)
    quick, slow = (
        a_job(name, priority=-2, max_runtime=run, preemptible=False)
        for name, run in (("quick", HOUR / 2), ("slow", 9 * HOUR))
    )
    made = plan(active=[holder], waiting=[wide, quick, slow])
    assert started(made) == ["quick"]
    assert isinstance(reason(made, "off"), BackingOff)


def test_other_pools_stay_open():
    pools = pools_of(a_pool(cap=8), a_pool(G5, 8))
    assert started(plan(pools=pools, waiting=[refused(), a_job("low", priority=-2, units={G5: 1})])) == ["low"]


def test_what_is_held_for_a_lower_priority_does_not_let_it_pass():
    held = lifecycle.reserve(a_job("low", priority=-2), Reservation({P5: 1}, at(600)))
    assert started(plan(waiting=[refused(), held])) == []


def test_jobs_that_back_off_for_another_reason_hold_no_job_back():
    assert started(plan(waiting=[refused(reason=f"{NOT_PERMITTED}no"), a_job("low", priority=-2)])) == ["low"]


def test_owners_of_other_shares_start():
    shares = {name: Share(name=name, nominal={P5: 4}) for name in ("vision", "speech")}
    waiting = [refused(share="vision"), a_job("low", priority=-2, share="speech")]
    assert started(plan(policy=Policy(shares=shares), waiting=waiting)) == ["low"]


def test_units_that_became_free_since_its_last_start_wake_it():
    job = refused(now=NOW)
    assert started(plan(waiting=[job], freed={P5: at(1)}, now=at(2))) == ["off"]
    assert started(plan(waiting=[job], freed={P5: at(0)}, now=at(2))) == []
    assert started(plan(waiting=[job], freed={G5: at(1)}, now=at(2))) == []
    raised = replace(a_pool(cap=8), raised_at=at(1))
    assert started(plan(waiting=[job], pools=pools_of(raised), now=at(2))) == ["off"]


def test_a_job_whose_training_job_got_no_instances_is_followed_only_once_it_has_some():
    again, low = refused(launched=True, now=at(-60)), a_job("low", priority=-2)
    made = plan(waiting=[again, low], now=at(1))
    assert started(made) == ["off"]
    under_way = (
        "waits behind off, which goes first and is being started again: "
        "SageMaker had no capacity for it in ml.p5.48xlarge"
    )
    assert reason(made, "low").message() == under_way
    retried = lifecycle.start(again, {P5: 1}, (), at(1))
    made = plan(active=[retried], waiting=[low], now=at(2))
    assert reason(made, "low").message() == under_way
    seen = lifecycle.mark_launched(replace(retried, past=()))
    assert started(plan(active=[seen], waiting=[low], now=at(2))) == ["low"]


def test_a_reported_quota_bounds_the_pool_until_it_lapses():
    holder, big = a_running_job("holder", priority=9, units={P5: 2}), a_job("big", units={P5: 3})
    made = plan(quota=3, active=[holder], waiting=[a_job("b", units={P5: 2}), big])
    assert reason(made, "b") == WaitsForCapacity(P5, 2, 1, reason(made, "b").expected, quota=3)
    assert f"; the account's quota of 3 x {P5} is below the pool's cap" in reason(made, "b").message()
    assert started(plan(quota=3, active=[holder], waiting=[big], now=at(3_600))) == ["big"]


def test_a_quota_too_small_for_a_job_is_its_reason():
    made = plan(quota=2, waiting=[a_job("big", priority=9, units={P5: 3}), a_job("low"), a_job("huge", units={P5: 9})])
    assert started(made) == ["low"]
    assert reason(made, "big") == QuotaTooSmall(P5, 3, 2, at(3_600))
    assert reason(made, "huge") == CanNeverFit(P5, 9, 2)
    assert made.recheck_at == at(3_600)


def test_a_quota_above_the_cap_changes_nothing():
    assert started(plan(quota=9, waiting=[a_job("all", units={P5: 8})])) == ["all"]


@pytest.mark.parametrize(
    ("quota", "limit", "expected"),
    [
        (f"{P5} for training job usage", 2, (P5, 2)),
        (f"{P5} for spot training job usage", 2, (f"{P5}.spot", 2)),
        (f"{P5} for training warm pool usage", 2, None),
        ("Longest run time for a training job", 2, None),
        (f"{P5} for training job usage", None, None),
        (None, None, None),
    ],
)
def test_only_quotas_of_instances_of_one_type_bound_pools(quota, limit, expected):
    found = reported_quota(AccountLimitReached("full", quota, limit), NOW)
    assert found == (None if expected is None else (expected[0], ReportedQuota(expected[1], NOW)))


def test_a_larger_quota_of_service_quotas_ends_a_bound():
    reported = {P5: ReportedQuota(2, NOW), G5: ReportedQuota(2, NOW)}
    assert without_larger(reported, {P5: 4, G5: 2}) == {G5: ReportedQuota(2, NOW)}


class TestWhatIsRecordedAsFreed:
    pools = pools_of(a_pool(cap=8))

    def freed(self, before, after):
        return booked(Records(), before, after, Policy(), self.pools).freed

    def test_the_end_of_an_attempt_at_the_time_at_which_the_queue_knows(self):
        job = a_running_job("a")

        ended = lifecycle.observe(job, an_observation(job, status=Status.COMPLETED), at(30))
        assert self.freed(job, ended) == {P5: at(30)}

    def test_not_what_a_refused_start_never_had(self):
        job = a_starting_job("a", demand=a_demand({P5: 2}))
        assert self.freed(job, lifecycle.requeue_unlaunched(job, at(5), FULL)) == {}


class TestRefusedKinds:
    """Jobs like one that AWS refused to start: at most two are tried a minute, and none delays another job."""

    LAST: ClassVar = {kind_of(a_job("first")): Refusal("first", NOW)}
    OTHER: ClassVar = {"submitted_by": "bob"}

    def test_they_wait_for_a_minute_and_others_start(self):
        waiting = [a_job("like", priority=5), a_job("other", **self.OTHER)]
        made = plan(waiting=waiting, refusals=self.LAST, now=at(30))
        assert started(made) == ["other"]
        assert reason(made, "like") == KindRefused("first", at(60))
        assert made.recheck_at == at(60)

    def test_then_one_that_was_refused_and_one_that_was_not_start(self):
        denied = [refused(f"denied{n}", priority=0, reason=f"{NOT_PERMITTED}iam:PassRole") for n in range(2)]
        waiting = [*denied, a_job("like0"), a_job("like1")]
        made = plan(waiting=waiting, refusals=self.LAST, now=at(60))
        assert started(made) == ["denied0", "like0"]
        assert reason(made, "denied1") == reason(made, "like1") == KindRefused("first", at(120))

    def test_the_job_that_was_refused_last_is_tried_when_its_own_back_off_ends(self):
        denied = refused("first", priority=0, reason=f"{NOT_PERMITTED}iam:PassRole").changed(retry_at=at(20))
        assert started(plan(waiting=[denied], refusals=self.LAST, now=at(20))) == ["first"]

    def test_they_neither_preempt_nor_reserve_nor_block(self):
        running = a_running_job("low", units={P5: 6}, **self.OTHER)
        waiting = [a_job("like", units={P5: 4}, priority=5), a_job("small", units={P5: 2}, **self.OTHER)]
        made = plan(active=[running], waiting=waiting, refusals=self.LAST, now=at(60))
        assert (started(made), list(made.preemptions), list(made.reservations)) == (["small"], [], [])
        assert reason(made, "like") == KindRefused("first", at(120))

    def test_one_whose_units_are_being_freed_already_starts_on_them(self):
        hold = Reservation({P5: 4}, at(600))
        made = plan(waiting=[a_job("like", units={P5: 4}, reservation=hold)], refusals=self.LAST, now=at(5))
        assert started(made) == ["like"]

    def test_an_accepted_start_ends_it(self):
        accepted = a_running_job("accepted", now=at(10))
        made = plan(active=[accepted], waiting=[a_job("like")], refusals=self.LAST, now=at(20))
        assert started(made) == ["like"]

    def test_limits_and_pools_hold_for_the_one_that_is_tried(self):
        shares = {"default": Share(name="default", max_per_user={P5: 1})}
        waiting = [a_job("like", units={P5: 2})]
        made = plan(waiting=waiting, refusals=self.LAST, now=at(60), policy=Policy(shares=shares))
        assert started(made) == []
