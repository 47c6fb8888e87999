"""Resizes by example: the elastic jobs that give instances to other jobs, and those that get idle ones."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import (
    NOW,
    P5,
    a_job,
    a_pool,
    a_preempting_job,
    a_reservation,
    a_running_job,
    a_snapshot,
    a_starting_job,
    an_observation,
    at,
)
from trainmaster.domain.elastic.sizes import Cause, Elastic, Hook
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.policy.settings import Budget, Policy, Preemption, Resizes, Share
from trainmaster.domain.reasons.capacity import Preempts, Shrinks, WaitsForCapacity, WaitsForRelease
from trainmaster.domain.records import Records
from trainmaster.domain.requests.elastic.size_change import SizeBounds
from trainmaster.planner.elastic.resize import cost_of, gain_of, pause_of, ready_at, time_left
from trainmaster.planner.elastic.scale_up import ScaleUp
from trainmaster.planner.reservations.expected_ends import ExpectedEnds
from trainmaster.planner.schedule import schedule
from trainmaster.planner.state import PlanState

HOUR = 3_600


def elastic(min_instances=1, max_instances=8, hook=Hook.MEMBERS, **fields):
    return Elastic(min_instances=min_instances, max_instances=max_instances, hook=hook, **fields)


def running(name, size, bounds=None, *, ago=HOUR, saved=None, pool=P5, **fields):
    """An elastic job at work with this size, its members too."""
    bounds = bounds or elastic()
    job = a_job(name, units={pool: bounds.min_instances}, elastic=bounds, **fields)
    since = at(-ago)
    job = lifecycle.mark_launched(lifecycle.start(job, {pool: size}, (), since))
    job = lifecycle.observe(job, an_observation(job, secondary="Training", started_at=since), since)
    for member in job.attempt.members:
        seen = an_observation(job, training_job_name=member.training_job_name, secondary="Training", started_at=since)
        job = lifecycle.observe(job, seen, since)
    return job if saved is None else replace(job, attempt=replace(job.attempt, saved_at=at(-saved)))


def rigid(name, count, *, pool=P5, **fields):
    return a_running_job(name, units={pool: count}, now=at(-HOUR), **fields)


def plan(*jobs, cap=8, pools=None, now=NOW, startups=None, **policy):
    """The plan for active and waiting jobs."""
    snapshot = a_snapshot(
        pools=pools or [a_pool(P5, cap)],
        active=[job for job in jobs if job.units],
        waiting=[job for job in jobs if not job.units],
        policy=Policy(**policy),
    )
    records = Records(history=History(startups=startups or {}))
    return schedule(replace(snapshot, records=records), now, random.Random(1))


def shrinks(made):
    return {each.job.name: each.size for p in made.preemptions for each in p.shrinks}


def victims(made):
    return [victim.name for p in made.preemptions for victim in p.victims]


def grown(made):
    return {each.job.name: (each.size, each.cause) for each in made.resizes}


def new_job(count=2, priority=5, name="new", pool=P5, **fields):
    return a_job(name, units={pool: count}, priority=priority, **fields)


# -- starts ---------------------------------------------------------------------------------------------------------


def test_an_elastic_job_starts_at_its_least_size_or_not_at_all():
    waits = a_job("job", units={P5: 2}, elastic=elastic(min_instances=2))
    made = plan(waits, rigid("other", 7), cap=8)
    assert not made.starts
    assert isinstance(made.waits[0].reason, WaitsForCapacity)


def test_what_is_idle_in_the_end_goes_to_the_jobs_that_start_the_best_first():
    low, high = (
        a_job(name, units={P5: 1}, elastic=elastic(max_instances=4), priority=n)
        for name, n in (("low", 0), ("high", 3))
    )
    made = plan(low, high, new_job(2, priority=1), cap=8)
    assert {start.job.name: start.units[P5] for start in made.starts} == {"high": 4, "new": 2, "low": 2}


def test_a_start_takes_a_legal_size_only():
    waits = a_job("job", units={P5: 1}, elastic=elastic(max_instances=8, values=(1, 2, 4, 8)))
    assert plan(waits, cap=7).starts[0].units == {P5: 4}


def test_a_start_leaves_what_is_reserved_for_a_blocked_job():
    """It would hold it for longer than that one waits."""
    soon = rigid("soon", 4, max_runtime=timedelta(seconds=HOUR + 600))
    made = plan(soon, new_job(8, priority=0), a_job("job", units={P5: 1}, elastic=elastic(), entry_time=at(5)), cap=9)
    assert [start.units for start in made.starts] == [{P5: 1}]


def test_nothing_beyond_the_least_where_resizes_are_off():
    made = plan(a_job("job", units={P5: 1}, elastic=elastic()), resizes=Resizes(enabled=False))
    assert made.starts[0].units == {P5: 1}


# -- shrinking ------------------------------------------------------------------------------------------------------


def test_lower_jobs_shrink_before_anybody_is_preempted_and_only_as_far_as_is_needed():
    made = plan(running("wide", 6), rigid("low", 2), new_job(2))
    assert shrinks(made) == {"wide": 4}
    assert not victims(made)
    assert made.waits[0].reason == Shrinks(("wide",), at(HOUR))
    assert made.preemptions[0].reservation.units == {P5: 2}
    [resize] = made.preemptions[0].shrinks
    assert (resize.cause, resize.freed_for) == (Cause.SHRINK, "new")


def test_a_job_whose_shrink_is_cheap_gives_before_one_that_restarts():
    restarts = running("restarts", 4, elastic(hook=Hook.RESTART))
    assert shrinks(plan(restarts, running("members", 4), new_job(3))) == {"members": 1}


def test_of_jobs_that_restart_the_one_gives_that_keeps_its_work():
    keeps, loses = (running(n, 4, elastic(hook=Hook.RESTART), checkpointed=c) for n, c in (("b", True), ("a", False)))
    assert shrinks(plan(keeps, loses, new_job(3))) == {"b": 1}


def test_sizes_stay_legal_though_more_is_given_than_is_needed():
    assert shrinks(plan(running("job", 8, elastic(values=(1, 4, 8))), new_job(2))) == {"job": 4}


def test_where_shrinking_does_not_suffice_the_fewest_step_aside_besides():
    made = plan(running("wide", 4), rigid("a", 2), rigid("b", 2, checkpointed=True), new_job(5))
    assert shrinks(made) == {"wide": 1}
    assert victims(made) == ["a"]
    assert made.waits[0].reason == Preempts(("a",), at(HOUR), ("wide",))


def test_no_job_shrinks_needlessly_once_a_wide_job_is_preempted():
    made = plan(running("wide", 2), rigid("gang", 6), new_job(6))
    assert victims(made) == ["gang"]
    assert not shrinks(made)


def test_who_steps_aside_whole_is_not_shrunk_as_well():
    made = plan(running("wide", 4), new_job(4), cap=4)
    assert victims(made) == ["wide"]
    assert not shrinks(made)


def test_no_job_is_touched_for_one_that_would_not_fit_even_then():
    made = plan(running("wide", 4), rigid("high", 4, priority=9), new_job(6))
    assert not made.preemptions


def test_a_job_whose_own_training_job_has_ended_is_not_preempted_since_its_units_are_coming_anyway():
    """Stopped, it would have counted twice: for what its members give back, and for what they hold."""
    ending = running("ends", 2)
    ending = replace(ending, attempt=replace(ending.attempt, base_ended_at=NOW))
    made = plan(ending, rigid("stays", 4, preemptible=False), new_job(5), cap=7)
    assert (victims(made), shrinks(made)) == ([], {})
    assert not made.starts
    # Units that are coming count once: three are enough for a job that needs three.
    small = plan(ending, rigid("stays", 4, preemptible=False), new_job(3), cap=7)
    assert isinstance(small.waits[0].reason, WaitsForRelease)
    assert victims(small) == []


def test_a_job_that_may_not_be_preempted_gives_what_it_has_beyond_its_least():
    assert shrinks(plan(running("wide", 8, preemptible=False), new_job(7))) == {"wide": 1}
    assert not plan(running("wide", 8, preemptible=False), new_job(8)).preemptions


def test_equals_give_only_where_the_policy_says_so():
    jobs = running("wide", 8, priority=5), new_job(2)
    assert not plan(*jobs).preemptions
    made = plan(*jobs, resizes=Resizes(shrink_equals=True))
    assert shrinks(made) == {"wide": 6}


def test_equals_are_spared_where_lower_jobs_suffice_and_are_never_stopped():
    policy = {"resizes": Resizes(shrink_equals=True)}
    assert shrinks(plan(running("low", 4), running("equal", 4, priority=5), new_job(3), **policy)) == {"low": 1}
    assert not plan(running("equal", 4, priority=5), new_job(4), cap=4, **policy).preemptions


def test_an_equal_gives_nothing_for_less_work_than_that_costs():
    dear = running("wide", 8, elastic(hook=Hook.RESTART), priority=5, ago=80_000)
    short = new_job(1, max_runtime=timedelta(minutes=5))
    assert not plan(dear, short, resizes=Resizes(shrink_equals=True)).preemptions


MINUTE = timedelta(minutes=1)
SHARED_COST = Resizes(shrink_equals=True, payback=2)
"""A job of eight instances shrinks in ten seconds, so it does so for 160 instance-seconds of work."""


def short_jobs(count, units=1, **fields):
    return [new_job(units, name=f"short{n}", max_runtime=MINUTE, entry_time=at(n - 90), **fields) for n in range(count)]


@pytest.mark.parametrize(("waiting", "size"), [(1, None), (2, None), (3, 5), (7, 1), (12, 1)])
def test_short_jobs_share_the_cost_of_a_shrink(waiting, size):
    """Of one minute each, three are worth it together; then each has the instance that it needs."""
    made = plan(running("wide", 8, priority=5), *short_jobs(waiting), resizes=SHARED_COST)
    assert shrinks(made) == ({} if size is None else {"wide": size})


@pytest.mark.parametrize(
    "others",
    [
        short_jobs(9, priority=4),
        short_jobs(9, units=8),
        [replace(job, retry_at=at(60)) for job in short_jobs(9)],
        [replace(job, share="full") for job in short_jobs(9)],
    ],
    ids=["lower", "too wide", "backing off", "refused by a limit"],
)
def test_jobs_that_could_not_start_do_not_share_it(others):
    first, shares = new_job(1, max_runtime=MINUTE, entry_time=at(-99)), {"full": Share(name="full", max={P5: 0})}
    assert shrinks(plan(running("wide", 8, priority=5), first, *others, shares=shares, resizes=SHARED_COST)) == {}


def test_jobs_ahead_of_the_one_that_asks_do_not_share_it():
    """They wait for something else, or they had the instances."""
    ahead = [new_job(8, name=f"ahead{n}", entry_time=at(n - 99)) for n in range(3)]
    assert shrinks(plan(running("wide", 8, priority=5), *ahead, *short_jobs(2), resizes=SHARED_COST)) == {}


def test_one_that_is_being_restarted_to_be_smaller_is_waited_for():
    shrinking = lifecycle.resize(
        running("wide", 8, elastic(hook=Hook.RESTART)), 5, Cause.SHRINK, NOW, until=at(HOUR), freed_for="new"
    )
    made = plan(shrinking, new_job(3))
    assert not made.preemptions
    assert isinstance(made.waits[0].reason, WaitsForRelease)


def test_a_growth_is_turned_round_for_a_better_job():
    growing = lifecycle.resize(running("wide", 4), 8, Cause.GROW, NOW, until=at(HOUR))
    assert shrinks(plan(growing, new_job(2))) == {"wide": 6}
    turned = lifecycle.resize(growing, 6, Cause.SHRINK, at(5), until=at(HOUR), freed_for="new")
    assert turned.freeing == {P5: 2}
    assert [m.leaving for m in turned.attempt.members] == [False] * 5 + [True] * 2


def test_a_restart_waits_for_the_minimum_run_time_as_preemption_does():
    rules = Preemption(min_runtime=timedelta(hours=2))
    assert not plan(running("wide", 8, elastic(hook=Hook.RESTART)), new_job(2), preemption=rules).preemptions
    assert shrinks(plan(running("wide", 8), new_job(2), preemption=rules)) == {"wide": 6}


def test_two_newcomers_have_one_job_give_once_for_both():
    made = plan(running("wide", 8), new_job(2, name="first"), new_job(3, priority=4, name="second"))
    assert shrinks(made) == {"wide": 3}
    assert [p.job.name for p in made.preemptions] == ["first"]
    assert not victims(made)


def test_a_decision_names_at_most_eighty_jobs():
    many = [running(f"job-{n:03}", 2, elastic(max_instances=2)) for n in range(100)]
    made = plan(*many, new_job(90), cap=200, max_actions=500)
    assert [len(p.shrinks) for p in made.preemptions] == [80, 10]


def test_nothing_shrinks_where_resizes_are_off():
    made = plan(running("wide", 8), new_job(2), resizes=Resizes(enabled=False))
    assert victims(made) == ["wide"]


# -- shares ---------------------------------------------------------------------------------------------------------

TEAMS = {"a": Share(name="a", nominal={P5: 4}), "b": Share(name="b", nominal={P5: 4})}


def test_an_owner_has_borrowers_shrink_whatever_their_priority_and_no_further_than_its_own_reaches():
    made = plan(running("wide", 8, share="b", priority=9), new_job(3, priority=0, share="a"), shares=TEAMS)
    assert shrinks(made) == {"wide": 5}


def test_no_job_takes_what_another_share_owns():
    made = plan(
        running("wide", 4, share="b"), rigid("mine", 4, share="a", priority=9), new_job(2, share="a"), shares=TEAMS
    )
    assert not made.preemptions


def test_a_share_does_not_grow_beyond_its_bounds():
    bound = {"a": replace(TEAMS["a"], borrows={P5: 1})}
    assert grown(plan(running("wide", 2, share="a"), shares=bound))["wide"] == (5, Cause.GROW)


def test_no_job_grows_on_a_spent_budget():
    spent = {"a": replace(TEAMS["a"], budget=Budget(gpu_hours=1))}
    assert not plan(running("wide", 2, share="a"), shares=spent).resizes


# -- growing --------------------------------------------------------------------------------------------------------


def test_idle_capacity_goes_to_the_best_job_at_work_then_to_the_next():
    made = plan(running("low", 1), running("high", 1, elastic(max_instances=5), priority=3))
    assert grown(made) == {"high": (5, Cause.GROW), "low": (3, Cause.GROW)}


def test_of_equals_the_one_grows_that_has_most_work_before_it():
    short = running("short", 1, max_runtime=timedelta(seconds=HOUR + 600))
    assert grown(plan(short, running("wide", 1), cap=4)) == {"wide": (3, Cause.GROW)}


@pytest.mark.parametrize("ago", [0, 59])
def test_no_job_grows_before_the_scaling_timeout_and_the_plan_says_when_to_look_again(ago):
    made = plan(running("job", 1, ago=ago))
    assert not made.resizes
    assert made.recheck_at == at(60 - ago)


def test_no_job_grows_within_the_snooze_after_a_resize():
    bounds = elastic(scale_up_snooze=timedelta(minutes=10))
    job = running("job", 2, bounds)
    job = replace(job, attempt=replace(job.attempt, sized_at=at(-300)))
    made = plan(job)
    assert not made.resizes
    assert made.recheck_at == at(300)


def test_each_growth_that_met_no_capacity_doubles_the_wait():
    job = running("job", 1)
    waits = [
        ready_at(job.elastic, replace(job, capacity_failures=n), job.attempt) - job.attempt.started_at for n in range(4)
    ]
    assert waits == [timedelta(minutes=m) for m in (1, 10, 20, 40)]


def test_a_restart_has_to_pay_for_itself():
    """Two instances that start in 300 s: two more save as much work as that costs, twice, in 20 minutes."""
    bounds, startups = elastic(max_instances=4, hook=Hook.RESTART), {P5: 300.0}

    def left(minutes):
        runs = timedelta(seconds=HOUR + minutes * 60)
        return running("job", 2, bounds, saved=300, checkpointed=True, max_runtime=runs)

    assert not plan(left(19), startups=startups).resizes
    assert plan(left(21), startups=startups).resizes
    pools = {P5: a_pool(P5, 8)}
    assert gain_of(left(21), 4, timedelta(minutes=21), pools) == 2 * 21 * 60 / 2 * 8
    assert cost_of(left(21), History(startups=startups), pools, NOW) == 300 * 2 * 8


def test_what_restarts_were_seen_to_take_counts_more_than_what_starts_take():
    job = running("job", 2, elastic(hook=Hook.RESTART), checkpointed=True)
    history = History(startups={P5: 300.0})
    assert pause_of(job, history, at(HOUR)) == 300
    assert pause_of(job, history.paused(job, 80), at(HOUR)) == 80


def test_a_job_that_outlives_what_was_expected_is_taken_to_run_as_long_again():
    job = running("job", 2, max_runtime=timedelta(hours=10))
    ran = at(HOUR) - job.attempt.started_at
    assert time_left(job, at(HOUR + 60), at(HOUR)) == ran > timedelta(minutes=1)
    assert time_left(job, at(5 * HOUR), at(HOUR)) == timedelta(hours=4)
    assert time_left(replace(job, max_runtime=timedelta(0)), at(5 * HOUR), at(HOUR)) == timedelta(0)


def test_a_job_that_keeps_its_work_badly_is_not_restarted_to_grow():
    assert not plan(running("job", 2, elastic(hook=Hook.RESTART), ago=60_000)).resizes


def test_a_job_grows_for_as_long_as_a_better_one_waits_for_others_in_any_case_if_that_pays():
    """Two instances more do work for ten seconds' pause of one, twice, in 30 s; then the better job has them back."""

    def growth(seconds):
        top = rigid("top", 5, priority=9, max_runtime=timedelta(seconds=HOUR + seconds))
        return grown(plan(running("job", 1), top, new_job(8, priority=5)))

    assert growth(29) == {}
    assert growth(31) == {"job": (3, Cause.GROW)}


