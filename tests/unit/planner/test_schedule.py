"""The planner's rules one by one, in the article's world: a pool of two instances."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import (
    G5,
    NOW,
    P5,
    a_demand,
    a_job,
    a_launched_job,
    a_pool,
    a_preempted_job,
    a_preempting_job,
    a_running_job,
    a_starting_job,
    at,
    pools_of,
)
from trainmaster.domain.jobs import lifecycle
from trainmaster.domain.jobs.job import Reservation
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order, Policy, Preemption, PreemptionOverrides, Share
from trainmaster.domain.reasons.capacity import (
    BackingOff,
    Behind,
    CanNeverFit,
    NextPass,
    Preempts,
    PreemptsLater,
    ReservedForOther,
    WaitsForCapacity,
    WaitsForRelease,
)
from trainmaster.planner.schedule import schedule


def plan(*, active=(), waiting=(), pools=None, now=NOW, **fields):
    snapshot = Snapshot(
        pass_number=1, pools=pools or pools_of(), active=tuple(active), waiting=tuple(waiting), **fields
    )
    return schedule(snapshot, now, random.Random(1))


LONG = timedelta(days=28)


def started(made):
    return [start.job.name for start in made.starts]


def victims(made):
    return [victim.name for preemption in made.preemptions for victim in preemption.victims]


def reason(made, name):
    return next(wait.reason for wait in made.waits if wait.job.name == name)


def test_the_articles_four_jobs_up_to_the_first_table():
    made = plan(waiting=[a_job("job1", priority=1), a_job("job2", priority=2), a_job("job3", priority=1)])
    assert started(made) == ["job2", "job1"]
    assert reason(made, "job3") == WaitsForCapacity(P5, 1, 0, NOW + timedelta(days=1))


def test_the_articles_fourth_job_preempts_the_lowest_running_one():
    running = [a_running_job("job1", priority=1), a_running_job("job2", priority=2)]
    made = plan(active=running, waiting=[a_job("job3", priority=1), a_job("job4", priority=3)])
    assert victims(made) == ["job1"]
    assert reason(made, "job4") == Preempts(("job1",), NOW + timedelta(hours=1))
    assert reason(made, "job3") == WaitsForCapacity(P5, 1, 0, NOW + timedelta(days=1))


def test_the_preempted_job_resumes_before_the_later_one_of_its_priority():
    back = a_preempted_job("job1", priority=1, entry_time=at(-60))
    made = plan(active=[a_running_job("job4", priority=3)], waiting=[a_job("job3", priority=1), back])
    assert started(made) == ["job1"]


def test_higher_priority_first_then_earlier_entry_then_name():
    jobs = [a_job("c"), a_job("b"), a_job("late", entry_time=at(1)), a_job("high", priority=1, entry_time=at(2))]
    assert started(plan(waiting=jobs, pools=pools_of(a_pool(cap=4)))) == ["high", "b", "c", "late"]


def test_several_instances_start_all_or_nothing():
    made = plan(waiting=[a_job("gang", units={P5: 3})], active=[a_running_job("one")], pools=pools_of(a_pool(cap=3)))
    assert started(made) == []
    assert reason(made, "gang") == WaitsForCapacity(P5, 3, 2, NOW + timedelta(days=1))


def test_groups_of_several_types_take_from_several_pools_at_once():
    pools = pools_of(a_pool(P5, 1), a_pool(G5, 1))
    mixed = a_job("mixed", units={P5: 1, G5: 1})
    assert started(plan(waiting=[mixed], pools=pools)) == ["mixed"]
    assert started(plan(waiting=[mixed], active=[a_running_job("g", units={G5: 1})], pools=pools)) == []


def test_preferences_leave_the_choice_among_all_types_that_fit_and_charge_them_all():
    job = a_job("any", demand=a_demand({P5: 2}, {G5: 4}))
    (start,) = plan(waiting=[job], pools=pools_of(a_pool(P5, 2), a_pool(G5, 4))).starts
    assert (start.units, start.choices) == ({P5: 2, G5: 4}, (P5, G5))


def test_preferences_run_in_the_one_pool_that_has_room():
    job = a_job("any", demand=a_demand({P5: 2}, {G5: 4}))
    pools = pools_of(a_pool(P5, 2), a_pool(G5, 4))
    (start,) = plan(waiting=[job], active=[a_running_job("busy")], pools=pools).starts
    assert (start.units, start.choices) == ({G5: 4}, (G5,))


def test_preferences_preempt_in_the_pool_where_it_costs_least():
    pools = pools_of(a_pool(P5, 1), a_pool(G5, 1))
    running = [
        a_running_job("p", units={P5: 1}, now=at(-7200)),
        a_running_job("g", units={G5: 1}, now=at(-60)),
    ]
    job = a_job("any", priority=1, demand=a_demand({P5: 1}, {G5: 1}))
    assert victims(plan(waiting=[job], active=running, pools=pools)) == ["g"]


def test_only_as_many_as_are_needed_beyond_those_already_stopping():
    active = [a_preempting_job("gone", beneficiary="old"), a_running_job("stays")]
    made = plan(active=active, waiting=[a_job("one", priority=5)])
    assert victims(made) == []
    assert isinstance(reason(made, "one"), WaitsForRelease)


def test_equal_priority_is_never_preempted():
    made = plan(active=[a_running_job("a"), a_running_job("b")], waiting=[a_job("c")])
    assert victims(made) == []


def test_among_equals_the_one_that_loses_least_work_steps_aside():
    active = [a_running_job("long", now=at(-7200)), a_running_job("short", now=at(-60))]
    assert victims(plan(active=active, waiting=[a_job("new", priority=1)])) == ["short"]


def test_lost_work_counts_every_instance():
    active = [a_running_job("wide", units={P5: 4}, now=at(-100)), a_running_job("narrow", units={P5: 1}, now=at(-300))]
    made = plan(active=active, waiting=[a_job("new", priority=1)], pools=pools_of(a_pool(cap=5)))
    assert victims(made) == ["narrow"]


def test_a_needless_victim_is_spared():
    """Greedy takes `small` first, then finds that only `big` helps: then `small` may stay (Kueue's fill-back)."""
    active = [a_running_job("small", priority=1), a_running_job("big", priority=2, units={P5: 4})]
    made = plan(active=active, waiting=[a_job("new", priority=3, units={P5: 4})], pools=pools_of(a_pool(cap=5)))
    assert victims(made) == ["big"]


def test_a_job_that_may_not_be_preempted_is_left_alone():
    active = [a_running_job("protected", preemptible=False), a_running_job("other", now=at(-9000))]
    assert victims(plan(active=active, waiting=[a_job("new", priority=1)])) == ["other"]


def test_a_start_that_sagemaker_may_not_know_yet_is_no_victim():
    made = plan(active=[a_starting_job("a"), a_starting_job("b")], waiting=[a_job("new", priority=1)])
    assert victims(made) == []


def test_a_launched_job_that_waits_for_its_instances_is_the_cheapest_victim():
    active = [a_launched_job("fresh"), a_running_job("old", now=at(-60))]
    assert victims(plan(active=active, waiting=[a_job("new", priority=1)])) == ["fresh"]


def test_freed_capacity_is_kept_for_the_job_that_it_was_freed_for():
    """One of two victims has stopped: a lower job must not take its instance while the second is stopping."""
    gang = lifecycle.reserve(a_job("gang", priority=5, units={P5: 2}), Reservation({P5: 2}, at(3600)))
    active = [a_preempting_job("second", beneficiary="gang")]
    made = plan(active=active, waiting=[gang, a_job("low", priority=1)])
    assert started(made) == []
    assert reason(made, "low") == ReservedForOther("gang", P5, NOW + timedelta(hours=1), 1, 0)


def test_an_equal_that_came_earlier_does_not_take_what_was_freed_for_another():
    holder = lifecycle.reserve(a_job("holder", entry_time=at(5)), Reservation({P5: 1}, at(3600)))
    earlier = a_job("earlier", entry_time=at(0))
    made = plan(active=[a_running_job("x")], waiting=[holder, earlier])
    assert started(made) == ["holder"]


def test_a_job_of_higher_priority_may_take_what_was_freed_for_a_lower_one():
    """It could preempt the holder the moment it started; taking the hold costs no job its work (ADR 0005)."""
    holder = lifecycle.reserve(a_job("holder"), Reservation({P5: 1}, at(3600)))
    made = plan(active=[a_running_job("x", priority=9)], waiting=[holder, a_job("top", priority=5)])
    assert started(made) == ["top"]


def test_a_hold_that_expired_keeps_nothing():
    holder = lifecycle.reserve(a_job("holder", entry_time=at(5)), Reservation({P5: 1}, at(-1)))
    made = plan(active=[a_running_job("x")], waiting=[holder, a_job("earlier", entry_time=at(0))])
    assert started(made) == ["earlier"]


def test_a_hold_that_expired_takes_no_job_to_a_pool_that_lacks_instances():
    demand = replace(a_demand({P5: 1}, {G5: 1}), queue_selects_pool=True)
    job = lifecycle.reserve(a_job(demand=demand), Reservation({P5: 1}, at(-1)))
    refused = lifecycle.requeue_unlaunched(a_starting_job("other", priority=-1), NOW, "CapacityError: full")
    made = plan(waiting=[job, refused], pools=pools_of(a_pool(), a_pool(G5)))
    assert made.starts[0].units == {G5: 1}


def test_no_job_waits_for_a_stop_that_never_ends():
    stuck = a_preempting_job("stuck", now=at(-7200))
    made = plan(active=[stuck, a_running_job("other")], waiting=[a_job("new", priority=5)])
    assert victims(made) == ["other"]


def test_an_equal_does_not_pass_a_blocked_job_in_strict_order():
    made = plan(
        active=[a_running_job("x", priority=9)],
        waiting=[a_job("big", units={P5: 2}), a_job("small", entry_time=at(1))],
        policy=Policy(order=Order.FIFO),
    )
    assert started(made) == []
    assert reason(made, "small") == Behind("big", P5)


def test_a_lower_preemptible_job_uses_what_a_blocked_one_cannot():
    waiting = [a_job("big", priority=2, units={P5: 2}), a_job("small", priority=1)]
    assert started(plan(active=[a_running_job("x", priority=9)], waiting=waiting)) == ["small"]


def test_a_lower_job_that_may_not_be_preempted_does_not_pass_a_blocked_one_that_it_would_delay():
    """The running job leaves within a day; the small one may take longer, so it would be in the way of the big one."""
    waiting = [
        a_job("big", priority=2, units={P5: 2}),
        a_job("small", priority=1, preemptible=False, max_runtime=timedelta(days=2)),
    ]
    made = plan(active=[a_running_job("x", priority=9)], waiting=waiting)
    assert started(made) == []
    assert reason(made, "small") == ReservedForOther("big", P5, NOW + timedelta(days=1), 1, 0)


def test_a_later_equal_passes_a_blocked_job_that_it_does_not_delay():
    """EASY: the running job leaves in a day, and the small one has ended by then."""
    waiting = [a_job("big", units={P5: 2}), a_job("small", entry_time=at(1), max_runtime=timedelta(hours=23))]
    made = plan(active=[a_running_job("x", priority=9)], waiting=waiting)
    assert started(made) == ["small"]
    assert reason(made, "big") == WaitsForCapacity(P5, 2, 1, NOW + timedelta(days=1))


def test_a_later_equal_that_would_delay_a_blocked_job_waits_for_it():
    waiting = [a_job("big", units={P5: 2}), a_job("small", entry_time=at(1), max_runtime=timedelta(hours=25))]
    made = plan(active=[a_running_job("x", priority=9)], waiting=waiting)
    assert started(made) == []
    assert reason(made, "small") == ReservedForOther("big", P5, NOW + timedelta(days=1), 1, 0)


def test_a_later_equal_uses_what_the_blocked_job_leaves_over_however_long_it_runs():
    waiting = [a_job("big", units={P5: 3}), *(a_job(f"s{n}", entry_time=at(n), max_runtime=LONG) for n in (1, 2))]
    made = plan(active=[a_running_job("x", priority=9, units={P5: 2})], waiting=waiting, pools=pools_of(a_pool(cap=4)))
    assert started(made) == ["s1"]
    assert reason(made, "s2") == ReservedForOther("big", P5, NOW + timedelta(days=1), 1, 0)


def test_a_blocked_job_is_reserved_for_though_units_are_kept_for_one_that_is_made_way_for():
    """The urgent job will end one day, too: its units are not out of the blocked one's reach forever."""
    running = [a_running_job("x", priority=9, units={P5: 2}), a_running_job("v", priority=0, units={P5: 3})]
    waiting = [
        a_job("urgent", priority=5, max_runtime=timedelta(hours=30)),
        a_job("big", priority=1, units={P5: 5}),
        a_job("small", priority=1, entry_time=at(1), max_runtime=LONG),
    ]
    made = plan(active=running, waiting=waiting, pools=pools_of(a_pool(cap=5)))
    assert victims(made) == ["v"]
    assert reason(made, "big") == WaitsForCapacity(P5, 5, 0, NOW + timedelta(hours=30))
    assert reason(made, "small") == ReservedForOther("big", P5, NOW + timedelta(hours=30), 1, 0)


def test_beyond_the_jobs_that_are_reserved_for_a_blocked_one_is_passed():
    """Depth 1 reserves for the first alone, depth 2 for the second as well."""
    waiting = [
        a_job("b1", units={P5: 2}),
        a_job("b2", entry_time=at(1), units={P5: 4}),
        a_job("small", entry_time=at(2), units={P5: 1}, max_runtime=timedelta(days=20)),
    ]
    active = [a_running_job("x", priority=9, units={P5: 3})]
    for depth, starts in ((1, ["small"]), (2, [])):
        made = plan(active=active, waiting=waiting, pools=pools_of(a_pool(cap=4)), policy=Policy(reservations=depth))
        assert started(made) == starts
        assert [each.job for each in made.reservations] == ["b1", "b2"][:depth]


def test_a_job_that_has_waited_beyond_patience_is_passed_by_no_equal():
    policy = Policy(patience=timedelta(hours=1))
    waiting = [a_job("big", units={P5: 2}), a_job("small", entry_time=at(1), max_runtime=timedelta(minutes=1))]
    made = plan(active=[a_running_job("x", priority=9)], waiting=waiting, now=at(3601), policy=policy)
    assert started(made) == []
    assert reason(made, "small") == Behind("big", P5)


def beside(later, *, active=(), **policy):
    """The plan with these jobs behind one for three of four units that waits beyond its patience; two are held."""
    running = [a_running_job("x", priority=9, units={P5: 2}), *active]
    waiting = [a_job("big", units={P5: 3}, group="g"), *later]
    settings = Policy(**{"patience": timedelta(hours=1), **policy})
    return plan(active=running, waiting=waiting, now=at(3602), policy=settings, pools=pools_of(a_pool(cap=4)))


def test_equals_pass_a_job_beyond_patience_in_the_units_that_it_can_never_use():
    made = beside([a_job(f"s{n}", entry_time=at(n), max_runtime=LONG) for n in (1, 2)])
    assert started(made) == ["s1"]
    assert reason(made, "s2") == Behind("big", P5)


def test_units_that_later_jobs_hold_already_are_not_given_away_again():
    held = a_running_job("held", entry_time=at(1))
    assert started(beside([a_job("s", entry_time=at(2))], active=[held])) == []
    earlier = a_running_job("earlier", entry_time=at(-1))
    assert started(beside([a_job("s", entry_time=at(2))], active=[earlier])) == ["s"]


def test_beside_a_job_beyond_patience_no_units_are_kept_for_one_that_waits_behind_it():
    """It needs more than the other will leave over, so it starts after that one."""
    active, waiting = [a_running_job("x", priority=9, units={P5: 2})], [a_job("big", units={P5: 4})]
    waiting += [a_job(name, entry_time=at(9), units={P5: count}) for name, count in (("next", 3), ("small", 1))]
    policy = Policy(patience=timedelta(hours=1))
    made = plan(active=active, waiting=waiting, now=at(3_602), policy=policy, pools=pools_of(a_pool(cap=5)))
    assert started(made) == ["small"]
    assert reason(made, "next") == Behind("big", P5)


def test_no_job_passes_one_beyond_patience_that_could_take_away_what_a_limit_allows_it():
    """A member of its group would use up the group's limit, a job of its share what the share may hold."""
    assert started(beside([a_job("s", entry_time=at(1), group="g")])) == []
    assert started(beside([a_job("s", entry_time=at(1))], shares={"default": Share(name="default")})) == []


def test_in_strict_order_no_job_passes_even_beside_one_beyond_patience():
    assert started(beside([a_job("s", entry_time=at(1))], order=Order.FIFO)) == []


def test_a_near_deadline_goes_before_equals_that_came_earlier():
    """It may run for an hour and left two days; it has to start within the last quarter of its wait now."""
    urgent = a_job("urgent", entry_time=at(10), deadline=at(2 * 86_400), max_runtime=timedelta(hours=1))
    waiting = [a_job("first"), urgent]
    active = [a_running_job("x", priority=9)]
    assert started(plan(active=active, waiting=waiting, now=at(3_600))) == ["first"]
    assert started(plan(active=active, waiting=waiting, now=at(2 * 86_400 - 7_200))) == ["urgent"]


def test_a_deadline_that_cannot_be_met_any_more_moves_no_job():
    lost = a_job("lost", entry_time=at(10), deadline=at(2 * 86_400), max_runtime=timedelta(hours=1))
    made = plan(active=[a_running_job("x", priority=9)], waiting=[a_job("first"), lost], now=at(2 * 86_400 + 1))
    assert started(made) == ["first"]


def test_patience_does_not_lift_a_job_over_a_higher_priority():
    policy = Policy(patience=timedelta(hours=1))
    waiting = [a_job("old", priority=1), a_job("new", priority=2, entry_time=at(7200))]
    made = plan(active=[a_running_job("x", priority=9)], waiting=waiting, now=at(7200), policy=policy)
    assert started(made) == ["new"]


def test_the_plan_says_when_it_could_change_though_nothing_happens():
    waiting = [a_job("big", units={P5: 2})]
    made = plan(active=[a_running_job("x", priority=9)], waiting=waiting)
    assert made.recheck_at == NOW + timedelta(days=1)


def test_a_newcomer_waits_before_it_preempts():
    policy = Policy(preemption=Preemption(delay=timedelta(minutes=5)))
    active = [a_running_job("x", units={P5: 2})]
    made = plan(active=active, waiting=[a_job("high", priority=5)], policy=policy)
    assert (victims(made), reason(made, "high")) == ([], PreemptsLater(at(300)))
    assert victims(plan(active=active, waiting=[a_job("high", priority=5)], policy=policy, now=at(300))) == ["x"]


def test_a_job_may_ask_to_wait_longer_before_it_preempts():
    waiting = [a_job("high", priority=5, preemption_overrides=PreemptionOverrides(delay=timedelta(seconds=30)))]
    made = plan(active=[a_running_job("x", units={P5: 2})], waiting=waiting)
    assert reason(made, "high") == PreemptsLater(at(30))


def test_a_blocked_job_in_one_pool_does_not_hold_up_another_pool():
    pools = pools_of(a_pool(P5, 1), a_pool(G5, 1))
    waiting = [a_job("p", units={P5: 1}), a_job("g", units={G5: 1}, entry_time=at(1))]
    assert started(plan(active=[a_running_job("x")], waiting=waiting, pools=pools)) == ["g"]


def test_a_job_that_can_never_fit_says_so_and_blocks_no_other():
    made = plan(waiting=[a_job("huge", priority=9, units={P5: 3}), a_job("small")])
    assert started(made) == ["small"]
    assert reason(made, "huge") == CanNeverFit(P5, 3, 2)
    assert "can never fit" in reason(made, "huge").message()


def test_a_job_without_a_pool_says_so():
    made = plan(waiting=[a_job("other", units={G5: 1})])
    assert reason(made, "other").message() == f"can never fit: there is no pool for {G5}"


def test_a_job_that_backs_off_waits_until_its_time_and_blocks_no_other():
    off = replace(a_job("off", priority=9), retry_at=at(60), capacity_failures=1)
    made = plan(waiting=[off, a_job("next")], pools=pools_of(a_pool(cap=1)))
    assert started(made) == ["next"]
    assert isinstance(reason(made, "off"), BackingOff)
    assert started(plan(waiting=[off], now=at(60))) == ["off"]


def test_a_cap_lowered_below_what_runs_starts_nothing_and_stops_nothing():
    made = plan(active=[a_running_job("a"), a_running_job("b")], waiting=[a_job("c")], pools=pools_of(a_pool(cap=1)))
    assert (started(made), victims(made)) == ([], [])


def test_external_jobs_count_against_the_cap():
    made = plan(waiting=[a_job("a"), a_job("b")], external={P5: 1})
    assert started(made) == ["a"]


def test_a_pass_does_at_most_what_the_policy_allows():
    jobs = [a_job(f"j{i}", entry_time=at(i)) for i in range(4)]
    made = plan(waiting=jobs, pools=pools_of(a_pool(cap=4)), policy=Policy(max_actions=3))
    assert started(made) == ["j0", "j1", "j2"]
    assert reason(made, "j3") == NextPass()


def test_units_that_the_next_pass_gives_to_a_job_are_not_reserved_until_a_time_in_the_past():
    jobs = [a_job(f"j{i}", entry_time=at(i)) for i in range(3)]
    made = plan(waiting=jobs, policy=Policy(max_actions=1), now=at(60))
    assert reason(made, "j2") == ReservedForOther("j1", P5, None, needed=1, free=0)


def test_units_of_a_full_pool_are_not_said_to_be_reserved_if_those_of_another_are():
    active = [a_running_job("p", units={P5: 2}), a_running_job("g", units={G5: 1})]
    waiting = [a_job("wide", units={P5: 2}), a_job("other", units={G5: 2})]
    waiting.append(a_job("either", entry_time=at(1), demand=a_demand({P5: 1}, {G5: 1}), max_runtime=LONG))
    made = plan(active=active, waiting=waiting, pools=pools_of(a_pool(), a_pool(G5)))
    assert isinstance(reason(made, "either"), WaitsForCapacity)


@pytest.mark.parametrize("order", list(Order))
def test_only_jobs_for_which_victims_are_left_wait_for_the_next_pass(order):
    running = [a_running_job(f"r{i}", units={P5: 2}, priority=1) for i in range(3)]
    waiting = [a_job(f"w{i}", units={P5: 2}, priority=9 - i) for i in range(5)]
    policy = Policy(order=order, max_actions=2, reservations=1)
    made = plan(active=running, waiting=waiting, pools=pools_of(a_pool(cap=6)), policy=policy)
    assert [type(wait.reason) for wait in made.waits[:3]] == [Preempts, Preempts, NextPass]
    first, second = reason(made, "w3"), reason(made, "w4")
    assert second == WaitsForCapacity(P5, 2, 0)
    # The jobs that are about to start run for a day.
    expected = at(86_400) if order in {Order.BACKFILL, Order.FAIR} else None
    assert first == WaitsForCapacity(P5, 2, 0, expected)


def test_a_gang_with_more_victims_than_a_transaction_holds_takes_several():
    active = [a_running_job(f"v{i:03}") for i in range(200)]
    made = plan(active=active, waiting=[a_job("gang", priority=1, units={P5: 200})], pools=pools_of(a_pool(cap=200)))
    assert [len(p.victims) for p in made.preemptions] == [80, 80, 40]


@pytest.mark.parametrize("order", Order)
def test_all_that_a_plan_was_made_from_is_freed_without_the_garbage_collector(order):
    """A reference cycle would keep it, snapshot and all, until the collector runs: a fifth of a replay's time."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        waiting = [a_job("high", priority=1, units={P5: 2}), a_job("low")]
        assert victims(plan(active=[a_running_job("r")], waiting=waiting, policy=Policy(order=order))) == ["r"]
        gc.collect()
        assert {type(each) for each in gc.garbage if type(each).__module__.startswith("trainmaster")} == set()
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("name", ["waits", "preempts", "tried", "reserved", "behind"])
def test_every_reason_is_a_sentence_that_names_what_is_waited_for(name):
    words = {
        "waits": WaitsForCapacity(P5, 8, 4).message(),
        "preempts": Preempts(("job1",), NOW).message(),
        "tried": BackingOff(NOW, "no room").message(),
        "reserved": ReservedForOther("job9", P5, NOW, 2, 1).message(),
        "behind": Behind("job9", P5).message(),
    }[name]
    assert name in words
    assert P5 in words or "job1" in words or "no room" in words
