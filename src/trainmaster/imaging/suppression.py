"""Which of many found features are one: what overlapping tiles show twice is told once.

Three steps, all pure: what a tile's edge has cut off is left out where a neighbouring tile shows the whole; NMS keeps
the best of those whose boxes overlap; SOFT_NMS lowers the scores of the others instead (Bodla et al., 2017, Gaussian).
Only features of one class are compared. It must not know where features came from.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from trainmaster.domain.image.request import Distillation, Suppression
from trainmaster.imaging.features import Feature, box_of, class_and_score

_POINT = 0.05
"""Pixels by which boxes without width or height are widened on each side, so that equal points overlap."""
_COVERED = 0.75
"""Of a cut-off feature's own area: so much of it another feature has to cover, to be the whole of it."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features with boxes, best first; of equal ones in an order that depends on nothing but themselves.

    Attributes:
        boxes: n x 4, pixels.
        scores: n.
        labels: n, the class as a number.
        clipped: n, whether a tile's edge may have cut it off.
    """

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    clipped: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Told:
    """A feature and all that is compared of it, worked out once: there may be hundreds of thousands."""

    feature: Feature
    box: tuple[float, ...]
    label: str
    score: float
    clipped: bool
    text: str


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of candidates of one class whose boxes overlap: `one[i]` and `other[i]` by `area[i]`."""

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    area: NDArray[np.float64]


def suppressed(features: Sequence[Feature], clipped: Sequence[bool], how: Distillation) -> list[Feature]:
    """The features without duplicates, from top to bottom, then from left to right.

    Those that say nothing of where in the image they are cannot be compared, and stay, behind the others. The result
    does not depend on the order of the input.

    Args:
        features: in image coordinates; left as they are.
        clipped: for each, whether a tile's edge may have cut it off.
        how: the algorithm and its thresholds.
    """
    told = [_told(each, cut) for each, cut in zip(features, clipped, strict=True)]
    nowhere = sorted((each for each in told if not each.box), key=_position)
    boxed = sorted((each for each in told if each.box), key=_standing)
    candidates = _candidates(boxed)
    whole = without_fragments(candidates)
    candidates, kept = _chosen(candidates, whole), [boxed[i] for i in whole]
    if how.algorithm is Suppression.SOFT_NMS:
        found = [_rescored(kept[i], score) for i, score in soft_nms(candidates, how.sigma, how.skip_box)]
    else:
        found = [kept[i] for i in nms(candidates, how.iou)]
    return [each.feature for each in (*sorted(found, key=_position), *nowhere)]


def without_fragments(candidates: Candidates) -> list[int]:
    """Indexes of those that are no cut-off part of a larger one."""
    pairs = _pairs(candidates)
    areas = _areas(candidates.boxes)
    part = candidates.clipped[pairs.one] & (areas[pairs.other] > areas[pairs.one])
    covered = pairs.area > _COVERED * areas[pairs.one]
    dropped = set(pairs.one[part & covered].tolist())
    return [i for i in range(len(candidates.boxes)) if i not in dropped]


def nms(candidates: Candidates, iou: float) -> list[int]:
    """Indexes of those that no better one of those kept overlaps by more than `iou` (intersection over union)."""
    pairs = _pairs(candidates)
    worse = (pairs.other > pairs.one) & (_overlap(candidates, pairs) > iou)
    below = _neighbours(len(candidates.boxes), pairs.one[worse], pairs.other[worse])
    gone: set[int] = set()
    for index, others in enumerate(below):
        if index not in gone:
            gone.update(others)
    return [i for i in range(len(candidates.boxes)) if i not in gone]


