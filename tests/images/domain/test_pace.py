"""Expected run times of image jobs: any of them teaches, at any size and progress."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from image_builders import an_image_work
from trainmaster.images.domain.pace import BESIDES, seconds_left, turns, unknown

LOADS = st.integers(1, 100_000)
QUANTILES = st.sampled_from([0.05, 0.5, 0.9])


@given(load=LOADS, tiles=st.integers(1, 10**9), at_once=st.integers(0, 10**6))
def test_more_requests_never_make_more_turns_and_those_beyond_the_load_make_none_fewer(load, tiles, at_once):
    work = an_image_work(load, tiles=tiles)
    assert turns(work, at_once + 1) <= (turns(work, at_once) if at_once else tiles + BESIDES)
    assert turns(work, load + at_once) == turns(work, 0) == tiles / load + BESIDES


@given(count=st.floats(BESIDES, 1e9), elapsed=st.floats(0, 1e12), quantile=QUANTILES)
def test_expected_ends_are_never_in_the_past(count, elapsed, quantile):
    total = unknown(count, elapsed, quantile)
    assert total >= elapsed * (1 - 1e-6)
    assert unknown(count, elapsed * 2, quantile) >= total * (1 - 1e-6)


@given(data=st.data(), load=LOADS, so_far=st.floats(1e-3, 1e7))
def test_the_more_is_done_the_less_is_left(data, load, so_far):
    given_ = data.draw(st.integers(0, load + 3))
    early = data.draw(st.integers(0, load))
    late = data.draw(st.integers(0, early))
    works = [an_image_work(load, done=1, left=left) for left in (early, late)]
    first, second = (seconds_left(work, given_, so_far, 0.5) for work in works)
    assert first is None or (second is not None and 0 <= second <= first + 1e-6)
    low, high = (seconds_left(works[0], given_, so_far, quantile) for quantile in (0.05, 0.9))
    assert first is None or low <= first <= high


def test_nothing_is_told_by_regions_before_one_is_done():
    assert seconds_left(an_image_work(8), 8, 100.0, 0.5) is None
    assert seconds_left(an_image_work(8, done=1, left=4), 8, 0.0, 0.5) is None
