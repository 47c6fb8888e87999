"""Entitlements, turns and preemption between shares. Tests for a defect that Kueue had name its issue."""

from __future__ import annotations

import json
import random
import re
import time
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest

from builders import (
    G5,
    NOW,
    P5,
    a_demand,
    a_job,
    a_launched_job,
    a_pool,
    a_preempting_job,
    a_reservation,
    a_running_job,
    a_snapshot,
    at,
)
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.policy.document import policy_of
from trainmaster.domain.policy.settings import (
    DEFAULT_SHARE,
    Lending,
    Order,
    Policy,
    Preemption,
    PreemptionOverrides,
    Share,
)
from trainmaster.domain.reasons.capacity import WaitsForRelease
from trainmaster.domain.reasons.rules import ShareFull
from trainmaster.domain.records import Records
from trainmaster.domain.shares.entitlement import Bound, Entitlements
from trainmaster.domain.shares.usage import Account, Usage
from trainmaster.planner.orders import order_of
from trainmaster.planner.schedule import schedule
from trainmaster.planner.sharing.shares import Shares
from trainmaster.planner.sharing.turns import turns

HOUR = 3600


def a_share(name="vision", nominal=None, **fields) -> Share:
    return Share(name=name, nominal={} if nominal is None else {P5: nominal}, **fields)


def a_policy(*shares: Share, **fields) -> Policy:
    return Policy(shares={share.name: share for share in shares}, **fields)


def shares_of(*shares: Share, cap=8, active=(), waiting=(), external=None, **policy) -> Shares:
    return Shares(snapshot_of(*shares, cap=cap, active=active, waiting=waiting, external=external, **policy), NOW)


def snapshot_of(*shares: Share, cap=8, usage=None, **fields):
    keys = ("active", "waiting", "external")
    snapshot = a_snapshot(
        pools=[a_pool(P5, cap), a_pool(G5, 16)],
        policy=a_policy(*shares, **{k: v for k, v in fields.items() if k not in keys}),
        **{key: fields[key] for key in keys if fields.get(key)},
    )
    return replace(snapshot, records=Records(usage=usage or Usage()))


def old(name, share, count=1, *, since=HOUR, **fields):
    return a_running_job(name, share=share, units={P5: count}, now=at(-since), **fields)


def new(name, share="vision", count=1, **fields):
    return a_job(name, share=share, units={P5: count}, **fields)


def names(jobs):
    return [job.name for job in jobs]


def plan_of(*shares, **fields):
    return schedule(snapshot_of(*shares, **fields), NOW, random.Random(1))


def started(plan):
    return [start.job.name for start in plan.starts]


def victims(plan):
    return {preempt.job.name: sorted(names(preempt.victims)) for preempt in plan.preemptions}


def reasons(plan):
    return {wait.job.name: wait.reason for wait in plan.waits}


POOLS = {P5: a_pool(P5, 8), G5: a_pool(G5, 4)}


class TestEntitlements:
    def test_the_default_share_owns_what_no_other_does(self):
        policy = a_policy(a_share("vision", 3), a_share("speech", 1))
        rest = Entitlements(policy, POOLS).of(DEFAULT_SHARE)
        assert rest.nominal == {P5: 4, G5: 4}
        assert rest.share.lending is Lending.LEND_AND_BORROW

    def test_jobs_from_outside_take_of_that_first_and_it_is_never_less_than_nothing(self):
        policy = a_policy(a_share("vision", 6))
        assert Entitlements(policy, POOLS, {P5: 1}).of(DEFAULT_SHARE).own(P5) == 1
        assert Entitlements(policy, POOLS, {P5: 5}).of(DEFAULT_SHARE).own(P5) == 0

    def test_a_configured_default_share_owns_what_its_settings_say(self):
        policy = a_policy(a_share(DEFAULT_SHARE, 1, lending=Lending.RESERVE))
        assert Entitlements(policy, POOLS).of(DEFAULT_SHARE).bound(P5) == Bound(1, "own units")

    def test_an_unknown_share_owns_nothing_and_borrows_without_bound(self):
        stranger = Entitlements(a_policy(a_share("vision", 3)), POOLS).of("stranger")
        assert stranger.own(P5) == 0
        assert stranger.bound(P5) is None
        assert stranger.share.weight == 1

    @pytest.mark.parametrize(
        ("share", "kept", "bound"),
        [
            (a_share(nominal=4, lending=Lending.RESERVE), 4, Bound(4, "own units")),
            (a_share(nominal=4, lending=Lending.LEND), 0, Bound(4, "own units")),
            (a_share(nominal=4, lending=Lending.LEND, lends={P5: 1}), 3, Bound(4, "own units")),
            (a_share(nominal=4, lends={P5: 9}), 0, None),
            (a_share(nominal=4, borrows={P5: 2}), 0, Bound(6, "borrow limit")),
            (a_share(nominal=4, borrows={P5: 2}, max={P5: 5}), 0, Bound(5, "cap")),
            (a_share(nominal=4, borrows={G5: 2}), 0, None),
            (a_share(nominal=4, lending=Lending.RESERVE, max={P5: 2}), 2, Bound(2, "cap")),
        ],
    )
    def test_what_is_kept_from_others_and_how_far_a_share_may_go(self, share, kept, bound):
        entitlement = Entitlements(a_policy(share), POOLS).of("vision")
        assert (entitlement.kept(P5), entitlement.bound(P5)) == (kept, bound)

    def test_shares_may_own_more_than_there_is(self):
        entitlements = Entitlements(a_policy(a_share("vision", 6), a_share("speech", 5)), POOLS, {P5: 1})
        assert (entitlements.overdrawn(P5), entitlements.overdrawn(G5)) == (4, 0)


