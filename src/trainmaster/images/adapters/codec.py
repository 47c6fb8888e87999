"""What an image job is to do, as a compact JSON list, and back.

Part of `dynamodb_packing`, which makes one text of a whole job. It must not know rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.domain.work import ImageWork


def image_values(work: ImageWork) -> list[Any]:
    """Which endpoint and variant, which part of the image and how it is cut, then counts; zeros at the end left out."""
    part, cut = work.part, work.cut
    counts = [work.regions, work.tiles, work.workers, work.load, work.left, work.done, work.failed]
    while counts and not counts[-1]:
        counts.pop()
    where = [part.column, part.row, part.width, part.height]
    return [work.endpoint, work.variant, where, [*cut.region, *cut.tile, *cut.overlap], *counts]


def image_of(value: Sequence[Any]) -> ImageWork:
    """The work of such a list; what a newer version has added is left alone."""
    endpoint, variant, where, how, *counts = value
    regions, tiles, workers, load, left, done, failed, *_ = (*counts, 0, 0, 0, 0, 0, 0, 0)
    return ImageWork(
        endpoint=endpoint,
        variant=variant,
        part=Window(*where),
        cut=Cut(region=(how[0], how[1]), tile=(how[2], how[3]), overlap=(how[4], how[5])),
        regions=regions,
        tiles=tiles,
        workers=workers,
        load=load,
        left=left,
        done=done,
        failed=failed,
    )
