"""The order `gittins`: places, pinned attempts, preemption between equals, and the rules above it."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import P5, a_job, a_pool, a_preempted_job, a_running_job, a_snapshot, at, pools_of
from instant_sim import InstantSim
from trainmaster.domain.document import value_of, written
from trainmaster.domain.elastic.sizes import Elastic
from trainmaster.domain.jobs.run_times import History, RestartCost
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Gittins, Order, Policy, Share
from trainmaster.domain.records import Records
from trainmaster.planner.forecast.forecast import estimate
from trainmaster.planner.orders.gittins.order import GUARANTEED, PATIENT, PINNED, USUAL, GittinsRanking
from trainmaster.planner.schedule import schedule

HOUR = 3_600
DAY = 24 * HOUR
EAGER = Gittins(average_weight=100, min_attempt=timedelta(hours=1))
POLICY = Policy(order=Order.GITTINS, gittins=EAGER)
ONE = replace(a_pool(cap=64), accelerators_per_unit=1)
NO_RESTARTS = RestartCost(1e9, 0)


def learned(*run_times, units=1, restarts=NO_RESTARTS):
    """Return the records after jobs of this width ran for so many seconds."""
    history = History()
    for number, seconds in enumerate(run_times):
        job = a_running_job(f"past{number}", now=at(0), entry_time=at(0), units={P5: units})
        ended = replace(job.attempt, ended_at=at(seconds))
        history = history.after(replace(job, attempt=ended, state="completed", ended_at=at(seconds)), units)
    return Records(history=replace(history, restarts=restarts))


SKEWED = learned(*[600] * 20, *[40 * HOUR] * 10)
"""Most jobs take ten minutes; those that outlive an hour take days."""


def snapshot(*jobs, policy=POLICY, records=SKEWED, cap=64):
    active, waiting = [job for job in jobs if job.units], [job for job in jobs if not job.units]
    found = a_snapshot(pools=[replace(ONE, cap=cap)], active=active, waiting=waiting, policy=policy)
    return replace(found, records=records)


def ranking(now, *jobs, **fields):
    return GittinsRanking(snapshot(*jobs, **fields), now)


def level(now, job, **fields):
    return ranking(now, job, **fields).rank(job)[1]


def running(name="x", *, since=0.0, units=1, **fields):
    return a_running_job(name, now=at(since), entry_time=at(since), units={P5: units}, **fields)


def put_aside(name="x", *, entered=0.0, worked=HOUR, units=1):
    job = a_preempted_job(name, now=at(entered), entry_time=at(entered), units={P5: units})
    return replace(job, attempt=replace(job.attempt, started_at=at(entered), ended_at=at(entered + worked)))


def victims(now, *jobs, **fields):
    made = schedule(snapshot(*jobs, **fields), now, random.Random(1))
    return [victim.name for preemption in made.preemptions for victim in preemption.victims]


def in_order(now, *jobs, **fields):
    return [job.name for job in ranking(now, *jobs, **fields).waiting_in_order()]


# -- who goes first ---------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10 * DAY), min_size=2, max_size=8, unique=True), st.integers(0, 100))
def test_jobs_of_one_class_that_have_never_run_are_in_order_of_arrival(entries, weight):
    """So the first of a lane are those that the rule puts first, and a pass reads them."""
    jobs = [a_job(f"j{n}", entry_time=at(entry), units={P5: 1}) for n, entry in enumerate(entries)]
    policy = replace(POLICY, gittins=Gittins(average_weight=weight))
    names = [job.name for job in sorted(jobs, key=lambda job: job.entry_time)]
    assert in_order(at(11 * DAY), *jobs, policy=policy) == names


def test_a_deep_queue_is_served_by_what_is_left_of_jobs_and_a_short_one_by_arrival():
    now, old, new = at(9 * HOUR), put_aside("old"), a_job("new", entry_time=at(8 * HOUR), units={P5: 1})
    assert in_order(now, old, new) == ["new", "old"]
    patient = replace(POLICY, gittins=Gittins(average_weight=0))
    assert in_order(now, old, new, policy=patient) == ["old", "new"]


def test_the_widest_goes_first_among_those_that_fill_the_pool():
    jobs = [a_job(f"w{units}", entry_time=at(0), units={P5: units}) for units in (1, 2, 4)]
    assert in_order(at(60), *jobs, cap=6) == ["w4", "w2", "w1"]
    assert in_order(at(60), *jobs, cap=64) == ["w1", "w2", "w4"], "all fit"


def test_priority_dominates():
    high, low = a_job("high", entry_time=at(HOUR), priority=1), a_job("low", entry_time=at(0))
    assert in_order(at(2 * HOUR), low, high) == ["high", "low"]


# -- preemption of equals ----------------------------------------------------------------------------------------------


def test_a_new_job_displaces_one_that_has_outlived_the_short_ones():
    assert victims(at(3 * HOUR), running("old"), a_job("new", entry_time=at(2 * HOUR)), cap=1) == ["old"]


def test_an_elastic_job_is_compared_with_jobs_of_its_sizes_and_not_with_those_of_its_minimum():
    """Ten hours on eight units are eighty on one, which no job of one unit tells."""
    bounds = Elastic(min_instances=1, max_instances=8)
    records = SKEWED
    for number in range(20):
        past = a_running_job(f"wide{number}", now=at(0), entry_time=at(0), elastic=bounds, units={P5: 1})
        ended = replace(past.attempt, units={P5: 8}, ended_at=at(10 * HOUR))
        past = replace(past, attempt=ended, state="completed", ended_at=at(10 * HOUR))
        records = replace(records, history=replace(records.history.after(past, 8), restarts=NO_RESTARTS))
    fixed, grows = a_job("fixed", entry_time=at(9)), a_job("grows", entry_time=at(0), elastic=bounds)
    assert fixed.equivalence_key != grows.equivalence_key
    assert records.history.run_time(fixed, 0.0, 0.5) < HOUR
    assert records.history.run_time(grows, 0.0, 0.5) > 50 * HOUR
    waits = [a_job(f"w{number}", entry_time=at(9), units={P5: 64}) for number in range(9)]
    ranks = ranking(at(10), fixed, grows, *waits, records=records)
    assert ranks.rank(fixed) > ranks.rank(grows)


def test_an_attempt_is_pinned_for_the_shortest_attempt():
    assert level(at(HOUR - 1), running()) == PINNED
    assert level(at(HOUR), running()) == USUAL
    assert victims(at(HOUR - 1), running("old"), a_job("new", entry_time=at(600)), cap=1) == []


def test_a_higher_priority_displaces_a_pinned_attempt():
    urgent = a_job("urgent", entry_time=at(60), priority=2)
    assert victims(at(60), running("begun"), urgent, cap=1) == ["begun"]


def test_a_waiting_job_has_to_be_better_by_the_switch_ratio():
    """Both are of the long ones; the one that waits has an hour less to go."""
    now, jobs = at(3 * HOUR), (running("old", since=HOUR), put_aside("other", entered=-HOUR, worked=3 * HOUR))
    assert victims(now, *jobs, cap=1, policy=replace(POLICY, gittins=Gittins(100, switch_ratio=1))) == ["old"]
    assert victims(now, *jobs, cap=1) == []


@pytest.mark.parametrize(("spent", "displaced"), [(0.009, ["old"]), (0.011, [])])
def test_once_restarts_have_cost_their_part_all_that_runs_stays(spent, displaced):
    records = learned(*[600] * 20, *[40 * HOUR] * 10, restarts=RestartCost(1e9, spent * 1e9))
    new = a_job("new", entry_time=at(2 * HOUR))
    assert victims(at(3 * HOUR), running("old"), new, cap=1, records=records) == displaced


def test_the_budget_binds_no_higher_priority():
    records = learned(600, restarts=RestartCost(1e9, 1e9))
    urgent = a_job("urgent", entry_time=at(2 * HOUR), priority=1)
    assert victims(at(3 * HOUR), running("old"), urgent, cap=1, records=records) == ["old"]


# -- what stays above the order ---------------------------------------------------------------------------------------


def test_beyond_patience_a_job_goes_first_and_is_displaced_by_no_equal():
    policy = replace(POLICY, patience=timedelta(days=1))
    late = put_aside("late", worked=40 * HOUR)
    fresh = a_job("fresh", entry_time=at(3 * DAY), units={P5: 1})
    assert level(at(4 * DAY), late, policy=policy) == PATIENT
    assert in_order(at(4 * DAY), late, fresh, policy=policy) == ["late", "fresh"]
    assert ranking(at(4 * DAY), late, policy=policy).strict(late)


ONE_DAY = replace(POLICY, patience=timedelta(days=1))


def first_of(*jobs, now=4 * DAY, **fields):
    found = ranking(at(now), *jobs, **{"policy": ONE_DAY, "cap": 8, **fields})
    return [job.name for job in jobs if found.rank(job)[1] == PATIENT]


def waiting(*widths, **fields):
    """Return jobs of these widths, each of which arrived a minute after the one before."""
    return [a_job(f"j{n}", entry_time=at(60 * n), units={P5: w}, **fields) for n, w in enumerate(widths)]


def test_jobs_beyond_patience_go_first_on_half_of_the_pool_in_order_of_arrival():
    assert first_of(*waiting(2, 4, 2, 1)) == ["j0", "j2"]
    aside = [put_aside(f"a{n}", entered=n, worked=2 * HOUR, units=2) for n in range(3)]
    fresh = a_job("fresh", entry_time=at(4 * DAY - HOUR), units={P5: 1})
    assert in_order(at(4 * DAY), *aside, fresh, policy=ONE_DAY, cap=8) == ["a0", "a1", "fresh", "a2"]


def test_the_oldest_goes_first_however_wide_and_then_alone():
    assert first_of(*waiting(8, 1, 1)) == ["j0"]


def test_those_that_run_fill_the_half_and_are_not_displaced_by_younger_ones():
    begun = [replace(running(f"r{n}", since=3 * DAY, units=2), entry_time=at(n)) for n in (1, 2)]
    assert first_of(*begun, *waiting(2)[:1], now=4 * DAY) == ["r1", "r2", "j0"], "the oldest in any case"
    later = [replace(job, entry_time=at(3)) for job in waiting(2)]
    assert first_of(*begun, *later) == ["r1", "r2"]


def test_the_oldest_beyond_patience_displaces_a_younger_one_whatever_restarts_have_cost():
    records = learned(600, restarts=RestartCost(1e9, 1e9))
    begun = replace(running("begun", since=3 * DAY, units=4), entry_time=at(1))
    assert victims(at(4 * DAY), begun, *waiting(8), cap=8, policy=ONE_DAY, records=records) == ["begun"]


def test_a_job_that_waits_for_a_limit_or_could_never_start_keeps_no_other_from_going_first():
    shares = {"limited": Share(name="limited", max={P5: 1}), "other": Share(name="other")}
    policy = replace(ONE_DAY, shares=shares)
    limited, other = waiting(4, share="limited"), [replace(job, name="o") for job in waiting(4, share="other")]
    assert first_of(*limited, *other, policy=policy) == ["j0", "o"]
    assert first_of(*limited, *other) == ["j0"], "without limits the half is for all together"
    wide = a_job("wide", entry_time=at(-60), units={P5: 9})
    assert first_of(wide, *waiting(4)) == ["j0"]


def test_free_units_are_held_for_a_patient_job_that_waits_only_for_a_pinned_attempt():
    policy = replace(POLICY, patience=timedelta(days=1))
    big, begun = a_job("big", units={P5: 8}), running("begun", since=2 * DAY - 60, units=4)
    small = a_job("small", entry_time=at(2 * DAY - 30), units={P5: 1})
    made = schedule(snapshot(big, begun, small, cap=8, policy=policy), at(2 * DAY), random.Random(1))
    assert [start.job.name for start in made.starts] == []


LANE = replace(POLICY, gittins=replace(EAGER, guaranteed_lane=0.5))


def test_a_job_in_the_guaranteed_lane_goes_before_shorter_ones_and_is_off_by_default():
    wide = put_aside("wide", worked=2 * HOUR, units=8)
    fresh = [a_job(f"f{n}", entry_time=at(9 * HOUR), units={P5: 4}) for n in (1, 2)]
    assert in_order(at(10 * HOUR), wide, *fresh, cap=16) == ["f1", "f2", "wide"]
    assert in_order(at(10 * HOUR), wide, *fresh, cap=16, policy=LANE) == ["wide", "f1", "f2"]
    assert victims(at(10 * HOUR), running("x", since=HOUR, units=12), wide, cap=16, policy=LANE) == ["x"]


def test_a_job_stays_in_the_lane_while_it_runs_until_another_has_waited_three_times_as_long():
    """The running one has waited for four hours, and counts as having waited for twelve."""
    runs = replace(running("runs", since=4 * HOUR, units=8), entry_time=at(0))
    for waited, first in ((11 * HOUR, "runs"), (13 * HOUR, "other")):
        other = a_job("other", entry_time=at(20 * HOUR - waited), units={P5: 8})
        found = ranking(at(20 * HOUR), runs, other, cap=16, policy=LANE)
        assert [job.name for job in (runs, other) if found.rank(job)[1] == GUARANTEED] == [first]


def test_once_restarts_have_cost_their_part_no_waiting_job_gets_into_the_lane():
    records = learned(600, restarts=RestartCost(1e9, 1e9))
    wide = a_job("wide", entry_time=at(0), units={P5: 8})
    assert victims(at(2 * HOUR), running("x", units=8), wide, cap=8, policy=LANE, records=records) == []


def test_free_units_are_held_for_a_job_in_the_lane_that_waits_only_for_a_pinned_attempt():
    big, begun = a_job("big", units={P5: 8}), running("begun", since=2 * DAY - 60, units=4)
    small = a_job("small", entry_time=at(2 * DAY - 30), units={P5: 1})
    made = schedule(snapshot(big, begun, small, cap=8, policy=LANE), at(2 * DAY), random.Random(1))
    assert [start.job.name for start in made.starts] == []


def test_an_overloaded_queue_foretells_that_later_jobs_pass_and_another_does_not():
    """Ten jobs of ten hours: 100 hours of the only unit, and twice that if others pass, which the patience allows."""
    jobs = [a_job(f"j{n}", entry_time=at(n), units={P5: 1}) for n in range(10)]
    ends = {}
    for patience in (timedelta(days=5), timedelta(days=28)):
        policy = replace(POLICY, patience=patience)
        queue = snapshot(*jobs, cap=1, policy=policy, records=learned(*[10 * HOUR] * 30))
        found = estimate(queue, at(60), random.Random(1), schedule, frozenset(["j9"]))["j9"]
        assert found.low == at(60)
        ends[patience.days] = (found.high - at(60)).total_seconds()
    drain = GittinsRanking(queue, at(60)).drain(jobs[9]).total_seconds()
    assert ends[5] == pytest.approx(2 * drain)
    assert ends[28] < ends[5]
    assert 5 * DAY < 2 * drain < 28 * DAY


def test_a_near_deadline_goes_first_inside_a_priority():
    brief = {"units": {P5: 1}, "max_runtime": timedelta(minutes=10)}
    first = a_job("first", entry_time=at(0), **brief)
    due = replace(a_job("due", entry_time=at(HOUR), **brief), deadline=at(HOUR + 2_400))
    assert in_order(at(HOUR + 60), first, due, records=learned(*[600] * 30)) == ["first", "due"]
    assert in_order(at(HOUR + 1_600), first, due, records=learned(*[600] * 30)) == ["due", "first"]


def test_a_pass_without_waiting_jobs_plans_no_later_one():
    assert ranking(at(60), running()).changes_at() is None


def test_a_pass_is_planned_for_when_a_better_job_may_displace_a_pinned_one_and_hourly_else():
    narrow, wide = a_job("narrow", entry_time=at(0), units={P5: 1}), a_job("wide", entry_time=at(0), units={P5: 8})
    assert ranking(at(60), running("wide", units=8), narrow).changes_at() == at(HOUR)
    assert ranking(at(60), running("narrow"), wide).changes_at() == at(60 + HOUR)


def test_nothing_known_is_served_in_order_of_the_least_work_done():
    """Without history the index is twice the age: least attained service."""
    served, new = put_aside("served"), a_job("new", entry_time=at(30), units={P5: 1})
    assert in_order(at(2 * HOUR), served, new, records=Records()) == ["new", "served"]


def test_short_jobs_finish_fast_and_long_ones_finish():
    """A five-day job on all units, then a short one each day, each of which starts within the hour."""
    pool = {P5: replace(ONE, cap=8)}
    long = (a_job("long", units={P5: 8}), 5.0 * DAY)
    short = [(a_job(f"s{n}", entry_time=at(n * DAY + 100 * n), units={P5: 8}), 1_800.0) for n in range(1, 6)]
    sim = InstantSim(pool, replace(POLICY, gittins=replace(EAGER, restart_budget=1)), restart=300).run([long, *short])
    assert all(sim.wait_of(job.name) <= timedelta(minutes=61) for job, _ in short)
    assert sim.jobs["long"].preemptions == len(short)


# -- the name ---------------------------------------------------------------------------------------------------------


def test_settings_and_exports_with_the_name_of_the_replaced_order_mean_gittins():
    assert Order("least-attained-service") is Order.GITTINS
    stored = {**written(POLICY), "order": "least-attained-service"}
    assert value_of(Policy, stored) == POLICY
    with pytest.raises(ValueError, match="srpt"):
        Order("srpt")


def test_a_plan_of_a_snapshot_without_jobs_is_empty():
    empty = Snapshot(pass_number=1, pools=pools_of(ONE), policy=POLICY)
    assert schedule(empty, at(0), random.Random(1)).decisions == ()