class TestRefusal:
    def test_a_share_that_does_not_borrow_has_its_own_and_no_more(self):
        shares = shares_of(a_share(nominal=4, lending=Lending.LEND), active=[old("a", "vision", 3)])
        assert shares.refusal(new("b"), {P5: 1}) is None
        reason = shares.refusal(new("b"), {P5: 2})
        assert reason == ShareFull("vision", P5, 4, "own units")
        assert reason.message() == f"share vision may have 4 x {P5}, its own units"

    def test_a_borrower_stops_at_its_limit_and_at_its_cap(self):
        shares = shares_of(a_share(nominal=1, borrows={P5: 2}), active=[old("a", "vision", 3)])
        assert shares.refusal(new("b"), {P5: 1}) == ShareFull("vision", P5, 3, "borrow limit")
        shares = shares_of(a_share(nominal=1, max={P5: 3}), active=[old("a", "vision", 3)])
        assert shares.refusal(new("b"), {P5: 1}) == ShareFull("vision", P5, 3, "cap")

    def test_units_that_are_being_given_back_count_until_they_are_back(self):
        stopping = a_preempting_job("a", share="vision", units={P5: 3})
        shares = shares_of(a_share(nominal=1, max={P5: 3}), active=[stopping])
        assert shares.refusal(new("b"), {P5: 1}) == ShareFull("vision", P5, 3, "cap")
        assert shares.excess(new("b"), {P5: 1}) == {}

    def test_units_that_were_taken_count_once_and_not_for_the_beneficiary(self):
        shares = shares_of(a_share(nominal=1, max={P5: 3}))
        shares.take(new("a"), {P5: 1})
        shares.take(new("a"), {P5: 2})
        assert shares.refusal(new("b"), {P5: 1}) is None
        assert shares.refusal(new("b"), {P5: 2}) is not None
        assert shares.refusal(new("a"), {P5: 3}) is None
        shares.release(new("a"))
        assert shares.refusal(new("b"), {P5: 3}) is None

    def test_a_share_without_bounds_and_a_queue_without_shares_refuse_no_job(self):
        assert shares_of(a_share(nominal=0)).refusal(new("b"), {P5: 99}) is None
        assert shares_of(active=[old("a", "x", 8)]).refusal(new("b", "x"), {P5: 99}) is None

    def test_held_units_count_for_equals_but_yield_to_better_jobs_of_the_share(self):
        holder = replace(new("holder", count=3), reservation=a_reservation({P5: 3}))
        shares = shares_of(a_share(nominal=1, max={P5: 3}), waiting=[holder])
        assert shares.refusal(new("equal"), {P5: 1}) == ShareFull("vision", P5, 3, "cap")
        assert shares.refusal(new("better", priority=1), {P5: 1}) is None
        assert shares.refusal(holder, {P5: 3}) is None
        shares.release(holder)
        shares.take(holder, {P5: 3})
        assert shares.refusal(new("better", priority=1), {P5: 1}) is not None, "it has started"

    def test_the_excess_is_what_its_own_jobs_must_give_back(self):
        shares = shares_of(a_share(nominal=4, lending=Lending.LEND), active=[old("a", "vision", 3)])
        assert shares.excess(new("b"), {P5: 1}) == {}
        assert shares.excess(new("b"), {P5: 3}) == {P5: 2}
        assert shares.excess(new("b"), {P5: 5}) is None
        lowered = shares_of(a_share(nominal=2, lending=Lending.LEND), active=[old("a", "vision", 3)])
        assert lowered.excess(new("b"), {P5: 1}) is None, "what runs beyond a lowered bound runs on"


