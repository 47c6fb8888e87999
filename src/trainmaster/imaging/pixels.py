"""An image's pixels: its windows, as arrays, with where they are on earth and how they become eight bits.

It must not encode tiles (`encoding.py` does) nor know what a model is.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp, Interleaving
from rasterio.errors import RasterioError
from rasterio.io import DatasetReader
from rasterio.rpc import RPC
from rasterio.windows import Window as RasterWindow

from trainmaster.domain.errors import InvalidRequest
from trainmaster.domain.image.cutting import Window
from trainmaster.imaging.access import Access
from trainmaster.imaging.georeference import Georeference, chip_offset, georeference_of
from trainmaster.imaging.places import Place

Pixels = NDArray[Any]
"""Bands x rows x columns."""


@dataclass(frozen=True, slots=True)
class Placing:
    """Where the pixels of a tile are on earth, in whichever way its image says it.

    Attributes:
        crs, transform: of an affine transform; None where there is none.
        gcps, gcps_crs: ground control points.
        rpcs: the whole image's sensor model.
        window: which pixels of the image these are.
        size: width and height of the whole image.
    """

    crs: Any = None
    transform: Any = None
    gcps: tuple[GroundControlPoint, ...] = ()
    gcps_crs: Any = None
    rpcs: RPC | None = None
    window: Window = field(default_factory=lambda: Window(0, 0, 0, 0))
    size: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Scale:
    """How pixels become eight bits: the same for all tiles of an image, so that no seams appear.

    Attributes:
        low, high: the values that become 0 and 255.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Chip:
    """What was read of a window: pixels and all that belongs to them."""

    pixels: Pixels
    placing: Placing
    scale: Scale | None
    colours: tuple[ColorInterp, ...]
    nodata: float | None


class Image:
    """One image, read by several threads; each reads with a handle of its own, as GDAL wants it.

    Args:
        access: opens it.
        place: where it is.
        role: IAM role ARN under which it is read; None for our own.
    """

    def __init__(self, access: Access, place: Place, role: str | None) -> None:
        self._access = access
        self._place = place
        self._role = role
        self._idle: queue.SimpleQueue[DatasetReader] = queue.SimpleQueue()
        with self._handle() as image:
            self.width, self.height = int(image.width), int(image.height)
            self.driver = str(image.driver)
            check_blocks(image)
            self.georeference: Georeference | None = georeference_of(image)
            self._scale = scale_of(image)

    def read(self, window: Window) -> Chip:
        """The pixels of a window. Raises as `Access.open` does, and `InvalidRequest` for a window beyond the image."""
        if window.column + window.width > self.width or window.row + window.height > self.height:
            raise InvalidRequest(f"{self._place.shown} is smaller than when it was submitted", field="imageUrls")
        there = RasterWindow(window.column, window.row, window.width, window.height)
        with self._handle() as image:
            check_memory(image, window)
            try:
                pixels = image.read(window=there)
            except RasterioError as error:
                raise self._access.why(self._place, self._role, str(error.__cause__ or error)) from error
            placing = placing_of(image, window) if self.georeference is not None else Placing()
            return Chip(pixels, placing, self._scale, tuple(image.colorinterp), image.nodata)

    def close(self) -> None:
        """Close what is not in use."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    @contextmanager
    def _handle(self) -> Iterator[DatasetReader]:
        with self._access.under(self._place, self._role):
            try:
                image = self._idle.get_nowait()
            except queue.Empty:
                image = self._access.open(self._place, self._role)
            yield image
            self._idle.put(image)


def placing_of(image: DatasetReader, window: Window) -> Placing:
    """Where a window of an image is: as the image says it, moved to the window's corner; sensor models as they are."""
    gcps, gcps_crs = image.gcps
    if image.crs is not None and not image.transform.is_identity:
        there = RasterWindow(window.column, window.row, window.width, window.height)
        return Placing(crs=image.crs, transform=image.window_transform(there))
    if gcps:
        moved = (
            GroundControlPoint(each.row - window.row, each.col - window.column, each.x, each.y, each.z, each.id)
            for each in gcps
        )
        return Placing(gcps=tuple(moved), gcps_crs=gcps_crs)
    if image.rpcs is not None:
        row, column = (round(each) for each in chip_offset(image) or (0.0, 0.0))
        there_too = replace(window, row=window.row + row, column=window.column + column)
        return Placing(rpcs=image.rpcs, window=there_too, size=(image.width, image.height))
    return Placing()


LARGEST = 256 * 1024 * 1024
"""Bytes that a tile, or a block of the image, has at most: a worker has 3 GB for several, each several times."""


def check_memory(image: DatasetReader, window: Window) -> None:
    """Raise `InvalidRequest` for a tile that does not fit into a worker's memory."""
    size = window.width * window.height * _depth(image)
    if size > LARGEST:
        told = f"a tile of {window.width} x {window.height} pixels has {size} bytes, more than {LARGEST}"
        raise InvalidRequest(told, field="imageProcessorTileSize", hint="Make tiles smaller.")


def check_blocks(image: DatasetReader) -> None:
    """Raise `InvalidRequest` for blocks that do not fit into memory: a small file may unpack to gigabytes."""
    deep = _depth(image)
    together = deep if image.interleaving is Interleaving.pixel else deep // image.count
    height, width = image.block_shapes[0]
    if height * width * together > LARGEST:
        told = f"the image's blocks of {width} x {height} pixels have {height * width * together} bytes"
        hint = f"A whole block has to be unpacked for each tile, and {LARGEST} bytes fit: write it with smaller blocks."
        raise InvalidRequest(told, field="imageUrls", hint=hint)


def _depth(image: DatasetReader) -> int:
    """Bytes of a pixel, all bands together."""
    return sum(np.dtype(each).itemsize for each in image.dtypes)


def scale_of(image: DatasetReader) -> Scale | None:
    """How an image's pixels become eight bits: by what its header says that they are; None where it does not say.

    The bits in use (NBITS) come first, then statistics, then what the type can hold.
    """
    kind = np.dtype(image.dtypes[0])
    bits = image.tags(1, ns="IMAGE_STRUCTURE").get("NBITS")
    if bits is not None and kind.kind in "ui":
        return Scale(0.0, float(2 ** int(bits) - 1))
    told = image.tags(1)
    low, high = (_number(told.get(f"STATISTICS_{name}")) for name in ("MINIMUM", "MAXIMUM"))
    if low is not None and high is not None:
        return Scale(low, high)
    if kind.kind not in "ui":
        return None
    return Scale(float(np.iinfo(kind).min), float(np.iinfo(kind).max))


def _number(text: str | None) -> float | None:
    """A statistic; None for one that is missing, or none: anybody writes what he likes into a header."""
    try:
        found = float(text or "nan")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def eight_bits(pixels: Pixels, scale: Scale | None) -> NDArray[np.uint8]:
    """Pixels in eight bits. Raises `InvalidRequest` where nothing says what their range is."""
    if pixels.dtype == np.uint8:
        return pixels
    if scale is None or pixels.dtype.kind == "c":
        kind = pixels.dtype.name
        hint = "Use NITF or GTIFF without JPEG compression, or put statistics into the image's header."
        raise InvalidRequest(f"{kind} pixels have no range", field="imageProcessorTileFormat", hint=hint)
    span = max(scale.high - scale.low, 1e-12)
    spread = (pixels.astype(np.float64) - scale.low) * (255.0 / span)
    found: NDArray[np.uint8] = np.nan_to_num(np.clip(np.rint(spread), 0, 255)).astype(np.uint8)
    return found