def test_no_job_grows_while_a_better_job_waits_that_may_start_at_any_moment():
    leaves = lifecycle.preempt(rigid("leaves", 5), "x", NOW)
    made = plan(running("job", 1), leaves, new_job(7, priority=5))
    assert isinstance(made.waits[0].reason, WaitsForRelease)
    assert not made.resizes


@pytest.mark.parametrize("equals", [False, True])
def test_small_jobs_grow_into_what_a_whole_pools_job_cannot_use_before_they_have_ended(equals):
    """Else 11 jobs of one instance would keep the other 117 idle for as long as they last."""
    waits = new_job(8, priority=0)
    made = plan(running("a", 1), running("b", 1), waits, resizes=Resizes(shrink_equals=equals))
    assert sum(size for size, _ in grown(made).values()) >= 7


def test_an_equal_that_waits_is_not_delayed_but_does_not_keep_idle_what_it_cannot_use():
    """It starts when `soon` ends, and needs all; while one that ends before that may have the rest."""
    soon = rigid("soon", 4, max_runtime=timedelta(seconds=HOUR + 900))
    blocked = new_job(7, priority=0)
    assert not plan(running("job", 1), soon, blocked).resizes
    brief = running("job", 1, max_runtime=timedelta(seconds=HOUR + 600))
    assert grown(plan(brief, soon, blocked)) == {"job": (4, Cause.GROW)}


