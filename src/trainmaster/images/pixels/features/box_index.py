"""Boxes that overlap each other, of one class: who is near whom, and who of them is one thing.

There may be very many, all in one place: nothing here needs more memory than a few numbers for each box, and the
pairs of a few boxes with all others. It must not know what is in the boxes.
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
"""Most pairs that are looked at at once, if no box alone has more."""
_USUAL = 20_000
"""As many are looked at at once as have about so many pairs."""
_AHEAD = 4096
"""Boxes among which those that are not out yet are looked for at once."""
_BLOCK = 512
"""Scores whose greatest is remembered, so that the greatest of all is found without looking at each."""


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
        """How many there are."""
        return len(self.boxes)

    def meets(self, index: int) -> tuple[Indexes, Numbers]:
        """All that overlap one box, itself among them, and by what area; in no order."""
        there = self._tree.query(shapely.box(*self.boxes[index]))
        return there, self._shared(np.array(index), there)

    def pairs(self, of: Indexes, least: float, out: NDArray[np.bool_]) -> Iterator[tuple[Indexes, Indexes, Numbers]]:
        """Pairs in which the second's box covers more than that part of the first's width, and of its height.

        A few of the first, in their order, with all of the second, and by what area they overlap; the pairs of one
        follow each other. There may be some that overlap less. Whoever takes them may mark boxes as being out between;
        these are not looked at as the first any more.

        Args:
            of: indexes of the first.
            least: 0 to 1.
            out: for each box whether it is out.
        """
        most, size, begin = max(1, _PAIRS // len(self)), 1, 0
        while begin < len(of):
            ahead = of[begin : begin + _AHEAD]
            still = np.flatnonzero(~out[ahead])[:size]
            some = ahead[still]
            begin += int(still[-1]) + 1 if len(still) == size else len(ahead)
            if not len(some):
                continue
            one, other = self._tree.query(shapely.box(*_inner(self.boxes[some], least).T))
            size = min(most, max(1, _USUAL * len(some) // max(1, len(one))), 4 * size)
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
        """Intersection over union."""
        with _huge():
            found: Numbers = shared / (self.areas[one] + self.areas[other] - shared)
        return found


def _inner(boxes: Numbers, least: float) -> Numbers:
    """What of a box everything reaches that covers more than a part of its width and height; at most to its middle."""
    with _huge():
        by = (boxes[:, 2:] - boxes[:, :2]) * (min(least, 0.5) * _ROUNDING)
    by[~np.isfinite(by)] = 0.0
    return np.column_stack([boxes[:, :2] + by, boxes[:, 2:] - by])


_ROUNDING = 0.99
"""What is found so is looked at closely; nothing may be left out because numbers are rounded."""


def _huge() -> np.errstate:
    """Models may give boxes as large as numbers get, whose areas are infinite; these overlap nothing by any part."""
    return np.errstate(over="ignore", invalid="ignore")


def fragments(crowd: BoxIndex, clipped: NDArray[np.bool_], covered: float) -> NDArray[np.bool_]:
    """Which of those that may be cut off have a larger one that covers more than that part of them."""
    gone = np.zeros(len(crowd), dtype=np.bool_)
    for one, other, shared in crowd.pairs(np.flatnonzero(clipped), covered, gone):
        part = (crowd.areas[other] > crowd.areas[one]) & (shared > covered * crowd.areas[one])
        gone[one[part]] = True
    return gone


def nms(crowd: BoxIndex, iou: float) -> NDArray[np.bool_]:
    """Which are overlapped by more than `iou` by a better one that is none of them: NMS."""
    gone = np.zeros(len(crowd), dtype=np.bool_)
    if iou >= 1:
        return gone
    for one, other, shared in crowd.pairs(np.arange(len(crowd)), iou, gone):
        which = np.flatnonzero((other > one) & ~gone[other])
        which = which[crowd.iou(one[which], other[which], shared[which]) > iou]
        better, worse = one[which], other[which]
        starts = np.flatnonzero(np.diff(better, prepend=-1))
        for begin, end in pairwise([*starts.tolist(), len(better)]):
            if not gone[better[begin]]:
                gone[worse[begin:end]] = True
    return gone


def soft_nms(crowd: BoxIndex, scores: Numbers, sigma: float, least: float) -> list[tuple[int, float]]:
    """Indexes and scores of those that are kept, as they are taken: SOFT_NMS.

    Each that is taken lowers those that it overlaps by exp(-iou² / sigma); ends with the first below `least`.
    """
    whole = -(-len(crowd) // _BLOCK) * _BLOCK
    left = np.full(whole, -np.inf)
    left[: len(crowd)] = scores
    blocks = left.reshape(-1, _BLOCK)
    greatest = blocks.max(axis=1)
    taken: list[tuple[int, float]] = []
    for _ in range(len(crowd)):
        block = int(greatest.argmax())
        index = block * _BLOCK + int(blocks[block].argmax())
        score = float(left[index])
        if score < least:
            break
        taken.append((index, score))
        left[index] = -np.inf
        there, shared = crowd.meets(index)
        near = (shared > 0) & (left[there] > -np.inf)
        there, shared = there[near], shared[near]
        left[there] *= np.exp(-(crowd.iou(index, there, shared) ** 2) / max(sigma, 1e-9))
        touched = np.unique(there // _BLOCK)
        greatest[touched] = blocks[touched].max(axis=1)
    return taken


def cross_tile_duplicates(points: Numbers, sources: Indexes, near: float) -> NDArray[np.bool_]:
    """Which points are told a second time by another tile: for each that is kept, of every other tile the nearest.

    Args:
        points: n x 2, of one class, best first.
        sources: the tile of each.
        near: pixels that they are apart at most.
    """
    crowd = BoxIndex(np.column_stack([points - near, points + near]))
    gone = np.zeros(len(points), dtype=np.bool_)
    for one, other, _ in crowd.pairs(np.arange(len(points)), 0.5, gone):
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
