"""The other parts of `gittins`: boost, filling, restart budget, joined pools, learned classes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import G5, P5, a_job, a_pool, a_preempted_job, a_running_job, a_snapshot, at
from trainmaster.domain.capacity.read_limits import FIRST
from trainmaster.domain.jobs.attempt import Outcome
from trainmaster.domain.jobs.run_times import (
    MAX_COUNTED,
    MAX_HALVED,
    NO_COST,
    RESTART_SECONDS,
    History,
    RestartCost,
    Sketch,
    bucket_of,
)
from trainmaster.domain.records import Records
from trainmaster.planner.orders.gittins.boost import SHORTEST_HORIZON, boost, horizon, work
from trainmaster.planner.orders.gittins.competition import Competitions
from trainmaster.planner.orders.gittins.filling import server_filling
from trainmaster.planner.orders.gittins.guaranteed_lane import WIDE, LaneCandidate, guaranteed
from trainmaster.planner.orders.gittins.learned import LearnedLifetimes
from trainmaster.planner.orders.gittins.lifetimes import unknown
from trainmaster.planner.orders.gittins.patient_jobs import PatientJob, go_first
from trainmaster.planner.orders.gittins.rivals import MAX_LONGER, AllRivals

seconds = st.floats(1.0, 1e7)
widths = st.lists(st.integers(1, 64), max_size=12)


# -- boost ------------------------------------------------------------------------------------------------------------


@given(seconds, seconds)
def test_the_boost_inverts_the_published_formula(needed, span):
    """exp(-boost / T) = 1 - exp(-x / T)."""
    assert math.exp(-boost(needed, span) / span) == pytest.approx(-math.expm1(-needed / span), rel=1e-9)


@given(seconds, seconds, seconds)
def test_the_less_work_the_longer_the_boost_and_the_longer_the_horizon_too(needed, more, span):
    assert boost(needed, span) >= boost(needed + more, span) >= 0
    assert boost(needed, span + more) >= boost(needed, span) * (1 - 1e-9)


@given(seconds, seconds, seconds)
def test_for_a_long_horizon_only_the_ratio_of_work_decides(one, other, span):
    """ln(x'/x) horizons lie between two jobs, which then no difference of arrival makes up for: the Gittins order."""
    deep = 1e6 * max(one, other, span)
    assert boost(one, deep) - boost(other, deep) == pytest.approx(deep * math.log(other / one), abs=1e-5 * deep)


@given(seconds)
def test_for_a_short_queue_no_job_of_ordinary_work_is_boosted(needed):
    assert boost(needed + 31 * SHORTEST_HORIZON, horizon(0.3, 0.0)) == 0


@given(st.floats(0, 10), st.floats(0, 1e9))
def test_the_horizon_is_a_part_of_the_time_to_drain_the_queue(weight, drain):
    assert horizon(weight, drain) == max(SHORTEST_HORIZON, weight * drain)


@given(seconds, st.integers(1, 64))
def test_work_counts_all_gpus_of_a_job(index, gpus):
    assert work(index, 2 * gpus, 128) == pytest.approx(2 * work(index, gpus, 128))


# -- filling ----------------------------------------------------------------------------------------------------------


@given(widths, st.integers(-8, 128))
def test_only_the_jobs_that_fill_the_pool_change_places(found, capacity):
    places = server_filling(found, capacity)
    count = next((n for n in range(len(found) + 1) if sum(found[:n]) >= capacity), len(found))
    assert sorted(places[:count]) == list(range(count))
    assert places[count:] == list(range(count, len(found)))


@given(st.lists(st.sampled_from([1, 2, 4, 8, 16]), max_size=40))
def test_with_widths_of_powers_of_two_no_unit_of_such_a_pool_stays_idle(found):
    """The theorem of the paper: placed greedily, the widest first, they fill it exactly if there are enough."""
    left = 16
    for place in server_filling(found, 16):
        left -= found[place] if found[place] <= left else 0
    assert left == max(16 - sum(found), 0)


@given(widths)
def test_jobs_that_all_fit_stay_in_order(found):
    assert server_filling(found, sum(found)) == list(range(len(found)))


# -- rivals -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=12))
def test_a_priority_waits_for_all_work_of_its_own_and_of_higher_ones_in_its_pools(found):
    jobs = [
        a_job(f"j{n}", entry_time=at(n), priority=priority, units={(P5, G5)[n % 2]: units})
        for n, (priority, units) in enumerate(found)
    ]
    pools = [replace(a_pool(name, cap=8), accelerators_per_unit=1) for name in (P5, G5)]
    rivals = AllRivals.of(a_snapshot(pools=pools, waiting=jobs), at(60))
    for job in jobs:
        ahead = [other for other in jobs if other.priority >= job.priority and other.demand.pools == job.demand.pools]
        work_ahead = sum(unknown(0.0) * other.demand.size / 8 for other in ahead)
        assert rivals.drain(job) == pytest.approx(work_ahead)


def lane_of(count, *, every=60.0, **fields):
    """Return the jobs of one lane, of which one arrives every so many seconds."""
    return [a_job(f"j{n:04}", entry_time=at(every * n), units={P5: 1}, **fields) for n in range(count)]


def whole_drains(jobs, now, *, cut=False):
    """Return for how many new jobs the horizon is made, by priority, those of higher ones included."""
    pools = [replace(a_pool(cap=8), accelerators_per_unit=1)]
    snapshot = a_snapshot(pools=pools, waiting=jobs)
    snapshot = replace(snapshot, cut_lanes=frozenset({jobs[-1].lane}) if cut else frozenset())
    found = AllRivals.of(snapshot, at(now)).by_priority()
    return {each.priority: pytest.approx(each.whole_drain * 8 / unknown(0.0)) for each in found}


@given(st.integers(FIRST + 1, 10 * FIRST), st.floats(0.0, 1e4))
def test_unread_jobs_of_a_lane_count_as_many_as_the_arrival_of_those_read_tells(count, later):
    jobs, every = lane_of(count), 60.0
    now = every * (count - 1) + later
    expected = FIRST * min(now / (every * (FIRST - 1)), MAX_LONGER)
    assert whole_drains(jobs[:FIRST], now, cut=True) == {0: expected}
    assert whole_drains(jobs, now) == {0: expected}, "an estimate, which reads deeper, has the same horizon"


def test_a_lane_that_was_read_to_its_end_has_no_other_jobs():
    assert whole_drains(lane_of(FIRST), 1e6) == {0: FIRST}


def test_of_jobs_that_came_at_once_ten_times_as_many_as_were_read_are_expected():
    assert whole_drains(lane_of(FIRST, every=0.0), 1e6, cut=True) == {0: MAX_LONGER * FIRST}
    assert whole_drains(lane_of(FIRST, every=1.0), 1e6, cut=True) == {0: MAX_LONGER * FIRST}
    assert whole_drains(lane_of(FIRST, every=0.0), 0.0, cut=True) == {0: MAX_LONGER * FIRST}


def test_unread_jobs_have_the_priority_of_the_last_one_that_was_read():
    urgent, usual = (
        lane_of(FIRST - 2, priority=1, every=0.0),
        [a_job(name, entry_time=at(moment), units={P5: 1}) for name, moment in (("a", 0.0), ("b", 100.0))],
    )
    assert whole_drains([*urgent, *usual], 400.0, cut=True) == {1: FIRST - 2, 0: FIRST - 2 + 2 * 4}


# -- restart budget ---------------------------------------------------------------------------------------------------


def ended(number, *, ran=3_600, outcome=Outcome.PREEMPTED, checkpointed=True):
    job = a_running_job(f"j{number}", now=at(0), entry_time=at(0), units={P5: 2})
    return replace(job, attempt=replace(job.attempt, ended_at=at(ran), outcome=outcome), checkpointed=checkpointed)


def test_the_budget_counts_gpu_time_of_all_attempts_and_of_the_restarts_after_preemptions():
    history = History().after(ended(1, outcome=Outcome.COMPLETED), 2)
    assert history.restarts == RestartCost(7_200, 0)
    assert not history.restarts.exceeds(0)
    assert history.after(ended(2), 2).restarts.restarts == 2 * RESTART_SECONDS


def test_a_job_without_checkpoints_loses_all_that_it_has_done():
    history = History().after(ended(1, checkpointed=False), 2)
    assert history.restarts.restarts == 2 * (RESTART_SECONDS + 3_600)


def test_a_long_start_up_counts_in_full():
    slow = ended(1, outcome=Outcome.COMPLETED)
    history = History().after(replace(slow, attempt=replace(slow.attempt, created_at=at(-900))), 2)
    assert history.restart_cost(ended(2)) == 900


@given(st.lists(st.tuples(seconds, st.floats(0, 1e5)), min_size=1, max_size=30), st.floats(0, 1))
def test_the_budget_is_a_part_of_the_work_and_old_attempts_fade_from_both(attempts, budget):
    cost = NO_COST
    for worked, restart in attempts:
        cost = cost.after(worked, restart)
    assert cost.exceeds(budget) == (cost.restarts > budget * cost.worked)
    assert 0 <= cost.worked <= sum(worked for worked, _ in attempts) * (1 + 1e-9)


# -- joined pools -----------------------------------------------------------------------------------------------------


def test_pools_compete_where_a_job_could_run_in_either():
    one, other, third = a_pool(P5, 4), a_pool(G5, 8), a_pool("ml.g6.xlarge", 16)
    pools = {pool.name: pool for pool in (one, other, third)}
    jobs = [a_job("p", units={P5: 1}), a_job("g", units={G5: 1}), a_job("x", units={"ml.g6.xlarge": 1})]
    apart = Competitions.of(pools, {P5: 1}, jobs)
    assert len({apart.group(job) for job in jobs}) == 3
    assert apart.capacity(apart.group(jobs[0])) == 3 * max(one.accelerators, 1)
    both = a_job("both")
    both = replace(both, demand=replace(both.demand, alternatives=({P5: 1}, {G5: 2})))
    joined = Competitions.of(pools, {}, [*jobs, both])
    assert joined.group(jobs[0]) == joined.group(jobs[1]) == joined.group(both) != joined.group(jobs[2])
    assert joined.capacity(joined.group(both)) == 4 * max(one.accelerators, 1) + 8 * max(other.accelerators, 1)


# -- learned classes --------------------------------------------------------------------------------------------------


def learned(*jobs, history):
    active, waiting = [job for job in jobs if job.units], [job for job in jobs if not job.units]
    snapshot = a_snapshot(pools=[a_pool(cap=64)], active=active, waiting=waiting)
    return LearnedLifetimes.of(replace(snapshot, records=Records(history=history)), at(7_200))


def after(history, count, *, ran, units=1, image="", since=0):
    start, end = at(since), at(since + ran)
    for number in range(count):
        job = a_running_job(f"e{ran}-{units}-{number}", now=start, entry_time=start, units={P5: units})
        job = replace(job, container_image=image, attempt=replace(job.attempt, ended_at=end))
        history = history.after(replace(job, state="completed", ended_at=end), 1)
    return history


def test_nothing_is_known_before_the_first_end():
    assert learned(history=History()).lifetimes(a_job("x")) is None


def test_each_width_class_learns_for_itself():
    history = after(after(History(), 30, ran=600), 30, ran=36_000, units=8)
    found = learned(history=history)
    assert found.lifetimes(a_job("narrow", units={P5: 1})).index(0) < 3_600
    assert found.lifetimes(a_job("wide", units={P5: 8})).index(0) > 3_600


def test_a_kind_counts_once_it_has_shown_enough():
    """Most jobs of one instance take ten hours. Those of one image take ten minutes; three ends do not prove it."""
    common, own = after(History(), 40, ran=36_000, image="common"), replace(a_job("x"), container_image="quick")
    few, many = (learned(history=after(common, count, ran=600, image="quick")) for count in (3, 12))
    assert many.lifetimes(own).index(0) < 3_600 < few.lifetimes(own).residual(0)
    assert many.lifetimes(own).residual(0) < few.lifetimes(own).residual(0)


def test_jobs_that_still_run_show_that_their_class_is_longer_than_its_ends():
    history = after(History(), 10, ran=600)
    running = [a_running_job(f"r{n}", now=at(0), entry_time=at(0), units={P5: 1}) for n in range(10)]
    job = a_job("x", units={P5: 1})
    alone, beside = learned(history=history), learned(*running, history=history)
    assert beside.lifetimes(job).residual(0) > alone.lifetimes(job).residual(0)


def test_classes_halve_their_weights_once_they_have_enough_and_note_when():
    sketch = Sketch({20: 1.0})
    for n in range(int(MAX_COUNTED) - 1):
        sketch = sketch.after(60, at(n))
    assert (sketch.weights[20], sketch.halved) == (1, ())
    halved = sketch.after(60, at(1_000.5))
    assert halved == Sketch({20: 0.5, 3: (MAX_COUNTED - 1) / 2 + 1}, (at(1_000),))
    assert [halved.weight_of(at(time)) for time in (999, 1_000.5)] == [0.5, 1]


def test_ends_that_are_reported_late_leave_the_halvings_in_order():
    sketch = Sketch({3: MAX_COUNTED}, (at(900),)).after(60, at(600))
    assert sketch.halved == (at(900), at(900))
    assert sketch.weight_of(at(899)) == 0.25


def test_a_job_weighs_what_the_sketch_kept_of_those_that_ended_with_it():
    """However many jobs end, several at a time: the sum of the weights is that of the sketch."""
    sketch, ends = Sketch(), []
    for n in range(int(4 * MAX_COUNTED)):
        ends.append(at(60 * (n - n % 3)))
        sketch = sketch.after(60, ends[-1])
    assert len(sketch.halved) > 4
    assert sum(map(sketch.weight_of, ends)) == pytest.approx(sketch.total, rel=0.02)


def test_halvings_that_are_kept_are_bounded():
    sketch = Sketch()
    for n in range(int(10 * MAX_COUNTED)):
        sketch = sketch.after(60, at(n))
    assert len(sketch.halved) == MAX_HALVED
    assert 0 < sketch.weight_of(at(0)) < 0.01


@pytest.mark.parametrize("periods", [1, 20])
def test_what_was_put_aside_is_forgotten_with_what_ended_beside_it(periods):
    """One job in ten is put aside after an hour, the others end within ten minutes, however long that goes on."""
    history, aside, job = History(), [], a_job("x", units={P5: 1})
    for n in range(int(periods * MAX_COUNTED / 2)):
        if n % 10:
            history = after(history, 1, ran=600, since=600 * n)
        else:
            left = a_preempted_job(f"a{n}", now=at(600 * n), entry_time=at(600 * n), units={P5: 1})
            attempt = replace(left.attempt, ended_at=at(600 * n + 3_600))
            aside.append(replace(left, attempt=attempt))
    outlive = learned(*aside, history=history).lifetimes(job).alive[bucket_of(1_800)]
    assert outlive == pytest.approx(0.1, abs=0.02)


# -- jobs beyond the patience ------------------------------------------------------------------------------------------


drawn_patient = st.lists(st.tuples(st.integers(1, 64), st.booleans(), st.sampled_from("ab")), max_size=12)


@given(drawn_patient, st.integers(1, 64))
def test_the_oldest_beyond_patience_goes_first_and_others_only_as_far_as_they_fit(drawn, room):
    jobs = [PatientJob(at(n), f"j{n}", width, runs, (share, "", "")) for n, (width, runs, share) in enumerate(drawn)]
    first = list(go_first(jobs, room))
    assert first[:1] == [job.name for job in jobs[:1]]
    by_name = {job.name: job for job in jobs}
    for share in "ab":
        together = [by_name[name] for name in first if by_name[name].runs or by_name[name].limited[0] == share]
        held = [job for job in together if job.runs]
        assert len(held) < 2 or sum(job.width for job in held) <= room
        waits = [job for job in together if not job.runs]
        ahead = [job for job in together if waits and job <= waits[-1]]
        assert len(ahead) < 2 or sum(job.width for job in ahead) <= room


# -- the guaranteed lane ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 64), st.integers(0, 99)), max_size=12), st.floats(0, 128))
def test_the_lane_holds_the_longest_waiting_wide_jobs_that_fit_and_the_first_in_any_case(drawn, room):
    jobs = [LaneCandidate(0, -float(waited), f"j{n}", width) for n, (width, waited) in enumerate(drawn)]
    wide = sorted(job for job in jobs if job.width >= WIDE)
    inside = set(guaranteed(jobs, room))
    assert inside <= {job.name for job in wide}
    assert not wide or wide[0].name in inside
    held = 0.0
    for job in wide:
        fits = held + job.width <= room
        assert (job.name in inside) is (job is wide[0] or fits)
        held += job.width if job.name in inside else 0


def test_higher_priorities_take_the_lane_first():
    jobs = [LaneCandidate(0, -99.0, "old", 8), LaneCandidate(-1, -1.0, "urgent", 8)]
    assert list(guaranteed(jobs, 8)) == ["urgent"]