def test_what_a_job_that_backs_off_needs_is_left_for_it():
    backs_off = new_job(5, priority=0, retry_at=at(30))
    assert grown(plan(running("job", 1), backs_off)) == {"job": (3, Cause.GROW)}


def test_what_is_held_for_a_job_is_not_taken():
    held = lifecycle.reserve(new_job(7, priority=0), a_reservation({P5: 7}))
    made = plan(running("job", 1), a_preempting_job("other", units={P5: 4}), held)
    assert not made.resizes
    assert isinstance(made.waits[0].reason, WaitsForRelease)


def test_a_job_in_a_pool_that_is_drained_does_not_grow():
    assert not plan(running("job", 1), pools=[replace(a_pool(P5, 8), draining=True)]).resizes


def test_a_job_that_starts_stops_or_changes_its_size_does_not_grow():
    starting = a_starting_job("starting", units={P5: 1}, elastic=elastic(), now=at(-HOUR))
    growing = lifecycle.resize(running("growing", 1), 2, Cause.GROW, NOW, until=at(HOUR))
    stopping = lifecycle.preempt(running("stopping", 1), "x", NOW)
    assert not plan(starting, growing, stopping, cap=20).resizes


def test_what_one_pass_may_do_bounds_growth_too():
    assert len(plan(running("a", 1), running("b", 1, elastic(max_instances=2)), max_actions=1).resizes) == 1


