"""Least attained service: levels, the longest wait inside one, and preemption between levels."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from builders import P5, a_job, a_pool, a_preempted_job, a_running_job, a_snapshot, at, pools_of
from instant_sim import InstantSim
from trainmaster.domain.jobs.run_times import History
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.policy.settings import Order, Policy
from trainmaster.domain.records import Records
from trainmaster.planner.orders.least_attained_service import (
    FRESH,
    GUARANTEED,
    HEAVIEST,
    PATIENT,
    PINNED,
    SERVED,
    AttainedServiceRanking,
)
from trainmaster.planner.schedule import schedule

HOUR = 3_600
DAY = 24 * HOUR
LAS = Policy(order=Order.LEAST_ATTAINED_SERVICE)
ONE = replace(a_pool(cap=64), accelerators_per_unit=1)


def ranking(now, *jobs, records=None, policy=LAS):
    active = [job for job in jobs if job.units]
    waiting = [job for job in jobs if not job.units]
    snapshot = a_snapshot(pools=[ONE], active=active, waiting=waiting, policy=policy)
    return AttainedServiceRanking(replace(snapshot, records=records or Records()), now)


def level(now, job, **fields):
    return ranking(now, job, **fields).rank(job)[1]


def running(name="x", *, since=0.0, units=1, **fields):
    return a_running_job(name, now=at(since), entry_time=at(since), units={P5: units}, **fields)


def remembered(*waits, seconds=HOUR):
    """Return the history after large jobs waited so long and ran for so many seconds."""
    history = History()
    for number, wait in enumerate(waits):
        job = a_running_job(f"past{number}", now=at(wait), entry_time=at(0), units={P5: 8})
        ended = replace(job.attempt, ended_at=at(wait + seconds))
        history = history.after(replace(job, attempt=ended, state="completed", ended_at=at(wait + seconds)), 8)
    return Records(history=history)


def plan_of(now, active, waiting, *, cap, policy=LAS):
    pool = replace(ONE, cap=cap)
    snapshot = Snapshot(
        pass_number=1, pools=pools_of(pool), active=tuple(active), waiting=tuple(waiting), policy=policy
    )
    return schedule(snapshot, now, random.Random(1))


def test_a_job_that_has_never_run_is_fresh():
    assert level(at(0), a_job(units={P5: 8})) == FRESH


def test_a_job_at_work_is_pinned_for_half_an_hour():
    assert level(at(1_799), running()) == PINNED
    assert level(at(1_800), running()) == FRESH


@pytest.mark.parametrize(
    ("units", "fresh_for"), [(1, 360_000), (4, 90_000), (8, 3_600), (32, 1_800)], ids=["1", "4", "8", "32"]
)
def test_how_long_a_job_is_fresh_follows_from_its_width(units, fresh_for):
    job = running(units=units)
    assert level(at(fresh_for - 1), job) == (PINNED if fresh_for <= 1_800 else FRESH)
    assert level(at(fresh_for + 1), job) == SERVED


def test_all_attempts_count_as_service():
    """Half an hour in an earlier attempt, half in this one: a whole hour on 8 accelerators."""
    job = a_preempted_job("x", now=at(0), entry_time=at(0), units={P5: 8})
    past = replace(job.attempt, started_at=at(0), ended_at=at(3_601))
    assert level(at(2 * HOUR), replace(job, attempt=past)) == SERVED


def test_inside_a_level_the_longest_wait_goes_first_not_the_first_arrival():
    """The older job has worked all the time but for an hour; the younger one has waited for three."""
    old = a_preempted_job("old", now=at(0), entry_time=at(0), units={P5: 8})
    old = replace(old, attempt=replace(old.attempt, started_at=at(0), ended_at=at(9 * HOUR)))
    young = a_preempted_job("young", now=at(5 * HOUR), entry_time=at(5 * HOUR), units={P5: 8})
    young = replace(young, attempt=replace(young.attempt, started_at=at(5 * HOUR), ended_at=at(7 * HOUR)))
    ranked = ranking(at(10 * HOUR), old, young)
    assert [job.name for job in ranked.in_order([old, young])] == ["young", "old"]


def test_a_fresh_job_displaces_a_served_equal_but_not_one_that_has_just_begun():
    served = running("served", units=8)
    begun = running("begun", since=2 * HOUR - 60, units=8)
    fresh = a_job("fresh", entry_time=at(2 * HOUR), units={P5: 8})
    made = plan_of(at(2 * HOUR), [served, begun], [fresh], cap=16)
    assert [v.name for p in made.preemptions for v in p.victims] == ["served"]


def test_priority_dominates_levels():
    higher = running("higher", units=8, priority=1)
    fresh = a_job("fresh", entry_time=at(2 * HOUR), units={P5: 8})
    assert not plan_of(at(2 * HOUR), [higher], [fresh], cap=8).preemptions
    urgent = a_job("urgent", entry_time=at(60), units={P5: 8}, priority=2)
    made = plan_of(at(60), [higher], [urgent], cap=8)
    assert [v.name for p in made.preemptions for v in p.victims] == ["higher"], "half an hour binds equals alone"


def test_who_has_waited_a_little_longer_does_not_displace_an_equal_at_work():
    """Both have had their 100 GPU-hours. The one at work never waited, the other does since its 26 hours ended."""
    working = running("working", units=4)
    waited = a_preempted_job("waited", now=at(0), entry_time=at(0), units={P5: 4})
    waited = replace(waited, attempt=replace(waited.attempt, started_at=at(0), ended_at=at(26 * HOUR)))
    assert not plan_of(at(26 * HOUR + 24_000), [working], [waited], cap=4).preemptions
    made = plan_of(at(26 * HOUR + 26_000), [working], [waited], cap=4)
    assert [v.name for p in made.preemptions for v in p.victims] == ["working"]


def test_a_large_job_that_has_waited_longer_than_nearly_all_before_it_goes_before_fresh_ones():
    records = remembered(*[HOUR] * 19, 10 * HOUR)
    waiting = a_job("waiting", units={P5: 8})
    assert level(at(2 * HOUR), waiting, records=remembered(*[5 * HOUR] * 20)) == FRESH
    assert level(at(2 * HOUR), waiting, records=records) == GUARANTEED


def test_only_a_third_of_a_pool_is_guaranteed_and_the_first_of_all_always():
    jobs = [a_job(f"j{n}", entry_time=at(n), units={P5: 8}) for n in range(4)]
    ranked = ranking(at(DAY), *jobs, records=remembered(*[HOUR] * 20))
    assert sorted(ranked.guaranteed()) == ["j0", "j1"], "0.35 of 64 units"
    wide = [a_job(f"w{n}", entry_time=at(n), units={P5: 48}) for n in range(2)]
    assert sorted(ranking(at(DAY), *wide, records=remembered(*[HOUR] * 20)).guaranteed()) == ["w0"]


def test_seven_in_a_thousand_of_the_large_jobs_may_be_set_back():
    heavy = running("heavy", units=32)
    others = [a_job(f"j{n}", entry_time=at(n), units={P5: 8}) for n in range(3)]
    now = at(10 * HOUR)
    known = remembered(*[60.0] * 150)
    assert ranking(now, heavy, *others, records=known).heaviest() == {"heavy"}
    assert level(now, heavy, records=known) == SERVED, "no other job waits"
    assert ranking(now, heavy, *others, records=remembered(*[60.0] * 100)).heaviest() == frozenset()
    # One that has ended had waited longer than all others wait now: it used the allowance up.
    assert ranking(now, heavy, *others, records=remembered(*[60.0] * 150, 90 * HOUR)).heaviest() == frozenset()


def test_who_is_set_back_comes_back_after_three_times_the_wait_of_the_others():
    heavy = a_preempted_job("heavy", now=at(0), entry_time=at(0), units={P5: 32})
    heavy = replace(heavy, attempt=replace(heavy.attempt, started_at=at(0), ended_at=at(5 * HOUR)))
    known = remembered(*[60.0] * 150)
    other = a_job("other", entry_time=at(15 * HOUR), units={P5: 8})
    assert level(at(17 * HOUR), heavy, records=known) in (SERVED, GUARANTEED)
    waits = ranking(at(17 * HOUR), heavy, replace(other, entry_time=at(10 * HOUR)), records=known)
    assert waits.rank(heavy)[1] == HEAVIEST


def test_beyond_patience_a_job_is_displaced_by_no_equal():
    policy = replace(LAS, patience=timedelta(days=1))
    patient = a_preempted_job("patient", now=at(0), entry_time=at(0), units={P5: 8})
    patient = replace(patient, attempt=replace(patient.attempt, started_at=at(0), ended_at=at(HOUR)))
    assert level(at(3 * DAY), patient, policy=policy) == PATIENT


def test_free_units_are_held_for_a_long_waiting_job_that_only_the_half_hour_of_others_keeps_waiting():
    """Else ever new small jobs would start on the free units, and be protected for half an hour each."""
    big = a_job("big", units={P5: 8})
    begun = running("begun", since=2 * DAY - 60, units=4)
    small = a_job("small", entry_time=at(2 * DAY - 30), units={P5: 1})
    made = plan_of(at(2 * DAY), [begun], [big, small], cap=8)
    assert [start.job.name for start in made.starts] == []


def test_short_jobs_finish_fast_and_long_ones_finish():
    """A week-long job on all units, then an hour's job each day: each of those starts within minutes."""
    pool = {P5: replace(ONE, cap=8)}
    long = (a_job("long", units={P5: 8}), 5.0 * DAY)
    short = [(a_job(f"s{n}", entry_time=at(n * DAY + 100 * n), units={P5: 8}), 1_800.0) for n in range(1, 6)]
    sim = InstantSim(pool, LAS, restart=300).run([long, *short])
    assert all(sim.wait_of(job.name) <= timedelta(minutes=31) for job, _ in short)
    assert sim.jobs["long"].preemptions == len(short)