class TestWithheld:
    def test_reserved_units_are_kept_from_all_others_and_lent_ones_from_none(self):
        shares = shares_of(
            a_share("vision", 3, lending=Lending.RESERVE), a_share("speech", 2), active=[old("a", "vision", 1)]
        )
        assert shares.withheld(new("b", "speech"), P5) == 2
        assert shares.withheld(new("c", "vision"), P5) == 0
        assert shares.withheld(new("b", "speech"), G5) == 0

    def test_only_so_much_is_lent_as_a_share_lends(self):
        shares = shares_of(a_share("vision", 4, lends={P5: 1}), a_share("speech", 2))
        assert shares.withheld(new("b", "speech"), P5) == 3
        shares.take(new("a", "vision", 2), {P5: 2})
        assert shares.withheld(new("b", "speech"), P5) == 1

    def test_units_that_the_owner_is_giving_back_are_kept_once_they_are_idle(self):
        stopping = a_preempting_job("a", share="vision", units={P5: 2})
        shares = shares_of(a_share("vision", 3, lending=Lending.RESERVE), active=[stopping])
        assert shares.withheld(new("b", "speech"), P5) == 1
        assert shares.withheld(new("b", "speech"), P5, soon=True) == 3

    def test_what_is_promised_to_a_waiting_owner_is_kept_until_it_starts(self):
        """Else its idle units went to others, and the owner would wait for a job that stops instead."""
        shares = shares_of(a_share("vision", 3, lending=Lending.RESERVE))
        shares.promise(new("a", "vision", 2), {P5: 2})
        assert shares.withheld(new("b", "speech"), P5) == 3
        assert shares.withheld(new("b", "speech"), P5, soon=True) == 1, "the promise itself is a claim on the pool"
        shares.take(new("a", "vision", 2), {P5: 2})
        assert shares.withheld(new("b", "speech"), P5) == 1

    def test_owners_of_more_than_there_is_do_not_keep_each_other_from_it(self):
        both = (a_share("vision", 4, lending=Lending.RESERVE), a_share("speech", 4, lending=Lending.RESERVE))
        shares = shares_of(*both, cap=4)
        assert shares.withheld(new("a", "vision"), P5) == 0
        assert shares.withheld(new("b", "stranger"), P5) == 8

    def test_without_shares_nothing_is_withheld(self):
        assert shares_of().withheld(new("a"), P5) == 0


class TestMayTake:
    """Whose units a job may have; `outranks` is said by the caller."""

    owner, borrower = a_share("vision", 4), a_share("speech", 4)

    def test_inside_a_share_and_without_shares_standing_decides_alone(self):
        for shares in (shares_of(self.owner, self.borrower), shares_of()):
            victim = old("v", "vision", 4)
            assert shares.may_preempt(new("a"), {P5: 1}, victim, (), outranks=True)
            assert not shares.may_preempt(new("a"), {P5: 1}, victim, (), outranks=False)
        assert not shares_of().may_preempt(new("a"), {P5: 1}, old("v", "speech"), (), outranks=False)

    def test_an_owner_takes_from_a_borrower_whatever_the_priorities(self):
        borrowed = [old("b1", "speech", 4, since=9), old("b2", "speech", 4, since=1, priority=0)]
        shares = shares_of(self.owner, self.borrower, active=borrowed)
        assert shares.may_preempt(new("a", priority=-5), {P5: 4}, borrowed[1], (), outranks=False)

    def test_a_borrower_takes_from_no_other_share(self):
        held = [old("v", "vision", 4), old("b", "speech", 6)]
        shares = shares_of(self.owner, self.borrower, cap=10, active=held)
        assert not shares.may_preempt(new("a", priority=9), {P5: 1}, held[1], (), outranks=True)

    def test_a_share_within_its_own_loses_nothing(self):
        held = [old("b", "speech", 4), old("d", DEFAULT_SHARE, 4)]
        shares = shares_of(self.owner, self.borrower, cap=8, active=held)
        assert not shares.may_preempt(new("a", priority=9), {P5: 1}, held[0], (), outranks=True)
        assert shares.may_preempt(new("a", priority=-9), {P5: 1}, held[1], (), outranks=False)

    def test_a_share_loses_no_more_than_brings_it_back_to_its_own(self):
        held = [old(f"b{i}", "speech", 1, since=100 - i) for i in range(6)]
        shares = shares_of(self.owner, self.borrower, active=held)
        job = new("a", count=4)
        assert shares.may_preempt(job, {P5: 4}, held[5], (), outranks=False)
        assert shares.may_preempt(job, {P5: 4}, held[4], (held[5],), outranks=False)
        assert not shares.may_preempt(job, {P5: 4}, held[4], (held[5], held[4]), outranks=False)

    def test_its_best_jobs_that_its_own_has_room_for_are_safe(self):
        held = [old("large", "speech", 4, since=9), old("late", "speech", 1), old("better", "speech", 1, priority=1)]
        shares = shares_of(self.owner, self.borrower, active=held)
        takes = {v.name: shares.may_preempt(new("a"), {P5: 1}, v, (), outranks=True) for v in held}
        assert takes == {"large": True, "late": False, "better": False}, "beside those two there is no room for four"

    def test_a_non_preemptible_job_takes_of_what_its_share_owns_first(self):
        held = [old("fixed", "speech", 4, preemptible=False), old("other", "speech", 1, priority=5)]
        shares = shares_of(self.owner, self.borrower, active=held)
        assert shares.may_preempt(new("a"), {P5: 1}, held[1], (), outranks=False)

    def test_so_does_one_that_was_preempted_as_often_as_a_job_may_be(self):
        tired = replace(
            old("tired", "speech", 4),
            past=(replace(old("x", "x").attempt, outcome=Outcome.PREEMPTED),),
            preemption_overrides=PreemptionOverrides(max_preemptions=1),
        )
        held = [tired, old("other", "speech", 1, priority=5)]
        shares = shares_of(self.owner, self.borrower, active=held)
        assert shares.may_preempt(new("a"), {P5: 1}, held[1], (), outranks=False)

    def test_jobs_of_a_share_whose_own_was_lowered_run_on_until_an_owner_wants_them(self):
        held = [old("b", "speech", 4)]
        lowered = shares_of(self.owner, a_share("speech", 0), active=held)
        assert lowered.may_preempt(new("a", count=4), {P5: 4}, held[0], (), outranks=False)
        plan = plan_of(self.owner, a_share("speech", 0), active=held)
        assert plan.decisions == ()

    def test_units_that_are_missing_nowhere_are_no_reason_to_take(self):
        both = a_running_job("b", share="speech", units={P5: 1, G5: 2})
        shares = shares_of(
            Share(name="vision", nominal={P5: 4, G5: 4}), Share(name="speech", nominal={P5: 4}), active=[both]
        )
        job = a_job("a", share="vision", units={P5: 1, G5: 1})
        units = job.demand.alternatives[0]
        assert shares.may_preempt(job, units, both, (), outranks=False, missing={G5: 1})
        assert not shares.may_preempt(job, units, both, (), outranks=True, missing={P5: 1})

    def test_who_borrows_anywhere_takes_nothing_anywhere(self):
        """Kueue reclaims only without borrowing; else three shares that each borrow from the next chase each other."""
        pools = ("a", "b", "c")
        policy = a_policy(*(Share(name=name, nominal={pool: 1}) for name, pool in zip("xyz", pools, strict=True)))
        needs = {"x": {"a": 1, "b": 1}, "y": {"b": 1, "c": 1}, "z": {"c": 1, "a": 1}}
        for holder, taker in (("x", "y"), ("y", "z"), ("z", "x")):
            victim = a_running_job("victim", share=holder, units=needs[holder])
            snapshot = a_snapshot(pools=[a_pool(pool, 1) for pool in pools], active=[victim], policy=policy)
            job = a_job("taker", share=taker, units=needs[taker])
            assert not Shares(snapshot, NOW).may_preempt(job, needs[taker], victim, (), outranks=True)

    def test_who_borrows_in_another_pool_displaces_no_job_that_its_shares_own_has_room_for(self):
        owns = Share(name="vision", nominal={G5: 4})
        held = [
            a_running_job("safe", share="vision", units={G5: 3}, now=at(-HOUR)),
            a_running_job("late", share="vision", units={G5: 3}),
            a_running_job("both", share="vision", units={G5: 1, P5: 1}),
        ]
        shares = shares_of(owns, self.borrower, active=held)
        borrows = a_job("a", share="vision", units={G5: 1, P5: 1}, priority=1)
        within = a_job("b", share="vision", units={G5: 1}, priority=1)
        for job, allowed in ((borrows, [False, True, True]), (within, [True, True, True])):
            units = job.demand.alternatives[0]
            assert [shares.may_preempt(job, units, v, (), outranks=True, missing={G5: 1}) for v in held] == allowed

    def test_own_jobs_that_step_aside_make_room_in_what_the_share_owns(self):
        held = [old("own", "vision", 4), old("b", "speech", 6)]
        shares = shares_of(self.owner, self.borrower, cap=10, active=held)
        job = new("a", count=2, priority=1)
        assert not shares.may_preempt(job, {P5: 2}, held[1], (), outranks=True)
        assert shares.may_preempt(job, {P5: 2}, held[1], (held[0],), outranks=True)