def test_no_job_grows_where_resizes_are_off():
    assert not plan(running("job", 1), resizes=Resizes(enabled=False)).resizes


# -- lost members ---------------------------------------------------------------------------------------------------


def lacking(size, bounds, *, ago=10):
    """A job that has lost a member so many seconds ago."""
    job = running("job", size, bounds)
    member = job.attempt.members[-1].training_job_name
    return lifecycle.remove_member(job, member, at(-ago), "lost", lost=True)


def test_a_lost_member_is_replaced_at_once_as_far_as_before():
    made = plan(lacking(4, elastic()))
    assert grown(made) == {"job": (4, Cause.REPLACE)}


def test_where_nothing_is_idle_the_job_waits_for_a_replacement_and_then_goes_down_to_a_legal_size():
    bounds = elastic(values=(1, 2, 4))
    others = rigid("others", 5, priority=9)
    soon = plan(lacking(4, bounds), others)
    assert not soon.resizes
    assert soon.recheck_at == at(20)
    assert grown(plan(lacking(4, bounds, ago=30), others)) == {"job": (2, Cause.REPAIR)}


def test_what_is_left_may_be_a_legal_size():
    assert not plan(lacking(4, elastic(), ago=30), rigid("others", 5, priority=9)).resizes


# -- changed bounds -------------------------------------------------------------------------------------------------


