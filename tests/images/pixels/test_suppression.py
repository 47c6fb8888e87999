"""Suppression of objects that overlapping tiles show twice: properties of NMS and SOFT_NMS, and cut-off objects."""

from __future__ import annotations

import json
import math
import random
import time
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.images.domain.request import Distillation, Suppression
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.features.features import is_clipped
from trainmaster.images.pixels.features.suppression import suppressed

NMS = Distillation(iou=0.5, within_tiles=True)
SOFT = Distillation(algorithm=Suppression.SOFT_NMS, within_tiles=True)
OVERLAPS, SOFT_OVERLAPS = (replace(each, within_tiles=False) for each in (NMS, SOFT))


def a_feature(box, score=0.9, name="ship", **more):
    classes = [{"iri": name, "score": score}]
    return {
        "type": "Feature",
        "geometry": None,
        "properties": {"imageBBox": list(box), "featureClasses": classes, **more},
    }


def iou(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return width * height / (area - width * height)


boxes = st.builds(
    lambda x, y, width, height: (x, y, x + width, y + height),
    *[st.integers(0, 30)] * 2,
    *[st.integers(1, 20)] * 2,
)
features = st.lists(
    st.builds(a_feature, boxes, st.sampled_from([0.1, 0.5, 0.5, 0.9]), st.sampled_from(["ship", "car"])), max_size=14
)


def box(feature):
    return tuple(feature["properties"]["imageBBox"])


def label(feature):
    return feature["properties"]["featureClasses"][0]["iri"]


def score(feature):
    return feature["properties"]["featureClasses"][0]["score"]


def keep(found, how=NMS, clipped=None, sources=None):
    return suppressed(found, clipped or [False] * len(found), how, sources or [(0, 0)] * len(found))


@given(features, st.randoms(use_true_random=False))
def test_the_order_of_features_does_not_matter(found, rng):
    shuffled = list(found)
    rng.shuffle(shuffled)
    for how in (NMS, SOFT):
        assert keep(found, how) == keep(shuffled, how)


@given(features)
def test_nms_twice_is_nms_once(found):
    once = keep(found)
    assert keep(once) == once


@given(features)
def test_of_those_that_are_kept_no_two_are_one(found):
    kept = keep(found)
    for i, one in enumerate(kept):
        for other in kept[i + 1 :]:
            assert label(one) != label(other) or iou(box(one), box(other)) <= NMS.iou


@given(features)
def test_whatever_is_left_out_is_overlapped_by_one_that_is_kept_and_no_worse(found):
    kept = keep(found)
    for each in found:
        if each not in kept:
            assert any(
                label(other) == label(each) and score(other) >= score(each) and iou(box(other), box(each)) > NMS.iou
                for other in kept
            )


@given(features)
def test_the_surest_of_each_class_is_always_kept(found):
    for how in (NMS, SOFT):
        kept = keep(found, how)
        for name in {label(each) for each in found}:
            best = max(score(each) for each in found if label(each) == name)
            assert best in [score(each) for each in kept if label(each) == name]


@given(features)
def test_soft_nms_keeps_what_nms_would_drop_with_less_score_and_never_raises_one(found):
    kept = keep(found, SOFT)
    assert len(kept) <= len(found)
    for each in kept:
        (only,) = each["properties"]["featureClasses"]
        assert SOFT.skip_box <= only["score"] <= only.get("rawScore", only["score"]) <= 0.9


def test_soft_nms_lowers_a_score_by_the_gaussian_of_the_overlap():
    better, worse = a_feature((0, 0, 10, 10), 0.9), a_feature((5, 0, 15, 10), 0.8)
    kept = keep([better, worse], replace(SOFT, sigma=0.5))
    assert kept[0] == better
    assert score(kept[1]) == pytest.approx(0.8 * math.exp(-((1 / 3) ** 2) / 0.5))
    assert kept[1]["properties"]["featureClasses"][0]["rawScore"] == 0.8
    assert score(worse) == 0.8


def test_features_of_different_classes_are_not_compared():
    both = [a_feature((0, 0, 10, 10), name="ship"), a_feature((0, 0, 10, 10), name="car")]
    assert len(keep(both)) == 2


def test_equal_points_are_one_and_others_are_not():
    points = [a_feature((5, 5, 5, 5)), a_feature((5, 5, 5, 5), 0.4), a_feature((7, 5, 7, 5))]
    assert [box(each) for each in keep(points)] == [(5, 5, 5, 5), (7, 5, 7, 5)]
    assert box(points[0]) == (5, 5, 5, 5)


def test_features_without_a_position_stay():
    nowhere = {"type": "Feature", "geometry": None, "properties": {"note": "fog"}}
    assert keep([nowhere, a_feature((0, 0, 3, 3)), nowhere]) == [a_feature((0, 0, 3, 3)), nowhere, nowhere]


def test_no_features_are_no_features():
    assert keep([]) == keep([], SOFT) == []


def test_features_cut_by_an_edge_are_dropped_if_a_neighbor_shows_the_whole():
    whole, rest = a_feature((10, 10, 30, 20), 0.6), a_feature((10, 10, 15, 20), 0.95)
    neighbors = [(0, 0), (0, 1)]
    assert keep([rest, whole], OVERLAPS, [True, False], neighbors) == [whole]
    assert len(keep([rest, whole], OVERLAPS, [False, False], neighbors)) == 2
    assert len(keep([rest, whole], OVERLAPS, [True, False])) == 2


def test_two_cut_parts_that_no_tile_shows_whole_both_stay():
    """It is larger than the tiles' overlap."""
    rests = [a_feature((10, 10, 40, 20)), a_feature((30, 10, 60, 20))]
    assert keep(rests, clipped=[True, True]) == rests


def test_only_edges_behind_which_something_was_asked_for_cut_things_off():
    part = Window(100, 100, 400, 400)
    first, middle = Window(100, 100, 200, 200), Window(200, 200, 200, 200)
    assert not is_clipped((100, 100, 120, 120), first, part)
    assert is_clipped((290, 150, 300, 160), first, part)
    assert is_clipped((200, 250, 210, 260), middle, part)
    assert not is_clipped((250, 250, 260, 260), middle, part)


def plainly(found, clipped, how, tiles):
    """NMS and SOFT_NMS as they are written down, all pairs compared: the boxes and scores that are left."""
    tile_of = {box(each): tile for each, tile in zip(found, tiles, strict=True)}

    def compared(one, other):
        return label(one) == label(other) and (how.within_tiles or tile_of[box(one)] != tile_of[box(other)])

    whole = [
        each
        for each, cut in zip(found, clipped, strict=True)
        if not (cut and any(covers(other, each) for other in found if compared(other, each)))
    ]
    left = sorted(whole, key=lambda each: (-score(each), box(each)))
    kept = []
    while left:
        best = max(left, key=score)
        left.remove(best)
        if how.algorithm is Suppression.SOFT_NMS and score(best) < how.skip_box:
            break
        kept.append(best)
        near = [each for each in left if compared(each, best)]
        for each in near:
            share = iou(box(best), box(each))
            if how.algorithm is Suppression.NMS and share > how.iou:
                left.remove(each)
            elif how.algorithm is Suppression.SOFT_NMS:
                left[left.index(each)] = a_feature(
                    box(each), score(each) * math.exp(-(share**2) / how.sigma), label(each)
                )
    return sorted((label(each), box(each), round(score(each), 9)) for each in kept)


def covers(whole, rest):
    one, other = box(whole), box(rest)
    sizes = [(each[2] - each[0]) * (each[3] - each[1]) for each in (one, other)]
    width = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    return sizes[0] > sizes[1] and width * height > 0.75 * sizes[1]


@given(features, st.randoms(use_true_random=False), st.sampled_from([0.0, 0.2, 0.5, 0.75, 1.0]))
def test_the_result_equals_a_comparison_of_all_pairs(found, rng, share):
    found = list({box(each): each for each in found}.values())
    clipped = [rng.random() < 0.4 for _ in found]
    tiles = [rng.randrange(3) for _ in found]
    for how in (replace(NMS, iou=share), replace(OVERLAPS, iou=share), SOFT, SOFT_OVERLAPS):
        kept = keep(found, how, clipped, [(0, tile) for tile in tiles])
        assert sorted((label(each), box(each), round(score(each), 9)) for each in kept) == plainly(
            found, clipped, how, tiles
        )


@given(features, st.sampled_from([0.0, 0.5, 1.0]))
def test_by_default_whatever_a_model_says_in_one_tile_stays(found, share):
    for how in (replace(OVERLAPS, iou=share), replace(SOFT_OVERLAPS, skip_box=0.0)):
        assert sorted(map(json.dumps, keep(found, how))) == sorted(map(json.dumps, found))


@given(features, st.randoms(use_true_random=False))
def test_by_default_a_box_goes_only_for_a_better_one_of_another_tile(found, rng):
    found = list({box(each): each for each in found}.values())
    tile_of = {box(each): (0, rng.randrange(3)) for each in found}
    kept = keep(found, OVERLAPS, sources=list(tile_of.values()))
    for each in found:
        if each not in kept:
            assert any(
                tile_of[box(other)] != tile_of[box(each)]
                and score(other) >= score(each)
                and iou(box(other), box(each)) > OVERLAPS.iou
                for other in kept
            )


def test_two_boxes_of_one_tile_stay_and_one_of_two_tiles_goes():
    """Two ships side by side, which both tiles of an overlap show."""
    first, second = a_feature((0, 0, 20, 10), 0.9), a_feature((0, 2, 20, 12), 0.8)
    again, other = a_feature((0, 0, 20.5, 10), 0.7), a_feature((0, 2, 20.5, 12), 0.6)
    tiles = [(0, 0), (0, 0), (0, 1), (0, 1)]
    assert keep([first, second, again, other], OVERLAPS, sources=tiles) == [first, second]
    assert keep([first, second, again, other], NMS, sources=tiles) == [first]


def test_a_crowd_in_one_place_takes_neither_much_memory_nor_much_time():
    """6,000 equal boxes have 18 million pairs, and 3,000 in a small place a million that overlap."""
    rng = random.Random(1)
    equal = [a_feature((0, 0, 100 + i * 1e-6, 100)) for i in range(6_000)]
    corners = [(rng.randrange(900), rng.randrange(900)) for _ in range(3_000)]
    dense = [a_feature((x, y, x + 90 + rng.random(), y + 90), rng.random()) for x, y in corners]
    tracemalloc.start()
    begun = time.process_time()
    one = keep(equal)
    some = keep(dense, replace(NMS, iou=0.75), [i % 3 == 0 for i in range(len(dense))])
    lowered = keep(dense, SOFT)
    took, most = time.process_time() - begun, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(one), 100 < len(some) < len(dense), len(lowered) > 100) == (1, True, True)
    assert took < 20
    assert most < 150_000_000