class TestTurns:
    def considered(self, snapshot, *, starts=True):
        shares, order = Shares(snapshot, NOW), []
        for job in turns(snapshot.waiting, shares):
            order.append(job.name)
            if starts:
                shares.take(job, job.demand.alternatives[0])
        return order

    def test_without_shares_the_order_given_is_the_order(self):
        waiting = [new("a", "x"), new("b", "y", priority=1), new("c", "x")]
        assert self.considered(snapshot_of(waiting=waiting)) == ["b", "a", "c"]

    def test_owners_go_before_borrowers_of_higher_priority_and_among_each_other_in_order(self):
        waiting = [new("borrows", "speech", priority=9), new("later", "vision"), new("first", "vision", priority=1)]
        snapshot = snapshot_of(a_share("vision", 2), a_share("speech", 0), waiting=waiting)
        assert self.considered(snapshot) == ["first", "later", "borrows"]

    def test_a_share_is_an_owner_only_as_far_as_its_own_goes(self):
        waiting = [*(new(f"v{i}", "vision") for i in range(4)), new("s", "speech", priority=-1)]
        snapshot = snapshot_of(a_share("vision", 2), a_share("speech", 2), waiting=waiting)
        assert self.considered(snapshot) == ["v0", "v1", "s", "v2", "v3"]

    def test_borrowers_go_by_their_dominant_share(self):
        """Two pools, of 9 and 18: the example of Ghodsi et al. (NSDI 2011, figure 3), in whole units."""
        a = [a_job(f"a{i}", share="a", units={"cpu": 1, "ram": 4}) for i in range(4)]
        b = [a_job(f"b{i}", share="b", units={"cpu": 3, "ram": 1}) for i in range(3)]
        policy = a_policy(a_share("a"), a_share("b"), Share(name=DEFAULT_SHARE))
        snapshot = a_snapshot(pools=[a_pool("cpu", 9), a_pool("ram", 18)], waiting=[*a, *b], policy=policy)
        first_five = sorted(self.considered(snapshot)[:5])
        assert first_five == ["a0", "a1", "a2", "b0", "b1"], "three of a's and two of b's fill the pools"

    def test_a_weight_counts_as_so_many_shares(self):
        waiting = [*(new(f"h{i}", "heavy") for i in range(6)), *(new(f"l{i}", "light") for i in range(3))]
        policy = (a_share("heavy", weight=2), a_share("light"), a_share(DEFAULT_SHARE))
        order = self.considered(snapshot_of(*policy, cap=9, waiting=waiting))
        assert sorted(order[:6]) == ["h0", "h1", "h2", "h3", "l0", "l1"]

    def test_shares_of_no_weight_borrow_last_and_among_each_other_by_what_they_have(self):
        waiting = [new("z1", "zero"), new("z2", "zero"), new("n", "nil"), new("l1", "light"), new("l2", "light")]
        policy = (a_share("zero", weight=0), a_share("nil", weight=0), a_share("light"), a_share(DEFAULT_SHARE))
        assert self.considered(snapshot_of(*policy, waiting=waiting)) == ["l1", "l2", "n", "z1", "z2"]

    def test_a_share_of_no_weight_has_its_own_like_any_other(self):
        """Kueue #4961: its own units were taken from it, and it could not take them back."""
        waiting = [new("z", "zero"), new("l", "light")]
        assert self.considered(snapshot_of(a_share("zero", 1, weight=0), a_share("light", 0), waiting=waiting)) == [
            "z",
            "l",
        ]

    def test_a_blocked_borrower_is_not_passed_by_its_shares_owners_nor_costs_them_their_turn(self):
        waiting = [new("large", "vision", 6, priority=1), new("small", "vision"), new("other", "speech", 1, priority=2)]
        snapshot = snapshot_of(a_share("vision", 2), a_share("speech", 0), waiting=waiting)
        assert self.considered(snapshot, starts=False) == ["large", "small", "other"]

    def test_a_job_that_has_waited_beyond_patience_goes_before_other_borrowers(self):
        patient = new("old", "speech", 4, entry_time=NOW - timedelta(days=29))
        waiting = [new("n", "vision"), patient]
        snapshot = snapshot_of(a_share("vision"), a_share("speech"), a_share(DEFAULT_SHARE), waiting=waiting)
        assert self.considered(snapshot) == ["old", "n"]

    def test_a_share_that_gives_units_back_may_be_an_owner_again(self):
        held, shares_ = [old("h", "vision", 2)], (a_share("vision", 2), a_share("speech", 0))
        waiting = [new("v", "vision"), new("s1", "speech", priority=2), new("s2", "speech", priority=1)]
        snapshot = snapshot_of(*shares_, active=held, waiting=waiting)
        shares, order = Shares(snapshot, NOW), []
        for job in turns(snapshot.waiting, shares):
            order.append(job.name)
            if job.name == "s1":
                shares.preempt(held)
        assert order == ["s1", "v", "s2"]

    def test_a_holder_is_not_counted_against_itself(self):
        holder = replace(new("holder", "vision", 2), reservation=a_reservation({P5: 2}))
        waiting = [holder, new("s", "speech", priority=9)]
        snapshot = snapshot_of(a_share("vision", 2), a_share("speech", 0), waiting=waiting)
        assert self.considered(snapshot) == ["holder", "s"]

    def test_a_job_that_can_run_in_several_pools_is_an_owner_where_any_is_its_own(self):
        either = a_job("e", share="vision", demand=a_demand({G5: 1}, {P5: 1}))
        rest = Share(name=DEFAULT_SHARE)
        snapshot = snapshot_of(a_share("vision", 1), rest, waiting=[new("s", "speech", priority=3), either])
        assert self.considered(snapshot) == ["e", "s"]

    def test_a_pool_that_is_gone_puts_a_borrower_last(self):
        gone = a_job("g", share="vision", units={"gone": 1}, priority=9)
        snapshot = snapshot_of(a_share("vision"), a_share(DEFAULT_SHARE), waiting=[gone, new("s", "speech")])
        assert self.considered(snapshot) == ["s", "g"]

    def test_ten_thousand_waiting_jobs_of_thirty_shares_have_their_turns_in_a_second(self):
        draw = random.Random(1)
        shares_ = [a_share(f"s{i}", 10, borrows={P5: 100}) for i in range(30)]
        waiting = [
            new(f"w{i}", f"s{draw.randrange(30)}", draw.randrange(1, 6), priority=draw.randrange(3))
            for i in range(10_000)
        ]
        snapshot = snapshot_of(*shares_, cap=400, waiting=waiting)
        begin = time.process_time()
        assert len(self.considered(snapshot)) == 10_000
        assert time.process_time() - begin < 1


