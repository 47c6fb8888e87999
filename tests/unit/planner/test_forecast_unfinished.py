"""Estimates of run times from unfinished jobs: those that run on show that jobs have become longer."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, a_job, a_pool, a_preempted_job, a_running_job, pools_of
from samples import examples
from trainmaster.domain.jobs.attempt_totals import AttemptTotals
from trainmaster.domain.jobs.run_time_classes import ALL
from trainmaster.domain.jobs.run_times import History, Sketch, bucket_of
from trainmaster.domain.plan import Snapshot
from trainmaster.domain.records import Records
from trainmaster.planner.forecast.forecast import estimate
from trainmaster.planner.forecast.simulation import QueueSimulation
from trainmaster.planner.forecast.unfinished import counting_unfinished
from trainmaster.planner.schedule import schedule

HOUR = timedelta(hours=1)
KINDS = a_job().run_time_classes


def a_queue(ended, ages, *, waiting=(), cap=40):
    """A queue in which jobs of these hours have ended, and others run for so many hours so far."""
    weights: dict[int, float] = {}
    for hours in ended:
        bucket = bucket_of(hours * 3600)
        weights[bucket] = weights.get(bucket, 0.0) + 1.0
    history = History({kind: Sketch(weights) for kind in KINDS}) if ended else History()
    active = tuple(a_running_job(f"job{place}", now=NOW - hours * HOUR) for place, hours in enumerate(ages))
    pools = pools_of(a_pool(cap=cap))
    return Snapshot(pass_number=1, pools=pools, active=active, waiting=tuple(waiting), records=Records(history))


def weights_of(snapshot):
    return counting_unfinished(snapshot, NOW).records.history.kinds[ALL].by_bucket


def latest_start(snapshot):
    names = frozenset(job.name for job in snapshot.waiting)
    (found,) = estimate(snapshot, NOW, random.Random(1), schedule, names).values()
    return found


def test_run_times_stay_as_they_are_while_nothing_runs():
    snapshot = a_queue([0.5, 0.5, 4], [])
    assert weights_of(snapshot) == snapshot.records.history.kinds[ALL].by_bucket
    waiting = a_queue([0.5], [], waiting=[a_job("new")])
    assert weights_of(waiting) == waiting.records.history.kinds[ALL].by_bucket


def test_jobs_that_run_on_count_behind_those_that_they_have_outlived():
    """Two jobs took half an hour, and two have run for two hours; whatever is twice as long is half as likely."""
    found = weights_of(a_queue([0.5, 0.5], [2, 2]))
    beyond = bucket_of(2 * 3600) + 1
    assert found[bucket_of(1_800)] == pytest.approx(2)
    assert sum(found[beyond:]) == pytest.approx(2)
    assert found[beyond] + found[beyond + 1] == pytest.approx(1)
    assert sum(found[:beyond]) == pytest.approx(2)


def test_jobs_that_were_put_aside_count_too():
    aside = a_preempted_job("aside").changed(attempt_totals=AttemptTotals(at_work=3_600.0))
    snapshot = a_queue([0.01], [], waiting=[aside])
    assert sum(weights_of(snapshot)) == pytest.approx(2)


def test_a_class_without_an_end_has_no_run_times():
    assert counting_unfinished(a_queue([], [2]), NOW).records.history.kinds == {}


hours = st.floats(0.01, 1_000)


@examples(200)
@given(st.lists(hours, min_size=1, max_size=20), st.lists(hours, max_size=20))
def test_unfinished_jobs_never_make_others_look_shorter(ended, ages):
    snapshot = a_queue(ended, ages)
    found, before = weights_of(snapshot), snapshot.records.history.kinds[ALL].by_bucket
    assert min(found) >= 0
    assert sum(found) == pytest.approx(len(ended) + len(ages))
    for longer, shorter in zip(accumulate(found), accumulate(before), strict=True):
        assert longer / sum(found) <= shorter / sum(before) + 1e-9, "fewer end by any time"


@examples(100)
@given(st.lists(hours, max_size=20), st.lists(hours, min_size=1, max_size=20))
def test_no_job_ends_sooner_for_them_in_the_slow_simulation_and_none_otherwise_in_the_others(ended, ages):
    snapshot = a_queue(ended, ages)
    for quantile in (0.05, 0.5, 0.9):
        simulation = QueueSimulation.of(snapshot, NOW, quantile)
        known = simulation.expected_ends[0]
        assert known.snapshot is snapshot
        for job in snapshot.active:
            assert simulation.ends[job.name] >= known.end(job) or quantile < 0.5
        assert len(simulation.expected_ends) == (2 if quantile > 0.5 else 1)


def test_a_burst_of_longer_jobs_moves_the_latest_start_before_any_of_them_has_ended():
    """All jobs took half an hour so far; the forty of a new sweep have run for three hours, and the next ones wait."""
    waiting = [a_job("next")]
    new, old = (latest_start(a_queue([0.5] * 80, [age] * 40, waiting=waiting)) for age in (3, 0.01))
    assert old.high - NOW < HOUR
    assert new.high - NOW > 3 * HOUR
