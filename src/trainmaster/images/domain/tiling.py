"""Division of an image into regions, which workers process, and of regions into tiles, which a model processes.

The number of regions is ModelRunner's (its toolkit's VariableOverlapTilingStrategy): the overlap is widened until full
tiles fill the image, and a region has as many of those, per axis, as fit into it. Three things differ: tiles are spread
evenly over the pixels that its rounding leaves out, so that all pixels are processed; a part no larger than the overlap
is one region of small tiles, where ModelRunner has no region and silently drops the job; and a division into too many
pieces is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.domain.errors import InvalidRequest

MAX_REGIONS = 10_000
"""Per image; each is a record, a message and a result. At the guide's sizes that is a million pixels per axis."""
MAX_TILES = 250_000
"""Per region; more are too many for one worker."""


@dataclass(frozen=True, slots=True)
class Window:
    """A rectangle of an image in pixels: its upper left corner (column, row) and its size (width, height)."""

    column: int
    row: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Parameters of the division of an image.

    Attributes:
        region: pixels of a region, per axis (`REGION_SIZE`); a region may have a few more to avoid a remainder.
        tile: pixels of a tile, per axis.
        overlap: minimum overlap of neighboring tiles in pixels.
    """

    region: tuple[int, int] = (10_240, 10_240)
    tile: tuple[int, int]
    overlap: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Part of an image that one worker processes.

    Attributes:
        number: from 0, in the order of rows, then columns.
        window: the part of the image that it covers.
        tiles: number of its tiles.
    """

    number: int
    window: Window
    tiles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """One axis of a part: tiles `0..tiles - 1`, evenly spread from edge to edge, `each` of them per region.

    Attributes:
        extent: pixels of the part.
        tile: pixels of a tile; fewer than the tile of the cut where the part is smaller.
    """

    extent: int
    tile: int
    tiles: int
    each: int

    @property
    def regions(self) -> int:
        return _ceil(self.tiles, self.each)

    def begin(self, tile: int) -> int:
        return 0 if self.tiles == 1 else tile * (self.extent - self.tile) // (self.tiles - 1)

    def span(self, region: int) -> tuple[int, int]:
        """Return the first pixel of a region and its number of pixels."""
        first = self.begin(region * self.each)
        last = self.begin(min((region + 1) * self.each, self.tiles) - 1)
        return first, last + self.tile - first


def regions(part: Window, cut: Cut) -> tuple[Region, ...]:
    """Return the regions of a part of an image; they cover it, and neighbors overlap as tiles do.

    A part with fewer pixels than a tile is divided into smaller tiles.

    Raises `InvalidRequest` for a part without pixels, for tiles that are larger than a region or not larger than their
    overlap, and for more than `MAX_REGIONS` regions or `MAX_TILES` tiles in one of them.
    """
    across, down = _axes(part, cut)
    found: list[Region] = []
    for row in range(down.regions):
        top, height = down.span(row)
        for column in range(across.regions):
            left, width = across.span(column)
            window = Window(part.column + left, part.row + top, width, height)
            found.append(Region(number=len(found), window=window, tiles=_tile_count(window, cut)))
    return tuple(found)


def tiles(region: Window, cut: Cut) -> tuple[Window, ...]:
    """Return the tiles of a region, in the order of rows, then columns; they cover it and overlap as the cut requires.

    They are as few as possible, of full size and evenly spread; a region smaller than a tile has smaller ones.
    """
    across = _spread(region.width, cut.tile[0], cut.overlap[0])
    down = _spread(region.height, cut.tile[1], cut.overlap[1])
    return tuple(
        Window(region.column + across.begin(column), region.row + down.begin(row), across.tile, down.tile)
        for row in range(down.tiles)
        for column in range(across.tiles)
    )


def load(cut_into: Sequence[Region], workers: int) -> int:
    """Return the requests that regions make at once with so many workers each, at most one per tile."""
    return sum(min(workers, region.tiles) for region in cut_into)


def _axes(part: Window, cut: Cut) -> tuple[_Axis, _Axis]:
    _check(part, cut)
    sizes = [*zip((part.width, part.height), cut.region, cut.tile, cut.overlap, strict=True)]
    # ModelRunner counts full tiles alone only if both axes have room for one.
    full = all(extent >= tile for extent, _, tile, _ in sizes)
    across, down = (_axis(*each, full=full) for each in sizes)
    if across.regions * down.regions > MAX_REGIONS:
        wrong = f"The image would be cut into {across.regions * down.regions} regions, more than {MAX_REGIONS}."
        hint = "Specify larger tiles or a smaller overlap, or request a smaller part of the image (regionOfInterest)."
        raise InvalidRequest(wrong, field="imageProcessorTileOverlap", hint=hint)
    return across, down


def _check(part: Window, cut: Cut) -> None:
    if part.width < 1 or part.height < 1:
        hint = "Specify an image, or a regionOfInterest, that has pixels."
        raise InvalidRequest("The requested part of the image has no pixels.", field="imageUrls[0]", hint=hint)
    for region, tile, overlap in zip(cut.region, cut.tile, cut.overlap, strict=True):
        if not 0 <= overlap < tile:
            wrong = f"The overlap of tiles is {overlap} pixels, and the tiles have {tile}."
            hint = "Specify an overlap of at least 0 and less than imageProcessorTileSize."
            raise InvalidRequest(wrong, field="imageProcessorTileOverlap", hint=hint)
        if tile > region:
            wrong = f"A tile of {tile} pixels does not fit into a region, which has {region}."
            hint = f"Specify at most {min(cut.region)}, or set a larger REGION_SIZE."
            raise InvalidRequest(wrong, field="imageProcessorTileSize", hint=hint)
    largest = Window(0, 0, min(part.width, cut.region[0]), min(part.height, cut.region[1]))
    if (found := _tile_count(largest, cut)) > MAX_TILES:
        wrong = f"A region would be cut into {found} tiles, more than {MAX_TILES}."
        hint = "Specify larger tiles or a smaller overlap."
        raise InvalidRequest(wrong, field="imageProcessorTileSize", hint=hint)


def _axis(extent: int, region: int, tile: int, overlap: int, *, full: bool) -> _Axis:
    """Return ModelRunner's arithmetic for one axis: the widened overlap, its tiles, and the tiles per region."""
    tiles = _ceil(extent - overlap, tile - overlap)
    spare = overlap + tiles * (tile - overlap) - extent
    widened = overlap if tiles <= 1 else overlap + _ceil(spare, tiles - 1)
    stride = tile - widened
    count = (extent - tile) // stride + 1 if full else _ceil(extent - widened, stride)
    return _Axis(extent=extent, tile=min(tile, extent), tiles=max(1, count), each=(region - widened) // stride)


def _spread(extent: int, tile: int, overlap: int) -> _Axis:
    count = 1 + _ceil(max(0, extent - tile), tile - overlap)
    return _Axis(extent=extent, tile=min(tile, extent), tiles=count, each=count)


def _tile_count(window: Window, cut: Cut) -> int:
    across, down = map(_spread, (window.width, window.height), cut.tile, cut.overlap)
    return across.tiles * down.tiles


def _ceil(pixels: int, by: int) -> int:
    return -(-pixels // by)