class TestFair:
    @staticmethod
    def considered(snapshot, count=None):
        shares, order = Shares(snapshot, NOW), []
        for job in turns(snapshot.waiting, shares, order_of(snapshot.policy).usage(snapshot, NOW)):
            order.append(job.name)
            shares.take(job, job.demand.alternatives[0])
        return order[:count]

    @staticmethod
    def used(**hours):
        return Usage({name: Account(value * HOUR, NOW) for name, value in hours.items()})

    def test_the_share_that_has_used_least_goes_first_inside_a_priority_without_any_configured(self):
        waiting = [new("a", "much"), new("b", "little"), new("c", "much", priority=1)]
        snapshot = snapshot_of(waiting=waiting, order=Order.FAIR, usage=self.used(much=100, little=50))
        assert self.considered(snapshot) == ["c", "b", "a"]

    def test_past_usage_fades_and_what_runs_counts(self):
        waiting = [new("a", "past"), new("b", "present")]
        past = Usage({"past": Account(100 * HOUR, NOW - timedelta(days=14))})
        snapshot = snapshot_of(
            active=[old("x", "present", 1, since=4 * HOUR)], waiting=waiting, order=Order.FAIR, usage=past
        )
        assert self.considered(snapshot) == ["a", "b"], "25 GPU-hours are left of the past, 8 x 4 were used at present"

    def test_usage_is_divided_by_the_weight(self):
        waiting = [new("a", "heavy"), new("b", "light")]
        policy = (a_share("heavy", weight=4), a_share("light"), a_share(DEFAULT_SHARE))
        snapshot = snapshot_of(*policy, waiting=waiting, order=Order.FAIR, usage=self.used(heavy=300, light=100))
        assert self.considered(snapshot) == ["a", "b"]

    def test_no_weight_comes_last(self):
        waiting = [new("a", "zero"), new("b", "light")]
        policy = (a_share("zero", weight=0), a_share("light"), a_share(DEFAULT_SHARE))
        snapshot = snapshot_of(*policy, waiting=waiting, order=Order.FAIR, usage=self.used(light=100))
        assert self.considered(snapshot) == ["b", "a"]

    def test_one_pass_does_not_give_everything_to_one_share(self):
        waiting = [new(f"{share}{i}", share) for share in "ab" for i in range(4)]
        snapshot = snapshot_of(waiting=waiting, order=Order.FAIR, usage=self.used(a=12))
        assert self.considered(snapshot) == ["b0", "b1", "a0", "b2", "a1", "b3", "a2", "a3"]

    def test_what_was_started_a_minute_ago_counts_like_what_is_started_now(self):
        waiting = [new("a", "a"), new("b", "b")]
        snapshot = snapshot_of(
            active=[old("x", "b", 2, since=60)], waiting=waiting, order=Order.FAIR, usage=self.used(a=12)
        )
        assert self.considered(snapshot) == ["a", "b"], "b's 16 accelerators are charged an hour in advance"

    def test_owners_still_go_first(self):
        waiting = [new("a", "used", priority=0), new("b", "unused", priority=5)]
        policy = (a_share("used", 2), a_share("unused", 0))
        snapshot = snapshot_of(*policy, waiting=waiting, order=Order.FAIR, usage=self.used(used=1000))
        assert self.considered(snapshot) == ["a", "b"]

    def test_patience_goes_before_usage(self):
        waiting = [new("a", "used", entry_time=NOW - timedelta(days=29)), new("b", "unused")]
        snapshot = snapshot_of(waiting=waiting, order=Order.FAIR, usage=self.used(used=1000))
        assert self.considered(snapshot) == ["a", "b"]

    def test_equal_usage_goes_by_what_is_held_then_by_name(self):
        assert self.considered(snapshot_of(waiting=[new("1", "y"), new("2", "x")], order=Order.FAIR)) == ["2", "1"]