def soft_nms(candidates: Candidates, sigma: float, least: float) -> list[tuple[int, float]]:
    """Indexes and scores: each that is taken lowers its neighbours' scores by exp(-iou² / sigma).

    Args:
        candidates: best first.
        sigma: above 0.
        least: those whose score has fallen below are left out.
    """
    pairs = _pairs(candidates)
    fall = np.exp(-(_overlap(candidates, pairs) ** 2) / max(sigma, 1e-9))
    near: list[list[tuple[int, float]]] = [[] for _ in candidates.boxes]
    for one, other, by in zip(pairs.one.tolist(), pairs.other.tolist(), fall.tolist(), strict=True):
        near[one].append((other, by))
    scores = candidates.scores.tolist()
    heap = [(-score, i) for i, score in enumerate(scores)]
    heapq.heapify(heap)
    taken: dict[int, float] = {}
    while heap:
        negative, index = heapq.heappop(heap)
        if index in taken or -negative != scores[index]:
            continue
        if scores[index] < least:
            break
        taken[index] = scores[index]
        for other, by in near[index]:
            if other not in taken:
                scores[other] *= by
                heapq.heappush(heap, (-scores[other], other))
    return sorted(taken.items())


def _told(feature: Feature, clipped: bool) -> _Told:  # noqa: FBT001 - one of two columns
    label, score = class_and_score(feature)
    text = json.dumps(feature, sort_keys=True, default=str)
    return _Told(feature, box_of(feature) or (), label, score, clipped, text)


def _candidates(boxed: Sequence[_Told]) -> Candidates:
    numbers = {name: number for number, name in enumerate(sorted({each.label for each in boxed}))}
    boxes = np.array([each.box for each in boxed], dtype=np.float64).reshape(-1, 4)
    flat = boxes[:, 2:] - boxes[:, :2] <= 0
    boxes[:, :2] -= _POINT * flat
    boxes[:, 2:] += _POINT * flat
    return Candidates(
        boxes,
        np.array([each.score for each in boxed], dtype=np.float64),
        np.array([numbers[each.label] for each in boxed], dtype=np.int64),
        np.array([each.clipped for each in boxed], dtype=np.bool_),
    )


def _chosen(candidates: Candidates, indexes: list[int]) -> Candidates:
    which = np.array(indexes, dtype=np.int64)
    return Candidates(
        candidates.boxes[which], candidates.scores[which], candidates.labels[which], candidates.clipped[which]
    )


def _pairs(candidates: Candidates) -> _Pairs:
    """All pairs that overlap, each both ways round; by a tree, since comparing all with all would take for ever."""
    shapes = shapely.box(*candidates.boxes.T) if len(candidates.boxes) else np.array([], dtype=object)
    one, other = shapely.STRtree(shapes).query(shapes)
    same = (one != other) & (candidates.labels[one] == candidates.labels[other])
    one, other = one[same], other[same]
    low = np.maximum(candidates.boxes[one, :2], candidates.boxes[other, :2])
    high = np.minimum(candidates.boxes[one, 2:], candidates.boxes[other, 2:])
    area = np.prod(np.maximum(high - low, 0.0), axis=1)
    overlaps = area > 0
    return _Pairs(one[overlaps], other[overlaps], area[overlaps])


def _overlap(candidates: Candidates, pairs: _Pairs) -> NDArray[np.float64]:
    """Intersection over union of each pair."""
    areas = _areas(candidates.boxes)
    union: NDArray[np.float64] = areas[pairs.one] + areas[pairs.other] - pairs.area
    return pairs.area / union


def _areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    area: NDArray[np.float64] = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    return area


def _neighbours(count: int, one: NDArray[np.int64], other: NDArray[np.int64]) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(count)]
    for first, second in zip(one.tolist(), other.tolist(), strict=True):
        near[first].append(second)
    return near


def _rescored(told: _Told, score: float) -> _Told:
    """The feature with its class's new score; the one that the model gave is kept as `rawScore`."""
    properties = told.feature["properties"]
    classes = properties.get("featureClasses")
    if not classes or score == told.score:
        return told
    changed = [
        {**each, "rawScore": each.get("rawScore", each.get("score")), "score": score}
        if isinstance(each, dict) and str(each.get("iri", "")) == told.label
        else each
        for each in classes
    ]
    return replace(told, feature={**told.feature, "properties": {**properties, "featureClasses": changed}})


def _standing(told: _Told) -> tuple[Any, ...]:
    """Best first; equals by what they are."""
    return (-told.score, told.label, told.box, told.text)


def _position(told: _Told) -> tuple[Any, ...]:
    return (told.box[1::-1], told.text)
