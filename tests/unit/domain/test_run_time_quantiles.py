"""Quantiles of run times: the fewer jobs have ended, the wider the range, around the same median."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, a_job
from trainmaster.domain.jobs.run_times import EDGES, History, Sketch, bucket_of

JOB = a_job(max_runtime=timedelta(days=28))
HOUR = 3600.0


def knowing(*seconds: float) -> History:
    """Return the history after jobs of the kind of `JOB` have run so long."""
    sketch = Sketch()
    for each in seconds:
        sketch = sketch.after(each, NOW)
    return History(dict.fromkeys(JOB.run_time_classes, sketch))


def quantiles(history: History, elapsed: float = 0.0) -> list[float]:
    found = [history.run_time(JOB, elapsed, at) for at in (0.05, 0.5, 0.9)]
    return [each for each in found if each is not None]


def test_of_many_jobs_the_quantiles_are_their_own():
    low, usual, high = quantiles(knowing(*range(150, 60_150, 150)))
    assert low == pytest.approx(0.05 * 60_000, rel=0.1)
    assert usual == pytest.approx(0.5 * 60_000, rel=0.1)
    assert high == pytest.approx(0.9 * 60_000, rel=0.1)


def test_of_few_jobs_the_range_reaches_beyond_them_and_the_median_stays():
    few, many = quantiles(knowing(*[HOUR] * 4)), quantiles(knowing(*[HOUR] * 400))
    edge = EDGES[bucket_of(HOUR) + 1]
    assert few[1] == many[1]
    assert few[0] == 0, "one of six, those imagined included, ends at once"
    assert few[2] == pytest.approx(edge * (1 / 6) / 0.1), "one of six outlives all"
    assert EDGES[bucket_of(HOUR)] <= many[0] < many[2] <= edge


def test_a_job_that_outlives_all_may_run_for_ten_times_as_long():
    low, usual, high = quantiles(knowing(*[60.0] * 50), elapsed=10 * HOUR)
    assert low == pytest.approx(10 * HOUR / 0.95)
    assert usual == 20 * HOUR
    assert high == pytest.approx(100 * HOUR)


def test_what_few_have_outlived_is_uncertain_however_many_jobs_have_ended():
    history = knowing(*[60.0] * 500, *[20 * HOUR] * 3)
    low, usual, high = quantiles(history, elapsed=10 * HOUR)
    assert low == 10 * HOUR
    assert 16 * HOUR < usual < 24 * HOUR
    assert high > 1.9 * 20 * HOUR


def test_nothing_is_known_before_a_job_has_ended():
    assert History().run_time(JOB, 0.0, 0.9) is None


TIMES = st.lists(st.floats(1.0, 3e6), min_size=1, max_size=40)


@given(TIMES, st.floats(0, 4e6))
def test_quantiles_ascend_and_no_job_ends_before_now(times, elapsed):
    low, usual, high = quantiles(knowing(*times), elapsed)
    assert elapsed <= low <= usual <= high


@pytest.mark.parametrize("count", [8, 20, 60])
def test_four_of_five_jobs_end_in_the_range_however_few_are_known(count):
    draw, inside, times = random.Random(3), 0, 600
    for _ in range(times):
        *past, new = (draw.lognormvariate(8, 2) for _ in range(count + 1))
        low, _, high = quantiles(knowing(*past))
        inside += low <= new <= high
    assert inside / times > 0.8