class TestPasses:
    """The same through `schedule`."""

    vision, speech = a_share("vision", 4), a_share("speech", 4)

    def test_idle_units_are_lent(self):
        plan = plan_of(self.vision, self.speech, waiting=[new(f"s{i}", "speech", 2) for i in range(4)])
        assert started(plan) == ["s0", "s1", "s2", "s3"]

    def test_reserved_ones_are_not(self):
        reserve = a_share("vision", 4, lending=Lending.RESERVE)
        plan = plan_of(reserve, self.speech, waiting=[new(f"s{i}", "speech", 2) for i in range(4)])
        assert started(plan) == ["s0", "s1"]

    def test_an_owner_gets_lent_units_back_in_one_pass_from_jobs_of_higher_priority(self):
        held = [old(f"s{i}", "speech", 2, since=100 - i, priority=9) for i in range(4)]
        plan = plan_of(self.vision, self.speech, active=held, waiting=[new("a", count=4)])
        assert victims(plan) == {"a": ["s2", "s3"]}

    def test_each_owner_gets_its_own_and_no_more(self):
        held = [old(f"s{i}", "speech", 1, since=100 - i, priority=9) for i in range(8)]
        plan = plan_of(self.vision, self.speech, active=held, waiting=[new(f"a{i}", count=2) for i in range(3)])
        assert victims(plan) == {"a0": ["s6", "s7"], "a1": ["s4", "s5"]}

    def test_a_borrower_of_the_highest_priority_displaces_no_job(self):
        held = [old("v", "vision", 4), old("s", "speech", 4)]
        plan = plan_of(self.vision, self.speech, active=held, waiting=[new("x", "stranger", priority=99)])
        assert not plan.preemptions
        assert not plan.starts

    def test_tenants_beyond_their_own_leave_the_rest_to_others_kueue_3779(self):
        """A share above its own takes nothing from one that owns nothing, so nothing is taken back in turn."""
        held = [old("big", "vision", 6), old("best-effort", "stranger", 1)]
        plan = plan_of(self.vision, self.speech, cap=7, active=held, waiting=[new("more")])
        assert not plan.preemptions

    def test_two_shares_of_no_weight_do_not_displace_each_other_kueue_6925(self):
        """Reported as #6774, too: weighted shares that are endless whatever is taken."""
        nothing = (a_share("a", 0, weight=0), a_share("b", 0, weight=0))
        held = [old("a1", "a", 4), old("b1", "b", 4)]
        waiting = [new("a2", "a", 2, priority=0), new("b2", "b", 2, priority=0)]
        plan = plan_of(*nothing, active=held, waiting=waiting)
        assert not plan.preemptions

    def test_jobs_that_own_in_one_pool_and_borrow_in_another_do_not_chase_each_other(self):
        """Found by search: `high` took `low` inside each of two shares, and each `low` took the other's `high` back."""
        shares_ = (
            Share(name="x", nominal={"a": 8, "b": 1}),
            Share(name="y", nominal={"b": 3}),
            Share(name="z", nominal={"b": 4}),
        )
        active = [
            a_running_job("y", share="y", units={"b": 2}, priority=1),
            a_running_job("low-x", share="x", units={"a": 3}, priority=1),
            a_running_job("high-z", share="z", units={"a": 4, "b": 3}, priority=2),
        ]
        waiting = [
            a_job("high-x", share="x", units={"a": 3, "b": 3}, priority=2),
            a_job("low-z", share="z", units={"b": 4}, priority=1),
        ]
        pools = [a_pool("a", 8), a_pool("b", 8)]
        snapshot = a_snapshot(pools=pools, active=active, waiting=waiting, policy=a_policy(*shares_))
        plan = schedule(snapshot, NOW, random.Random(1))
        assert not plan.preemptions, "high-x would borrow in b, and lose all to an owner there, low-x's place as well"
        assert not plan.starts

    def test_units_freed_for_an_owner_are_no_other_shares(self):
        owner = replace(new("a", count=4), reservation=a_reservation({P5: 4}))
        held = [old("s", "speech", 4)]
        plan = plan_of(self.vision, self.speech, active=held, waiting=[owner, new("x", "speech", 2, priority=9)])
        assert started(plan) == ["a"]

    def test_rules_against_thrashing_protect_borrowers_too(self):
        held = [old("s0", "speech", 4), old("s1", "speech", 4, since=60)]
        plan = plan_of(
            self.vision,
            self.speech,
            active=held,
            waiting=[new("a")],
            preemption=Preemption(min_runtime=timedelta(minutes=10)),
        )
        assert not plan.preemptions
        assert reasons(plan)["a"].message().startswith("cannot preempt s1 before")

    def test_an_owner_passes_what_borrowers_of_other_shares_are_reserved_for(self):
        held = [old("d", "stranger", 8)]
        waiting = [new("large", count=8, priority=9), new("own", count=1, priority=5), new("s", "speech", 2)]
        for order in (Order.BACKFILL, Order.FIFO):
            plan = plan_of(self.vision, self.speech, active=held, waiting=waiting, order=order)
            assert victims(plan) == {"s": ["d"]}, "vision's turn for its own comes with its large job, so after this"
            assert isinstance(reasons(plan)["own"], WaitsForRelease)

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("older", [0, 1800])
    def test_no_borrower_keeps_a_job_from_preempting_inside_its_own_quota(self, order, older):
        """The borrower is decided first, and expects units of `low` if that is the first to end."""
        shares_ = (a_share("vision", 3), a_share("speech", 1), a_share("text", 4))
        held = [
            old("low", "vision", 2, since=2 * HOUR + older, priority=50),
            old("fixed", "vision", priority=30, preemptible=False),
            old("own", "speech", since=2 * HOUR, priority=5),
            old("t", "text", 4, since=2 * HOUR),
        ]
        waiting = [new("high", count=2, priority=80), new("borrower", "speech", priority=5)]
        plan = plan_of(*shares_, active=held, waiting=waiting, order=order, patience=timedelta(days=60))
        assert victims(plan)["high"] == ["low"]

    def test_only_own_jobs_that_it_may_never_preempt_count_against_its_quota(self):
        """Then the borrower of the smaller dominant share goes first, and gets the idle unit."""
        waiting = [new("high", count=2, priority=8), new("borrower", "speech")]
        rules = {"cap": 3, "waiting": waiting, "preemption": Preemption(min_runtime=timedelta(minutes=10))}
        best = old("best", "vision", priority=9)
        for fields_ in ({"priority": 8}, {"preemptible": False}):
            held = [old("low", "vision", **fields_), best]
            assert started(plan_of(a_share("vision", 3), active=held, **rules)) == ["borrower"]
        plan = plan_of(a_share("vision", 3), active=[old("low", "vision"), best], **rules)
        assert (started(plan), victims(plan)) == ([], {"high": ["low"]})
        plan = plan_of(a_share("vision", 3), active=[old("low", "vision", since=60), best], **rules)
        assert started(plan) == []
        assert reasons(plan)["high"].message().startswith("cannot preempt low before")

    def test_an_owner_goes_before_one_that_has_to_preempt_jobs_of_its_share(self):
        """Else `high` would take the idle unit, and `own` preempt `low` in its stead."""
        waiting = [new("high", priority=9), new("own", "speech")]
        held = [old("low", "vision", 3)]
        plan = plan_of(a_share("vision", 3), a_share("speech", 1), cap=4, active=held, waiting=waiting)
        assert (started(plan), victims(plan)) == (["own"], {"high": ["low"]})

    def test_a_borrower_goes_before_the_owners_behind_it_but_not_before_owners_of_other_shares(self):
        waiting = [new("large", "speech", 2, priority=9), new("small", "speech", priority=5), new("own", count=3)]
        plan = plan_of(a_share("vision", 3), a_share("speech", 1), cap=4, waiting=waiting)
        assert started(plan) == ["own", "small"]

    def test_an_owner_by_preemption_does_not_wait_for_what_a_pool_that_was_made_smaller_lacks(self):
        """Both shares reserve what they own, together more than there is."""
        both = (a_share("vision", 3, lending=Lending.RESERVE), a_share("speech", 3, lending=Lending.RESERVE))
        held = [old("low", "vision", 2), old("s", "speech", 2)]
        plan = plan_of(*both, cap=4, active=held, waiting=[new("high", count=2, priority=1)])
        assert victims(plan) == {"high": ["low"]}

    def test_reserved_units_are_not_given_to_others_while_their_owner_waits_for_more(self):
        """It waits for another pool, in which a job is stopping."""
        owns = Share(name="vision", nominal={P5: 1, G5: 1}, lending=Lending.RESERVE)
        stopping = a_preempting_job("g", share="stranger", units={G5: 16})
        both = a_job("both", share="vision", units={P5: 1, G5: 1}, priority=1)
        others = [a_preempting_job("p", share="stranger", units={P5: 4}), old("q", "stranger", 2)]
        plan = plan_of(owns, active=[stopping, *others], waiting=[both, new("x", "stranger", 2)])
        assert started(plan) == []
        assert isinstance(reasons(plan)["both"], WaitsForRelease)

    def test_two_owners_of_more_than_there_is_share_what_there_is(self):
        both = (a_share("vision", 4, lending=Lending.RESERVE), a_share("speech", 4, lending=Lending.RESERVE))
        plan = plan_of(*both, cap=4, waiting=[new("v", count=3), new("s", "speech", 3)])
        assert len(started(plan)) == 1

    def test_a_job_that_just_starts_at_aws_is_not_counted_twice(self):
        held = [a_launched_job("v", share="vision", units={P5: 4})]
        plan = plan_of(a_share("vision", 4, lending=Lending.LEND), active=held, waiting=[new("a")])
        assert reasons(plan)["a"] == ShareFull("vision", P5, 4, "own units")

    def test_a_share_at_its_bound_has_its_own_lower_jobs_step_aside(self):
        lend = a_share("vision", 4, lending=Lending.LEND)
        held = [old("low", "vision", 2), old("high", "vision", 2, priority=5), old("s", "speech", 2)]
        plan = plan_of(lend, self.speech, active=held, waiting=[new("a", count=2, priority=1)])
        assert victims(plan) == {"a": ["low"]}, "though two units are idle: they are not this share's"

    def test_what_its_own_jobs_give_back_one_by_one_is_kept_for_a_share_at_its_bound(self):
        lend = a_share("vision", 4, lending=Lending.LEND)
        stopping = a_preempting_job("v2", beneficiary="a", share="vision", units={P5: 2})
        holder = replace(new("a", count=4, priority=1), reservation=a_reservation({P5: 4}))
        others = [old("s", "speech", 4), stopping]
        plan = plan_of(lend, self.speech, active=others, waiting=[holder, new("x", "speech", 2)])
        assert started(plan) == [], "what is free already is kept, or jobs would be preempted for it again"
        assert set(reasons(plan)) == {"a", "x"}


