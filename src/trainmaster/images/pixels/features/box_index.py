"""Overlaps of boxes of one class, and the suppression of duplicates among them.

There may be very many boxes in one place: memory stays at a few numbers per box, plus the pairs of a few boxes with all
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import shapely
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indexes = NDArray[np.int64]

_PAIRS = 2_000_000
"""Maximum pairs in memory at once, unless one box alone has more."""
_USUAL = 20_000
"""Target number of pairs per batch."""
_AHEAD = 4096
"""Boxes among which remaining ones are selected at once."""
_BLOCK = 512
"""Scores per block, whose maximum is cached, so that the overall maximum is found without reading each score."""


class BoxIndex:
    """Boxes of one class, best first.

    Args:
        boxes: n x 4, pixels; each has an area.
    """

    def __init__(self, boxes: Numbers) -> None:
        self.boxes = boxes
        with _huge():
            sides = boxes[:, 2:] - boxes[:, :2]
            self.areas: Numbers = sides[:, 0] * sides[:, 1]
        self._tree = shapely.STRtree(shapely.box(*boxes.T))

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.boxes)

    def meets(self, index: int) -> tuple[Indexes, Numbers]:
        """Return all boxes that overlap one box, including itself, and the shared areas; in no order."""
        there = self._tree.query(shapely.box(*self.boxes[index]))
        return there, self._shared(np.array(index), there)

    def pairs(
        self, of: Indexes, min_overlap: float, out: NDArray[np.bool_]
    ) -> Iterator[tuple[Indexes, Indexes, Numbers]]:
        """Yield pairs in which the second box covers more than a fraction of the first's width and of its height.

        Each batch has a few of the first boxes, in their order, with all of the second and the shared areas; the pairs
        of one first box are adjacent. Some pairs may overlap less. The caller may mark boxes as removed between
        batches; they do not occur as first boxes any more.

        Args:
            of: indexes of the first.
            min_overlap: fraction, 0 to 1.
            out: for each box whether it is removed.
        """
        max_size, size, begin = max(1, _PAIRS // len(self)), 1, 0
        while begin < len(of):
            ahead = of[begin : begin + _AHEAD]
            present = np.flatnonzero(~out[ahead])[:size]
            some = ahead[present]
            begin += int(present[-1]) + 1 if len(present) == size else len(ahead)
            if not len(some):
                continue
            one, other = self._tree.query(shapely.box(*_inner(self.boxes[some], min_overlap).T))
            size = min(max_size, max(1, _USUAL * len(some) // max(1, len(one))), 4 * size)
            one = some[one]
            yield one, other, self._shared(one, other)

    def _shared(self, one: Indexes, other: Indexes) -> Numbers:
        first, second = self.boxes[one], self.boxes[other]
        low = np.maximum(first[..., :2], second[..., :2])
        with _huge():
            sides = np.maximum(np.minimum(first[..., 2:], second[..., 2:]) - low, 0.0)
            shared: Numbers = sides[..., 0] * sides[..., 1]
        return shared

    def iou(self, one: Indexes | int, other: Indexes, shared: Numbers) -> Numbers:
        """Return the intersection over union."""
        with _huge():
            found: Numbers = shared / (self.areas[one] + self.areas[other] - shared)
        return found


def _inner(boxes: Numbers, min_overlap: float) -> Numbers:
    """Return the part of a box that every other reaches if it covers more than a fraction of both its sides."""
    with _huge():
        by = (boxes[:, 2:] - boxes[:, :2]) * (min(min_overlap, 0.5) * _ROUNDING)
    by[~np.isfinite(by)] = 0.0
    return np.column_stack([boxes[:, :2] + by, boxes[:, 2:] - by])


_ROUNDING = 0.99
"""Margin for rounding: candidates are checked exactly, and none may be missed."""


def _huge() -> np.errstate:
    """Return the NumPy error state for boxes up to the largest float, whose areas are infinite."""
    return np.errstate(over="ignore", invalid="ignore")


def fragments(box_index: BoxIndex, clipped: NDArray[np.bool_], covered: float, sources: Indexes) -> NDArray[np.bool_]:
    """Return which clipped boxes a larger one of another source covers by more than this fraction of their area."""
    gone = np.zeros(len(box_index), dtype=np.bool_)
    for one, other, shared in box_index.pairs(np.flatnonzero(clipped), covered, gone):
        part = (box_index.areas[other] > box_index.areas[one]) & (shared > covered * box_index.areas[one])
        part &= sources[other] != sources[one]
        gone[one[part]] = True
    return gone


def nms(box_index: BoxIndex, iou: float, sources: Indexes) -> NDArray[np.bool_]:
    """Return which boxes a better remaining box of another source overlaps by more than `iou` (NMS)."""
    gone = np.zeros(len(box_index), dtype=np.bool_)
    if iou >= 1:
        return gone
    for one, other, shared in box_index.pairs(np.arange(len(box_index)), iou, gone):
        which = np.flatnonzero((other > one) & ~gone[other] & (sources[other] != sources[one]))
        which = which[box_index.iou(one[which], other[which], shared[which]) > iou]
        better, worse = one[which], other[which]
        starts = np.flatnonzero(np.diff(better, prepend=-1))
        for begin, end in pairwise([*starts.tolist(), len(better)]):
            if not gone[better[begin]]:
                gone[worse[begin:end]] = True
    return gone


def soft_nms(
    box_index: BoxIndex, scores: Numbers, sigma: float, min_score: float, sources: Indexes
) -> list[tuple[int, float]]:
    """Return indexes and scores of the remaining boxes in the order of selection (SOFT_NMS).

    Each selected box multiplies the scores of those of other sources that it overlaps by exp(-iou² / sigma); the
    selection ends with the first score below `min_score`.
    """
    whole = -(-len(box_index) // _BLOCK) * _BLOCK
    left = np.full(whole, -np.inf)
    left[: len(box_index)] = scores
    blocks = left.reshape(-1, _BLOCK)
    greatest = blocks.max(axis=1)
    taken: list[tuple[int, float]] = []
    for _ in range(len(box_index)):
        block = int(greatest.argmax())
        index = block * _BLOCK + int(blocks[block].argmax())
        score = float(left[index])
        if score < min_score:
            break
        taken.append((index, score))
        left[index] = -np.inf
        there, shared = box_index.meets(index)
        near = (shared > 0) & (left[there] > -np.inf) & (sources[there] != sources[index])
        there, shared = there[near], shared[near]
        left[there] *= np.exp(-(box_index.iou(index, there, shared) ** 2) / max(sigma, 1e-9))
        touched = np.unique(there // _BLOCK)
        greatest[touched] = blocks[touched].max(axis=1)
    return taken


def cross_tile_duplicates(points: Numbers, sources: Indexes, near: float) -> NDArray[np.bool_]:
    """Return which points repeat another tile's: for each that remains, the nearest one of every other tile.

    Args:
        points: n x 2, of one class, best first.
        sources: the tile of each.
        near: maximum distance in pixels.
    """
    box_index = BoxIndex(np.column_stack([points - near, points + near]))
    gone = np.zeros(len(points), dtype=np.bool_)
    for one, other, _ in box_index.pairs(np.arange(len(points)), 0.5, gone):
        apart = np.hypot(*(points[other] - points[one]).T)
        which = (other > one) & ~gone[other] & (sources[other] != sources[one]) & (apart <= near)
        rows = np.flatnonzero(which)
        rows = rows[np.lexsort((other[rows], apart[rows], sources[other[rows]], one[rows]))]
        told: set[tuple[int, int]] = set()
        for first, second in zip(one[rows].tolist(), other[rows].tolist(), strict=True):
            pair = (first, int(sources[second]))
            if pair not in told and not gone[first] and not gone[second]:
                told.add(pair)
                gone[second] = True
    return gone