def rebound(job, minimum, maximum, *, ago=10):
    """The job after its bounds were changed so many seconds ago."""
    return lifecycle.set_bounds(job, SizeBounds(minimum, maximum).apply(job.elastic), at(-ago), "ada")


@pytest.mark.parametrize("hook", Hook)
def test_a_job_above_its_new_maximum_shrinks_whatever_waits_or_is_idle(hook):
    job = rebound(running("job", 6, elastic(hook=hook)), 1, 4)
    for others in ((), (new_job(9),), (rigid("other", 2, priority=9),)):
        assert grown(plan(job, *others, cap=20)) == {"job": (4, Cause.BOUNDS)}


def test_it_shrinks_to_the_largest_of_its_listed_sizes():
    job = rebound(running("job", 8, elastic(values=(1, 2, 4, 8))), 1, 4)
    assert grown(plan(job)) == {"job": (4, Cause.BOUNDS)}


def test_one_below_its_new_minimum_grows_to_it_though_that_does_not_pay():
    bounds = elastic(hook=Hook.RESTART, max_instances=4)
    job = rebound(running("job", 2, bounds, max_runtime=timedelta(seconds=HOUR + 60)), 4, 8)
    assert grown(plan(job)) == {"job": (4, Cause.BOUNDS)}


def test_it_grows_before_other_elastic_jobs_of_a_worse_rank_and_to_its_minimum_only():
    job, other = rebound(running("job", 1), 4, 8), running("other", 1)
    assert grown(plan(job, other)) == {"job": (4, Cause.BOUNDS), "other": (4, Cause.GROW)}


