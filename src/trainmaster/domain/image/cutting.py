"""How an image is cut: into regions, which are dispatched one by one, and those into tiles, which a model sees.

It must not read an image.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of an image, pixels: its upper left corner (column, row) and its size (width, height)."""

    column: int
    row: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How an image is cut.

    Attributes:
        region: most pixels of a region, per axis (`REGION_SIZE`).
        tile: pixels of a tile, per axis.
        overlap: pixels that neighbouring tiles share at least.
    """

    region: tuple[int, int] = (10_240, 10_240)
    tile: tuple[int, int]
    overlap: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Part of an image that one worker processes.

    Attributes:
        number: from 0, in the order of rows, then columns.
        window: what of the image it covers.
        tiles: how many tiles that is.
    """

    number: int
    window: Window
    tiles: int
