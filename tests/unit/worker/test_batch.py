"""The effective batch is the same in every world, exactly."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.worker.batch import Order, part_of, slices

worlds = st.integers(1, 70)


@given(worlds, st.integers(0, 300), st.data())
def test_the_average_of_the_ranks_weighted_means_is_the_mean_of_the_batch(world, more, data):
    batch = [Fraction(n) for n in data.draw(st.lists(st.integers(-9, 9), min_size=world + more, max_size=world + more))]
    shares = []
    for rank in range(world):
        part = part_of(len(batch), world, rank)
        mine = batch[part.start : part.start + part.size]
        shares.append(sum(mine) / len(mine) * part.weight)
    assert sum(shares) / world == sum(batch) / len(batch)


@given(worlds, st.integers(0, 300))
def test_every_sample_is_of_one_rank_and_no_rank_has_two_more_than_another(world, more):
    parts = [part_of(world + more, world, rank) for rank in range(world)]
    seen = [place for part in parts for place in range(part.start, part.start + part.size)]
    assert seen == list(range(world + more))
    assert max(part.size for part in parts) - min(part.size for part in parts) <= 1


@given(worlds, st.integers(0, 100), st.integers(1, 9), st.data())
def test_pieces_of_a_part_weigh_together_what_it_weighs(world, more, most, data):
    part = part_of(world + more, world, data.draw(st.integers(0, world - 1)))
    pieces = list(slices(part, most))
    assert sum(weight for _, weight in pieces) == part.weight
    assert [place for piece, _ in pieces for place in range(piece.start, piece.stop)] == list(
        range(part.start, part.start + part.size)
    )
    assert all(piece.stop - piece.start <= most for piece, _ in pieces)
    assert all(weight / (piece.stop - piece.start) == part.weight / part.size for piece, weight in pieces)


@pytest.mark.parametrize(("batch", "world", "rank"), [(3, 4, 0), (8, 4, 4), (8, 4, -1), (8, 0, 0)])
def test_a_rank_without_a_sample_and_one_that_is_not_there_are_refused(batch, world, rank):
    with pytest.raises(ValueError, match=r"smaller than a world|rank"):
        part_of(batch, world, rank)


def test_pieces_of_no_sample_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        list(slices(part_of(8, 2, 0), 0))


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 5))
def test_every_sample_is_seen_once_an_epoch_in_an_order_of_its_own(samples, batch, seed):
    order = Order(samples=samples, batch=batch, seed=seed)
    seen = [sample for step in range(2 * samples) for sample in order.at(step)]
    for epoch in range(2):
        assert sorted(seen[epoch * samples : (epoch + 1) * samples]) == list(range(samples))
    assert all(len(order.at(step)) == batch for step in range(5))


def test_epochs_and_seeds_have_different_orders():
    some, other = (Order(samples=100, batch=100, seed=seed) for seed in (1, 2))
    assert some.at(0) != some.at(1)
    assert some.at(0) != other.at(0)
    assert some.at(0) == Order(samples=100, batch=100, seed=1).at(0)


def test_an_order_is_the_same_in_every_release():
    assert Order(samples=10, batch=12, seed=3).at(0) == [5, 4, 3, 2, 0, 7, 9, 1, 6, 8, 4, 7]


def test_a_step_takes_no_time_that_grows_with_the_samples():
    order = Order(samples=100_000, batch=8)
    began = time.process_time()
    order.at(0)
    first = time.process_time() - began
    for step in range(1, 31):
        order.at(step)
    assert time.process_time() - began < 5 * first


@pytest.mark.parametrize(("samples", "batch"), [(0, 1), (1, 0)])
def test_an_order_of_nothing_is_refused(samples, batch):
    with pytest.raises(ValueError, match="at least 1"):
        Order(samples=samples, batch=batch)
