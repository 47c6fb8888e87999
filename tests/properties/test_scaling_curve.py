"""Properties of the curve by which elastic jobs scale, and of its fit to reported speeds."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders import NOW
from trainmaster.domain.elastic.scaling import (
    COMMUNICATION_SPREAD,
    ENOUGH_REPORTS,
    LINEAR,
    MAX_KIND_JOBS,
    MAX_RATE,
    MAX_REPORTS,
    MAX_SIZES,
    MIN_PERIOD,
    MIN_RATE,
    NOISE,
    RETRY_SLOWER,
    SERIAL_SPREAD,
    KindCurve,
    ScalingCurve,
    Speed,
    Speeds,
    fit,
    mixed,
)

PARTS = st.floats(0, 1, allow_subnormal=False)
CURVES = st.builds(ScalingCurve, PARTS, PARTS)
PRIORS = st.builds(KindCurve, CURVES, st.floats(0, MAX_KIND_JOBS))
SIZES = st.integers(1, 1024)
RATES = st.floats(MIN_RATE, MAX_RATE)
REPORTED = st.lists(
    st.builds(Speed, SIZES, RATES, st.integers(1, MAX_REPORTS)),
    max_size=MAX_SIZES,
    unique_by=lambda speed: speed.instances,
).map(tuple)


def speeds_of(curve, sizes, rate=1.0, reports=MAX_REPORTS):
    return tuple(Speed(size, rate * curve.speedup(size), reports) for size in sizes)


def unlikelihood(curve, speeds, prior):
    """The sum of squared errors that a fit makes least, in units of their spreads."""
    logs = [math.log(speed.rate / curve.speedup(speed.instances)) for speed in speeds]
    mean = sum(speed.reports * log for speed, log in zip(speeds, logs, strict=True)) / sum(s.reports for s in speeds)
    reports = sum(speed.reports * (log - mean) ** 2 for speed, log in zip(speeds, logs, strict=True)) / NOISE**2
    serial = (curve.serial - prior.curve.serial) / SERIAL_SPREAD
    communication = (curve.communication - prior.curve.communication) / COMMUNICATION_SPREAD
    return reports + (1 + prior.jobs) * (serial**2 + communication**2)


@given(CURVES, SIZES)
def test_more_instances_never_work_better_together_than_fewer(curve, size):
    assert curve.speedup(1) == 1
    assert 0 < curve.speedup(size) <= size
    assert curve.speedup(size + 1) / (size + 1) <= curve.speedup(size) / size * (1 + 1e-12)


@given(CURVES, SIZES)
def test_beyond_its_best_size_a_job_only_gets_slower(curve, size):
    one, two, three = (curve.speedup(n) for n in (size, size + 1, size + 2))
    assume(two < one * (1 - 1e-12))
    assert three <= two * (1 + 1e-12)


@given(PARTS, SIZES)
def test_without_communication_every_instance_adds_speed(serial, size):
    curve = ScalingCurve(serial)
    assert curve.speedup(size + 1) >= curve.speedup(size) * (1 - 1e-12)


@given(st.integers(0, 10_000))
def test_a_linear_curve_gives_exactly_the_number_of_instances(size):
    assert LINEAR.speedup(size) == size


@given(
    st.builds(ScalingCurve, st.floats(0, 0.5), st.floats(0, 0.02)),
    st.lists(st.integers(1, 64), min_size=3, max_size=6, unique=True),
    st.floats(1e-3, 1e6),
)
def test_exact_speeds_at_three_sizes_give_the_exact_curve(curve, sizes, rate):
    found = fit(speeds_of(curve, sizes, rate))
    for size in sizes:
        known = curve.speedup(size) / curve.speedup(sizes[0])
        assert math.isclose(found.speedup(size) / found.speedup(sizes[0]), known, rel_tol=1e-3)


@given(st.floats(0, 0.5), st.lists(st.integers(1, 64), min_size=2, max_size=2, unique=True), st.floats(1e-3, 1e6))
def test_exact_speeds_at_two_sizes_give_the_exact_serial_part(serial, sizes, rate):
    assume(max(sizes) >= 2 * min(sizes))
    found = fit(speeds_of(ScalingCurve(serial), sizes, rate))
    known = ScalingCurve(serial).speedup(sizes[1]) / ScalingCurve(serial).speedup(sizes[0])
    assert math.isclose(found.speedup(sizes[1]) / found.speedup(sizes[0]), known, rel_tol=1e-2)


@given(st.lists(st.floats(1e-4, 2), min_size=2, max_size=5), st.integers(1, MAX_REPORTS))
def test_the_slower_a_second_size_is_the_less_it_is_believed_to_bring(speedups, reports):
    found = [fit((Speed(1, 100.0, 8), Speed(2, 100 * each, reports)), KindCurve()) for each in sorted(speedups)]
    assert all(one.speedup(2) <= other.speedup(2) + 1e-3 for one, other in pairwise(found))


@pytest.mark.parametrize("speedup", [0.8, 0.5, 0.1, 0.01])
def test_a_job_that_slows_down_is_believed_to_do_so(speedup):
    found = fit((Speed(1, 100.0, 8), Speed(2, 100 * speedup, 8)), KindCurve())
    assert found.speedup(8) < found.speedup(2) < 1


@given(
    st.builds(ScalingCurve, st.floats(0, 1), st.floats(0, 0.2)),
    PRIORS,
    st.lists(st.integers(1, 64), min_size=2, max_size=6, unique=True),
    st.floats(1e-3, 1e6),
)
def test_no_curve_nearby_explains_reports_and_kind_better(curve, prior, sizes, rate):
    speeds = speeds_of(curve, sizes, rate)
    found = fit(speeds, prior)
    least = unlikelihood(found, speeds, prior)
    for serial, communication in product((-0.02, 0, 0.02), (-0.002, 0, 0.002)):
        other = ScalingCurve(min(max(found.serial + serial, 0), 1), min(max(found.communication + communication, 0), 1))
        assert unlikelihood(other, speeds, prior) >= least * (1 - 1e-4) - 1e-4


@given(PRIORS, st.lists(st.builds(Speed, SIZES, RATES), max_size=1).map(tuple))
def test_without_speeds_at_two_sizes_the_kind_decides(prior, reported):
    assert fit(reported, prior) == prior.curve
    assert fit(reported) == LINEAR


@given(REPORTED, PRIORS)
def test_any_reports_give_a_valid_curve(reported, prior):
    for found in (fit(reported, prior), fit(reported)):
        assert 0 <= found.serial <= 1
        assert 0 <= found.communication <= 1
        assert all(0 < found.speedup(size) <= size for size in (1, 2, 1024))


@given(st.floats(0.01, 0.4), st.floats(0, 8))
def test_reports_that_agree_with_the_kind_leave_its_curve(serial, jobs):
    prior = KindCurve(ScalingCurve(serial), jobs)
    found = fit(speeds_of(prior.curve, (1, 4, 16), reports=3), prior)
    assert abs(found.serial - serial) < SERIAL_SPREAD / 50
    assert found.communication < COMMUNICATION_SPREAD / 50


@given(st.floats(0.05, 0.3))
def test_a_kind_with_more_jobs_counts_more(serial):
    """Two sizes of a linear job, against a kind that is not."""
    kinds = [KindCurve(ScalingCurve(serial), jobs) for jobs in (0, 2, 8)]
    few, more, most = (fit(speeds_of(LINEAR, (1, 2), reports=1), kind).serial for kind in kinds)
    assert 0 <= few <= more <= most <= serial


@given(st.lists(CURVES, min_size=1, max_size=30))
def test_the_mean_curve_of_a_kind_lies_among_those_of_its_jobs(curves):
    kind = KindCurve()
    for curve in curves:
        kind = kind.after(curve)
    assert kind.jobs == min(len(curves), MAX_KIND_JOBS)
    assert min(c.serial for c in curves) - 1e-9 <= kind.curve.serial <= max(c.serial for c in curves) + 1e-9


def test_curves_mix_by_weight():
    assert mixed([(0.25, ScalingCurve(0.4, 0.04)), (0.75, LINEAR)]) == ScalingCurve(0.1, 0.01)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 40), RATES), max_size=40))
def test_speeds_are_bounded_and_of_one_pool(reports):
    speeds = Speeds()
    for number, (pool, size, rate) in enumerate(reports):
        speeds = speeds.after(pool, size, rate, NOW + number * MIN_PERIOD)
        assert speeds.pool == pool
        assert len(speeds.sizes) == len(speeds.of_sizes) <= MAX_SIZES
        assert size in speeds.sizes
        assert all(MIN_RATE <= s.rate <= MAX_RATE and 1 <= s.reports <= MAX_REPORTS for s in speeds.of_sizes)


def test_a_speed_that_does_not_change_is_told_eight_times():
    speeds = Speeds()
    for number in range(MAX_REPORTS):
        again = speeds.after("a", 4, 10.0, NOW + number * MIN_PERIOD)
        assert again is not speeds
        speeds = again
    later = NOW + MAX_REPORTS * MIN_PERIOD
    assert speeds.after("a", 4, 10.1, later) is speeds
    assert speeds.after("a", 4, 12.0, later).of_sizes[0].rate > 10.0


def test_a_later_report_confirms_the_mean_and_one_that_was_read_before_does_not():
    once = Speeds().after("a", 4, 10.0, NOW)
    again = once.after("a", 4, 10.0, NOW + MIN_PERIOD)
    assert again.of_sizes == (Speed(4, 10.0, 2, (10.0, 10.0), NOW + MIN_PERIOD),)
    assert once.after("a", 4, 10.0, NOW) is once
    assert once.after("a", 2, 6.0, NOW - MIN_PERIOD) is once


def test_a_size_counts_once_a_minute_and_a_new_size_at_once():
    once = Speeds().after("a", 4, 10.0, NOW)
    assert once.after("a", 4, 20.0, NOW + MIN_PERIOD / 2) is once
    assert once.after("a", 2, 6.0, NOW + MIN_PERIOD / 2).sizes == {2, 4}


def told(speeds, size, *rates):
    """The speeds after reports of one size, a minute apart."""
    for rate in rates:
        last = speeds.measured_at or NOW
        speeds = speeds.after("a", size, rate, last + MIN_PERIOD)
    return speeds


@given(st.lists(st.floats(0.9, 1.1), min_size=MAX_REPORTS, max_size=MAX_REPORTS), st.floats(0.01, 0.9), st.integers(2))
def test_no_single_report_that_is_too_low_makes_a_faster_size_count_as_slower(noise, low, place):
    """Sizes of which the larger is 1.3 times as fast; one of its reports is of a time with an evaluation."""
    rates = [130 * each for each in noise]
    rates[place % MAX_REPORTS] *= low
    speeds = told(Speeds(), 2, 100.0, 100.0, 100.0)
    for rate in rates:
        speeds = told(speeds, 4, rate)
        assert not speeds.slower


@given(st.lists(st.floats(0.96, 1.04), min_size=3, max_size=MAX_REPORTS), st.floats(0.01, 0.9))
def test_a_slower_size_is_known_after_three_reports(noise, part):
    speeds = told(Speeds(), 2, 100.0, 100.0, 100.0)
    for count, each in enumerate(noise, start=1):
        speeds = told(speeds, 4, 90 * part * each)
        assert set(speeds.slower) == ({4} if count >= ENOUGH_REPORTS else set())


def test_a_job_that_comes_back_to_a_slower_size_has_to_report_three_times_again():
    slow = told(told(Speeds(), 2, 100.0), 4, 80.0, 80.0, 80.0)
    back = told(told(slow, 2, 100.0), 4, 80.0, 80.0)
    assert (set(slow.slower), set(back.slower), set(told(back, 4, 80.0).slower)) == ({4}, set(), {4})
    assert told(back, 4, 80.0).of_sizes[-1].reports == 6


def test_only_sizes_without_reports_count_like_the_next_smaller_one():
    speeds = told(told(told(Speeds(), 2, 20.0, 20.0, 20.0), 4, 18.0, 18.0, 18.0), 8, 80.0)
    assert speeds.without_slower((16, 9, 8, 7, 5, 4, 3, 2, 1), NOW) == (16, 9, 8, 3, 2, 1)
    assert speeds.without_slower((5, 4), NOW + RETRY_SLOWER + 10 * MIN_PERIOD) == (5, 4)
