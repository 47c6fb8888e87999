"""Cutting of an image: as many regions as ModelRunner makes, and every pixel is in one."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.tiling import MAX_REGIONS, Cut, Region, Window, load, regions, tiles


def a_cut(tile=1024, overlap=50, region=10_240):
    return Cut(region=(region, region), tile=(tile, tile), overlap=(overlap, overlap))


def whole(width, height):
    return Window(0, 0, width, height)


def modelrunners_count(extents, sizes, tile_sizes, overlaps):
    """Facts 3.3, with full tiles counted by laying them down one by one."""
    full, any_ = [], []
    for extent, size, tile, overlap in zip(extents, sizes, tile_sizes, overlaps, strict=True):
        needed = ceil((extent - overlap) / (tile - overlap))
        widened = overlap
        if needed > 1:
            widened += ceil((overlap + needed * (tile - overlap) - extent) / (needed - 1))
        stride = tile - widened
        per_region = (size - widened) // stride
        full.append(ceil(len(range(0, extent - tile + 1, stride)) / per_region))
        any_.append(ceil((extent - widened) / (per_region * stride)) if extent > widened else 0)
    return prod(full if all(full) else any_)


def spans(windows, axis):
    return sorted({(w.column, w.width) if axis == 0 else (w.row, w.height) for w in windows})


def regions_of(part, cut):
    """Regions of a part; the example is rejected if they are too many for a test of each."""
    try:
        found = regions(part, cut)
    except InvalidRequest:
        found = ()
    assume(1 <= len(found) <= 500)
    return found


def assert_covered(windows, part, overlap):
    """Edge to edge on both axes, each with each, and neighbors share at least the overlap."""
    across, down = spans(windows, 0), spans(windows, 1)
    assert len(across) * len(down) == len(windows) == len(set(windows))
    for found, begin, size in ((across, part.column, part.width), (down, part.row, part.height)):
        assert found[0][0] == begin
        assert sum(found[-1]) == begin + size
        for (first, length), (second, _) in pairwise(found):
            assert first < second <= first + length - overlap


@st.composite
def cuts(draw):
    axes = []
    for _ in range(2):
        tile = draw(st.integers(1, 200))
        axes.append((draw(st.integers(tile, 450)), tile, draw(st.integers(0, tile - 1))))
    region, tile, overlap = zip(*axes, strict=True)
    return Cut(region=region, tile=tile, overlap=overlap)


parts = st.builds(
    Window, st.integers(0, 90), st.integers(0, 90), *[st.one_of(st.integers(1, 300), st.integers(1, 5_000))] * 2
)


@pytest.mark.parametrize(
    ("size", "cut", "count"),
    [
        ((1_024, 1_024), a_cut(), 1),
        ((10_240, 10_240), a_cut(), 1),
        ((20_480, 20_480), a_cut(), 9),
        ((40_000, 30_000), a_cut(1_024, 100, 8_192), 30),
        ((50_000, 50_000), a_cut(4_096, 128), 49),
        ((25_000, 12_000), a_cut(4_096, 100, 10_000), 8),
        ((60, 5_000), a_cut(), 1),
    ],
)
def test_an_image_has_as_many_regions_as_modelrunner_makes(size, cut, count):
    assert len(regions(whole(*size), cut)) == count


@given(parts, cuts())
def test_the_count_is_modelrunners_but_where_that_is_zero(part, cut):
    theirs = modelrunners_count((part.width, part.height), cut.region, cut.tile, cut.overlap)
    assume(theirs <= 2_000)
    if theirs:
        assert len(regions(part, cut)) == theirs
    else:
        assert len(regions(part, cut)) >= 1


@given(parts, cuts())
def test_regions_cover_the_part_and_are_numbered_by_rows(part, cut):
    found = regions_of(part, cut)
    assert [region.number for region in found] == list(range(len(found)))
    windows = [region.window for region in found]
    assert windows == sorted(windows, key=lambda window: (window.row, window.column))
    assert_covered(windows, part, min(cut.overlap) if min(cut.overlap) < min(part.width, part.height) else 0)


@given(parts, cuts())
def test_tiles_cover_their_region_at_full_size_and_are_as_many_as_it_says(part, cut):
    assume(cut.tile[0] - cut.overlap[0] >= 20 <= cut.tile[1] - cut.overlap[1])
    for region in regions_of(part, cut)[:3]:
        found = tiles(region.window, cut)
        assert len(found) == region.tiles
        size = min(cut.tile[0], part.width), min(cut.tile[1], part.height)
        assert {(tile.width, tile.height) for tile in found} == {size}
        assert_covered(found, region.window, min(cut.overlap))


@given(parts, cuts())
def test_a_region_is_no_larger_than_asked_for_but_by_what_would_be_left_over(part, cut):
    for region in regions_of(part, cut):
        assert region.window.width < cut.region[0] + cut.tile[0]
        assert region.window.height < cut.region[1] + cut.tile[1]


def test_the_last_pixels_are_looked_at_where_modelrunner_leaves_them_out():
    """Its 21 full tiles end at 20,464 of 20,480 pixels."""
    last = regions(whole(20_480, 20_480), a_cut())[-1]
    assert (last.window.column + last.window.width, last.window.row + last.window.height) == (20_480, 20_480)


def test_regions_of_a_part_lie_in_that_part_of_the_image():
    part = Window(5_000, 7_000, 12_000, 1_024)
    assert [region.window for region in regions(part, a_cut())] == [
        Window(5_000, 7_000, 10_170, 1_024),
        Window(15_061, 7_000, 1_939, 1_024),
    ]


def test_w12_an_image_no_larger_than_the_overlap_is_one_region_of_small_tiles():
    found = regions(whole(40, 5_000), a_cut())
    assert found == (Region(number=0, window=whole(40, 5_000), tiles=6),)
    assert {tile.width for tile in tiles(found[0].window, a_cut())} == {40}
    assert regions(whole(1, 1), a_cut()) == (Region(number=0, window=whole(1, 1), tiles=1),)


@pytest.mark.parametrize("part", [Window(0, 0, 0, 5), Window(3, 3, 5, 0), Window(0, 0, -1, -1)])
def test_w12_a_part_without_pixels_is_refused(part):
    with pytest.raises(InvalidRequest, match="no pixels") as refused:
        regions(part, a_cut())
    assert refused.value.field == "imageUrls[0]"


@pytest.mark.parametrize(
    ("cut", "field"),
    [
        (a_cut(tile=10_241), "imageProcessorTileSize"),
        (Cut(region=(512, 256), tile=(256, 300), overlap=(0, 0)), "imageProcessorTileSize"),
        (a_cut(tile=100, overlap=100), "imageProcessorTileOverlap"),
        (a_cut(tile=100, overlap=-1), "imageProcessorTileOverlap"),
        (a_cut(tile=0, overlap=0), "imageProcessorTileOverlap"),
        (a_cut(tile=4, overlap=3), "imageProcessorTileSize"),
        (a_cut(tile=10_240, overlap=10_239), "imageProcessorTileOverlap"),
    ],
)
def test_a_cut_that_is_none_or_absurdly_fine_is_refused_by_its_field(cut, field):
    with pytest.raises(InvalidRequest) as refused:
        regions(whole(20_480, 20_480), cut)
    assert refused.value.field == field
    assert refused.value.hint


def test_the_largest_image_that_is_taken_is_cut_in_a_moment():
    assert len(regions(whole(970_000, 970_000), a_cut())) <= MAX_REGIONS


@pytest.mark.parametrize(
    ("size", "tile", "overlap", "least", "most"),
    [(50_000, 4_096, 128, 169, 196), (20_480, 1_024, 50, 33, 36), (1_024, 1_024, 50, 1, 4)],
)
def test_the_load_counts_no_worker_without_a_tile(size, tile, overlap, least, most):
    """ModelRunner counts `regions x workers`, more than there are tiles."""
    found = regions(whole(size, size), a_cut(tile, overlap))
    assert load(found, 4) == least
    assert len(found) * 4 == most


def test_the_load_is_regions_times_workers_where_tiles_are_many():
    cut = a_cut()
    many = [Region(number=n, window=whole(10_240, 10_240), tiles=121) for n in range(10)]
    assert load(many, 4) == 40, "ModelRunner's example of 10 regions"
    assert load(regions(whole(40_000, 30_000), a_cut(1_024, 100, 8_192)), 4) == 120
    assert load((), 4) == 0
    assert load(regions(whole(1_024, 1_024), cut), 1) == 1


def test_w9_a_region_that_is_done_gives_its_load_back():
    found = regions(whole(50_000, 50_000), a_cut(4_096, 128))
    assert load(found[1:], 4) == load(found, 4) - 4


def test_a_region_of_interest_has_fewer_regions_than_the_whole_image():
    interest = Window(10_000, 10_000, 9_000, 12_000)
    assert len(regions(interest, a_cut())) == 2 < len(regions(whole(40_000, 30_000), a_cut()))