class TestPage:
    """The worked example of docs/explanation/shares.md."""

    page = (Path(__file__).parents[3] / "docs" / "explanation" / "shares.md").read_text()

    def rows(self):
        table = self.page.split("| job | share |")[1].split("\n\n")[0].splitlines()[2:]
        return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]

    def snapshot(self):
        policy = policy_of(json.loads(self.page.split("```json")[1].split("```")[0]))
        active, waiting = [], []
        for name, share, count, priority, state, _ in self.rows():
            fields = {"share": share, "units": {P5: int(count)}, "priority": int(priority)}
            if state == "running":
                active.append(a_running_job(name, now=at(-HOUR), **fields))
            else:
                waiting.append(a_job(name, **fields))
        return a_snapshot(pools=[a_pool(P5, 8)], active=active, waiting=waiting, policy=policy)

    def test_the_example_comes_out_as_the_page_says(self):
        plan = schedule(self.snapshot(), NOW, random.Random(1))
        aside = {name for taken in victims(plan).values() for name in taken}
        for name, *_, state, outcome in self.rows():
            if state == "running":
                assert outcome == ("preempted" if name in aside else "runs on")
            elif outcome == "starts":
                assert name in started(plan)
            else:
                assert reasons(plan)[name].message().startswith(outcome)

    def test_every_setting_of_a_share_is_explained(self):
        table = self.page.split("| setting | meaning |")[1].split("\n\n")[0]
        told = {re.sub("([A-Z])", r"_\1", name).lower() for name in re.findall(r"`(\w+)`", table)}
        assert {field.name for field in fields(Share)} - {"name", "admins", "submitters", "resizers"} <= told