def a_point(x, y, score=0.9):
    return a_feature((x, y, x, y), score)


def at(kept):
    return sorted(box(each)[:2] for each in kept)


def test_a_point_that_two_tiles_tell_a_pixel_apart_is_one():
    told = [a_point(10, 10, 0.8), a_point(11, 10.5, 0.9), a_point(30, 10)]
    for how in (NMS, SOFT):
        assert at(suppressed(told, [False] * 3, how, [(0, 0), (0, 1), (0, 1)])) == [(11, 10.5), (30, 10)]
        assert at(suppressed(told, [False] * 3, how, [(0, 0), (1, 0), (1, 0)])) == [(11, 10.5), (30, 10)]


def test_points_that_one_tile_tells_a_pixel_apart_are_two_also_where_its_neighbor_tells_both():
    told = [a_point(10, 10), a_point(11, 10), a_point(10.1, 10), a_point(11.1, 10)]
    sources = [(0, 0), (0, 0), (0, 1), (0, 1)]
    assert len(suppressed(told, [False] * 4, NMS, sources)) == 2
    assert len(suppressed(told[:2], [False] * 2, NMS, sources[:2])) == 2


def test_points_of_several_tiles_that_are_further_apart_are_several():
    told = [a_point(10, 10), a_point(11.2, 11.2)]
    assert len(suppressed(told, [False] * 2, NMS, [(0, 0), (0, 1)])) == 2


def test_very_many_features_are_compared_by_a_tree():
    """All pairs would be 64 million comparisons."""
    rng = random.Random(1)
    found = []
    for _ in range(4_000):
        x, y = rng.randrange(50_000), rng.randrange(50_000)
        found.append(a_feature((x, y, x + 20, y + 20), rng.random()))
    kept = keep([*found, *found])
    assert len(kept) <= len(found)
    assert json.dumps(keep(kept)) == json.dumps(kept)
