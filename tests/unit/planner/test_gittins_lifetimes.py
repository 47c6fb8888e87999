"""The Gittins index and the mean residual life, compared with closed forms and with a brute-force computation."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trainmaster.domain.jobs.run_times import BUCKETS, EDGES
from trainmaster.planner.orders.gittins.lifetimes import Lifetimes, unknown
from trainmaster.planner.survival import survival

weights = st.lists(st.integers(0, 20).map(float), min_size=12, max_size=12)
FINE = [2.0**place for place in range(14)]


def lifetimes(ends, unfinished=None, edges=None):
    counts = [(unfinished or {}).get(bucket, 0.0) for bucket in range(len(ends))]
    return Lifetimes(edges or [0.0, *FINE[1 : len(ends) + 1]], survival(ends, counts))


def of_tail(edges, alive):
    """The distribution whose part beyond each edge is that of a function."""
    return Lifetimes(edges, [alive(edge) for edge in edges])


@given(weights)
def test_without_unfinished_jobs_survival_is_the_part_that_ended_later(ends):
    assume(sum(ends) > 0)
    expected = [sum(ends[place:]) / sum(ends) for place in range(len(ends) + 1)]
    assert survival(ends, [0.0] * len(ends)) == pytest.approx(expected)


def test_survival_by_the_textbook():
    """Four jobs: one ends in the first bucket, one is still running in the second, two end in the third."""
    alive = survival([1.0, 0.0, 2.0], [0.0, 1.0, 0.0])
    assert alive == pytest.approx([1.0, 0.75, 0.75, 0.0])


@given(weights, st.integers(0, 11), st.integers(1, 30))
def test_jobs_that_still_run_never_make_a_class_look_shorter(ends, bucket, count):
    unfinished = [0.0] * 12
    unfinished[bucket] = float(count)
    pairs = zip(survival(ends, unfinished), survival(ends, [0.0] * 12), strict=True)
    assert all(more >= less - 1e-12 for more, less in pairs)


@given(weights, weights)
def test_survival_falls_from_one_and_stays_a_probability(ends, unfinished):
    alive = survival(ends, unfinished)
    assert alive[0] == 1
    assert all(0 <= after <= before for before, after in pairwise(alive))


def brute_index(found, place):
    """The definition: the least over all later edges of the expected time spent, divided by the chance to end."""
    edges, alive, age = found.edges, found.alive, found.edges[place]
    ratios = []
    for edge in range(place + 1, len(edges)):
        chance = alive[place] - alive[edge]
        ends = [(alive[b] - alive[b + 1], (edges[b] + edges[b + 1]) / 2) for b in range(place, edge)]
        spent = sum(part * (middle - age) for part, middle in ends) + alive[edge] * (edges[edge] - age)
        ratios += [spent / chance] if chance > 1e-12 else []
    return min(ratios)


@given(weights, st.dictionaries(st.integers(0, 11), st.integers(1, 5).map(float), max_size=4), st.integers(0, 11))
def test_the_index_is_the_least_ratio_over_all_edges(ends, unfinished, place):
    found = lifetimes(ends, unfinished)
    assume(found.alive[place] > 1e-3 and found.alive[place] - found.alive[-1] > 1e-9)
    assert found.index(found.edges[place]) == pytest.approx(brute_index(found, place))


@given(weights, st.integers(0, 11))
def test_the_residual_life_is_the_mean_of_what_is_left(ends, place):
    assume(sum(ends[place:]) > 0)
    found = lifetimes(ends)
    edges, left = found.edges, ends[place:]
    middles = [(edges[b] + edges[b + 1]) / 2 - edges[place] for b in range(place, len(ends))]
    mean = sum(weight * middle for weight, middle in zip(left, middles, strict=True)) / sum(left)
    if sum(left) / sum(ends) > 1e-3:
        assert found.residual(edges[place]) == pytest.approx(mean)


@pytest.mark.parametrize("mean", [300.0, 3_600.0])
def test_exponential_run_times_have_the_same_index_at_every_age(mean):
    """Their hazard is constant, so age tells nothing: index and residual life are the mean. Edges every 1/50 of it."""
    edges = [mean * step / 50 for step in range(600)]
    found = of_tail(edges, lambda age: math.exp(-age / mean))
    for age in (0.0, 0.3 * mean, mean, 3 * mean):
        assert found.index(age) == pytest.approx(mean, rel=0.02)
        assert found.residual(age) == pytest.approx(mean, rel=0.02)


@given(st.integers(0, 90))
def test_run_times_that_are_all_equal_leave_the_remaining_time(age):
    edges = [float(step) for step in range(101)]
    found = of_tail(edges, lambda at: 0.0 if at > 99 else 1.0)
    assert found.index(age) == found.residual(age) == pytest.approx(99.5 - age)


@given(st.floats(1.2, 3.0))
def test_where_long_jobs_run_ever_longer_the_index_grows_with_age(shape):
    """Pareto: the hazard falls, so the next edge is always the best, and the older the job the worse it stands."""
    found = of_tail(list(EDGES), lambda age: (1 + age / 600) ** -shape)
    indices = [found.index(age) for age in EDGES[:25]]
    assert indices == sorted(indices)


@given(st.floats(60, EDGES[-1]))
def test_beyond_all_data_a_job_is_expected_to_run_as_long_again(age):
    found = lifetimes([1.0] + [0.0] * (BUCKETS - 1), edges=EDGES)
    assert found.expected(age) == pytest.approx((unknown(age), unknown(age)))


@given(weights, st.floats(0, 5_000))
def test_the_index_is_never_above_the_residual_life(ends, age):
    """To run a job to its end is one of the choices."""
    assume(sum(ends) > 0)
    found = lifetimes(ends)
    assert 0 < found.index(age) <= found.residual(age) * (1 + 1e-9)
