"""Removal of duplicate features that overlapping tiles show twice.

Features that a tile's edge has cut off are dropped if a neighboring tile shows the whole; so are points that another
tile shows too. NMS keeps the best of overlapping boxes; SOFT_NMS lowers the scores of the others instead (Bodla et al.,
2017, Gaussian). Only features of one class are compared, and, unless the request wants the rest too, only those of
different tiles: what a model says twice in one tile stays.
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
class _Candidate:
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
    candidates = [_candidate(*each) for each in zip(features, clipped, _numbers(sources), strict=True)]
    unplaced = sorted((each for each in candidates if not each.box), key=_position)
    by_class: dict[str, list[_Candidate]] = {}
    for each in sorted((each for each in candidates if each.box), key=_rank):
        by_class.setdefault(each.label, []).append(each)
    found = [each for one in by_class.values() for each in _of_one_class(one, how)]
    return [each.feature for each in (*sorted(found, key=_position), *unplaced)]


def _numbers(sources: Sequence[tuple[int, int]]) -> list[int]:
    known = {each: number for number, each in enumerate(sorted(set(sources)))}
    return [known[each] for each in sources]


def _of_one_class(candidates: list[_Candidate], how: Distillation) -> list[_Candidate]:
    """Return the remaining features of one class, best first."""
    clipped = np.array([each.clipped for each in candidates])
    candidates = _left(candidates, fragments(_box_index(candidates), clipped, _COVERED, _sources(candidates, how)))
    candidates = _without_repeated_points(candidates)
    box_index, sources = _box_index(candidates), _sources(candidates, how)
    if how.algorithm is not Suppression.SOFT_NMS:
        return _left(candidates, nms(box_index, how.iou, sources))
    scores = np.array([each.score for each in candidates], dtype=np.float64)
    kept = soft_nms(box_index, scores, how.sigma, how.skip_box, sources)
    return [_rescored(candidates[i], score) for i, score in kept]


def _sources(candidates: Sequence[_Candidate], how: Distillation) -> NDArray[np.int64]:
    """Return the tile of each feature; one of its own for each if those of one tile are compared, too."""
    numbers = range(len(candidates)) if how.within_tiles else (each.source for each in candidates)
    return np.array(list(numbers), dtype=np.int64)


def _without_repeated_points(candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the features without repeated points: points have no area, so their distance decides."""
    which = [i for i, each in enumerate(candidates) if each.box[:2] == each.box[2:]]
    if len({candidates[i].source for i in which}) < 2:
        return candidates
    points = np.array([candidates[i].box[:2] for i in which], dtype=np.float64)
    gone = np.zeros(len(candidates), dtype=np.bool_)
    gone[which] = cross_tile_duplicates(points, np.array([candidates[i].source for i in which]), _NEAR)
    return _left(candidates, gone)


def _left(candidates: Sequence[_Candidate], gone: NDArray[np.bool_]) -> list[_Candidate]:
    return [each for each, out in zip(candidates, gone.tolist(), strict=True) if not out]


def _box_index(candidates: Sequence[_Candidate]) -> BoxIndex:
    boxes = np.array([each.box for each in candidates], dtype=np.float64).reshape(-1, 4)
    flat = boxes[:, 2:] <= boxes[:, :2]
    boxes[:, :2] -= _POINT * flat
    boxes[:, 2:] += _POINT * flat
    return BoxIndex(boxes)


def _candidate(feature: Feature, clipped: bool, source: int) -> _Candidate:  # noqa: FBT001 - one of three columns
    label, score = class_and_score(feature)
    text = json.dumps(feature, sort_keys=True, default=str)
    return _Candidate(feature, box_of(feature) or (), label, score, clipped, source, text)


def _rescored(candidate: _Candidate, score: float) -> _Candidate:
    """Return the feature with its class's new score; the model's score is kept as `rawScore`."""
    properties = candidate.feature["properties"]
    classes = properties.get("featureClasses")
    if not classes or score == candidate.score:
        return candidate
    changed = [
        {**each, "rawScore": each.get("rawScore", each.get("score")), "score": score}
        if isinstance(each, dict) and str(each.get("iri", "")) == candidate.label
        else each
        for each in classes
    ]
    return replace(candidate, feature={**candidate.feature, "properties": {**properties, "featureClasses": changed}})


def _rank(candidate: _Candidate) -> tuple[Any, ...]:
    """Return the sort key: best first, then by content."""
    return (-candidate.score, candidate.label, candidate.box, candidate.text, candidate.source)


def _position(candidate: _Candidate) -> tuple[Any, ...]:
    return (candidate.box[1::-1], candidate.text)