def test_without_idle_instances_it_keeps_its_size_and_gives_none_away():
    job = rebound(running("job", 2), 4, 8)
    made = plan(job, rigid("other", 5, priority=9), new_job(3, priority=5))
    assert not made.resizes
    assert not shrinks(made)


def test_it_waits_for_its_scaling_timeout_and_after_a_growth_without_capacity():
    job = rebound(running("job", 2, elastic(scaling_timeout=timedelta(hours=2))), 4, 8)
    made = plan(job)
    assert (made.resizes, made.recheck_at) == ((), at(HOUR))
    failed = replace(rebound(running("job", 2, ago=60), 4, 8), capacity_failures=1)
    assert (plan(failed).resizes, plan(failed).recheck_at) == ((), at(540))


def test_one_that_has_lost_a_member_is_repaired_within_its_new_bounds():
    lost = rebound(lacking(6, elastic(), ago=40), 1, 4)
    assert grown(plan(lost)) == {"job": (4, Cause.REPAIR)}


def test_a_base_with_more_instances_than_the_minimum_keeps_them():
    job = rebound(running("job", 6, elastic(min_instances=3)), 1, 8)
    assert shrinks(plan(job, new_job(3), cap=6)) == {"job": 3}
    assert victims(plan(job, new_job(4), cap=6)) == ["job"]


def test_no_job_is_brought_into_its_bounds_where_resizes_are_off():
    assert not plan(rebound(running("job", 6), 1, 4), resizes=Resizes(enabled=False)).resizes


def test_the_jobs_to_give_back_to_are_worked_out_once_for_each_job_that_may_grow():
    class Counting(ScaleUp):
        def _reclaimable_at(self, job, pool):
            asked.append(job.name)
            return super()._reclaimable_at(job, pool)

    asked = []
    snapshot = a_snapshot(pools=[a_pool(P5, 8)], active=[running("one", 2), running("two", 2)])
    growth = Counting(snapshot, NOW, PlanState.of(snapshot, NOW), (), actions_left=50).run()
    assert [(resize.job.name, resize.size) for resize in growth.resizes] == [("one", 6)]
    assert asked == ["one"], "for the other nothing is idle any more"


# -- estimates ------------------------------------------------------------------------------------------------------


def test_a_larger_job_is_expected_to_end_the_sooner():
    history = History()
    for _ in range(50):
        done = lifecycle.observe(
            running("past", 1, ago=8 * HOUR), an_observation(running("past", 1), status="Completed"), NOW
        )
        history = history.after(done)
    ends = []
    for size in (1, 4):
        job = running("job", size, ago=60)
        snapshot = replace(a_snapshot(active=[job]), records=Records(history=history))
        ends.append(ExpectedEnds(snapshot, NOW).end(job) - NOW)
    assert ends[1] < ends[0] / 3.5
