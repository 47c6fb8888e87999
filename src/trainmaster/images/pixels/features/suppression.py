"""Removal of duplicate features that overlapping tiles show twice.

Features that a tile's edge has cut off are dropped if a neighbouring tile shows the whole; so are points that another
tile shows too. NMS keeps the best of overlapping boxes; SOFT_NMS lowers the scores of the others instead (Bodla et al.,
2017, Gaussian). Only features of one class are compared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmaster.images.domain.request import Distillation, Suppression
from trainmaster.images.pixels.features.box_index import BoxIndex, cross_tile_duplicates, fragments, nms, soft_nms
from trainmaster.images.pixels.features.features import Feature, box_of, class_and_score

_POINT = 0.05
"""Pixels added on each side of boxes without width or height, so that equal points overlap."""
_NEAR = 1.5
"""Maximum distance in pixels of equal points of two tiles: models use pixel corners or pixel centres."""
_COVERED = 0.75
"""Fraction of a clipped feature's area that another one has to cover to count as its whole."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A feature with its comparison keys, computed once: there may be hundreds of thousands."""

    feature: Feature
    box: tuple[float, ...]
    label: str
    score: float
    clipped: bool
    source: int
    text: str


def suppressed(
    features: Sequence[Feature], clipped: Sequence[bool], how: Distillation, sources: Sequence[tuple[int, int]]
) -> list[Feature]:
    """Return the features without duplicates, from top to bottom, then from left to right.

    Features without a position in the image cannot be compared; they stay, at the end. The result does not depend on
    the order of the input.

    Args:
        features: in image coordinates; not modified.
        clipped: for each, whether a tile's edge may have cut it off.
        how: the algorithm and its thresholds.
        sources: for each, its region and tile.
    """
    told = [_told(*each) for each in zip(features, clipped, _numbers(sources), strict=True)]
    nowhere = sorted((each for each in told if not each.box), key=_position)
    by_class: dict[str, list[_Told]] = {}
    for each in sorted((each for each in told if each.box), key=_standing):
        by_class.setdefault(each.label, []).append(each)
    found = [each for one in by_class.values() for each in _of_one_class(one, how)]
    return [each.feature for each in (*sorted(found, key=_position), *nowhere)]


def _numbers(sources: Sequence[tuple[int, int]]) -> list[int]:
    known = {each: number for number, each in enumerate(sorted(set(sources)))}
    return [known[each] for each in sources]


def _of_one_class(told: list[_Told], how: Distillation) -> list[_Told]:
    """Return the remaining features of one class, best first."""
    told = _left(told, fragments(_crowd(told), np.array([each.clipped for each in told]), _COVERED))
    told = _without_twins(told)
    crowd = _crowd(told)
    if how.algorithm is not Suppression.SOFT_NMS:
        return _left(told, nms(crowd, how.iou))
    scores = np.array([each.score for each in told], dtype=np.float64)
    return [_rescored(told[i], score) for i, score in soft_nms(crowd, scores, how.sigma, how.skip_box)]


def _without_twins(told: list[_Told]) -> list[_Told]:
    """Return the features without repeated points: points have no area, so their distance decides."""
    which = [i for i, each in enumerate(told) if each.box[:2] == each.box[2:]]
    if len({told[i].source for i in which}) < 2:
        return told
    points = np.array([told[i].box[:2] for i in which], dtype=np.float64)
    gone = np.zeros(len(told), dtype=np.bool_)
    gone[which] = cross_tile_duplicates(points, np.array([told[i].source for i in which]), _NEAR)
    return _left(told, gone)


def _left(told: Sequence[_Told], gone: NDArray[np.bool_]) -> list[_Told]:
    return [each for each, out in zip(told, gone.tolist(), strict=True) if not out]


def _crowd(told: Sequence[_Told]) -> BoxIndex:
    boxes = np.array([each.box for each in told], dtype=np.float64).reshape(-1, 4)
    flat = boxes[:, 2:] <= boxes[:, :2]
    boxes[:, :2] -= _POINT * flat
    boxes[:, 2:] += _POINT * flat
    return BoxIndex(boxes)


def _told(feature: Feature, clipped: bool, source: int) -> _Told:  # noqa: FBT001 - one of three columns
    label, score = class_and_score(feature)
    text = json.dumps(feature, sort_keys=True, default=str)
    return _Told(feature, box_of(feature) or (), label, score, clipped, source, text)


def _rescored(told: _Told, score: float) -> _Told:
    """Return the feature with its class's new score; the model's score is kept as `rawScore`."""
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
    """Return the sort key: best first, then by content."""
    return (-told.score, told.label, told.box, told.text, told.source)


def _position(told: _Told) -> tuple[Any, ...]:
    return (told.box[1::-1], told.text)
