"""Reads windows of an image as arrays, with their georeference and colors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp, Interleaving
from rasterio.io import DatasetReader
from rasterio.rpc import RPC
from rasterio.windows import Window as RasterWindow

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.reading.access import Access
from trainmaster.images.pixels.reading.georeference import (
    Georeference,
    chip_offset,
    georeference_of,
    has_better_model,
    has_gcps,
    has_model,
    has_transform,
)
from trainmaster.images.pixels.reading.source_metadata import source_metadata
from trainmaster.images.pixels.reading.stretch import EIGHT_BITS, Scale, measured, scale_of

Pixels = NDArray[Any]
"""Bands x rows x columns."""


@dataclass(frozen=True, slots=True)
class Placing:
    """The position of a tile's pixels on earth, in the form that its image has.

    Attributes:
        crs, transform: of an affine transform; None without one.
        gcps, gcps_crs: ground control points.
        rpcs: the whole image's sensor model.
        window: the pixels of the image.
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
class Chip:
    """The pixels of a window and their metadata.

    `scale` returns the conversion to eight bits; it may read the image, so it is called only if needed.
    """

    pixels: Pixels
    placing: Placing
    scale: Callable[[], Scale | None]
    colors: tuple[ColorInterp, ...]
    nodata: float | None


class Image:
    """One image, read by several threads; each has a handle of its own, as GDAL requires.

    Args:
        access: opens it.
        place: its location.
        role: IAM role ARN under which it is read; None for the queue's own role.
        submitter: the principal that submitted the job; "" if unknown.
    """

    def __init__(self, access: Access, place: ImageLocation, role: str | None, submitter: str = "") -> None:
        self._place = place
        self._source = access.source(place, role, submitter)
        self._idle: queue.SimpleQueue[DatasetReader] = queue.SimpleQueue()
        self._measured: list[Scale | None] = []
        self._measuring = threading.Lock()
        try:
            with self._handle() as image:
                self.width, self.height = int(image.width), int(image.height)
                self.driver = str(image.driver)
                self.source = source_metadata(image)
                check_blocks(image)
                self.georeference: Georeference | None = georeference_of(image, access.sensors)
                self._palette = palette_of(image)
                self._pixel_bytes = _pixel_bytes(image)
                self._header_scale = EIGHT_BITS if self._palette is not None else scale_of(image)
        except BaseException:
            self.close()
            raise

    def read(self, window: Window) -> Chip:
        """Return the pixels of a window. Raises as `Source.reading` does; `InvalidRequest` also beyond the image."""
        if window.column + window.width > self.width or window.row + window.height > self.height:
            raise InvalidRequest(f"{self._place.shown} is smaller than when it was submitted", field="imageUrls")
        there = RasterWindow(window.column, window.row, window.width, window.height)
        with self._handle() as image:
            check_memory(image, window)
            pixels = image.read(window=there)
            placing = placing_of(image, window) if self.georeference is not None else Placing()
            if self._palette is not None:
                colored = np.moveaxis(self._palette.take(pixels[0], axis=0, mode="clip"), -1, 0)
                names = _COLORS[: len(colored)] if len(colored) > 1 else (ColorInterp.gray,)
                return Chip(colored, placing, self.scale, names, None)
            return Chip(pixels, placing, self.scale, tuple(image.colorinterp), image.nodata)

    def bytes_of(self, window: Window) -> int:
        """Return the bytes of a window's pixels."""
        return window.width * window.height * self._pixel_bytes

    def scale(self) -> Scale | None:
        """Return the image's conversion to eight bits, by its header or else its pixels; None if neither has one."""
        if self._header_scale is not None:
            return self._header_scale
        with self._measuring:
            if not self._measured:
                with self._handle() as image:
                    found = measured(image)
                self._measured.append(found)
            return self._measured[0]

    def close(self) -> None:
        """Close idle handles, and let nothing more be opened."""
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()
        self._source.close()

    @contextmanager
    def _handle(self) -> Iterator[DatasetReader]:
        """Yield a handle for one thread; it is reused unless an error occurred."""
        with self._source.reading():
            try:
                image = self._idle.get_nowait()
            except queue.Empty:
                image = self._source.open()
            yield image
        self._idle.put(image)


def placing_of(image: DatasetReader, window: Window) -> Placing:
    """Return a window's placing: the image's, moved to the window's corner; sensor models stay unchanged.

    A NITF keeps its corners beside its sensor model.
    """
    placing = _placing_on_map(image, window)
    if not has_better_model(image) and (placing != Placing() or not has_model(image)):
        return placing
    row, column = (round(each) for each in chip_offset(image) or (0.0, 0.0))
    there_too = replace(window, row=window.row + row, column=window.column + column)
    return replace(placing, rpcs=image.rpcs, window=there_too, size=(image.width, image.height))


def _placing_on_map(image: DatasetReader, window: Window) -> Placing:
    gcps, gcps_crs = image.gcps
    if has_transform(image):
        there = RasterWindow(window.column, window.row, window.width, window.height)
        return Placing(crs=image.crs, transform=image.window_transform(there))
    if has_gcps(image):
        moved = (
            GroundControlPoint(each.row - window.row, each.col - window.column, each.x, each.y, each.z, each.id)
            for each in gcps
        )
        return Placing(gcps=tuple(moved), gcps_crs=gcps_crs)
    return Placing()


MAX_BYTES = 256 * 1024 * 1024
"""Maximum bytes of a tile or a block of the image: a worker has 3 GB for several, each several times."""


def check_memory(image: DatasetReader, window: Window) -> None:
    """Raise `InvalidRequest` for a tile that does not fit into a worker's memory."""
    size = window.width * window.height * _pixel_bytes(image)
    if size > MAX_BYTES:
        colormap = f"a tile of {window.width} x {window.height} pixels has {size} bytes, more than {MAX_BYTES}"
        raise InvalidRequest(colormap, field="imageProcessorTileSize", hint="Use smaller tiles.")


def check_blocks(image: DatasetReader) -> None:
    """Raise `InvalidRequest` for blocks that do not fit into memory: a small file may unpack to gigabytes."""
    deep = _depth(image)
    together = deep if image.interleaving is Interleaving.pixel else deep // image.count
    height, width = image.block_shapes[0]
    if height * width * together > MAX_BYTES:
        colormap = f"the image's blocks of {width} x {height} pixels have {height * width * together} bytes"
        hint = (
            f"A whole block has to be unpacked for each tile, and {MAX_BYTES} bytes fit: write it with smaller blocks."
        )
        raise InvalidRequest(colormap, field="imageUrls", hint=hint)


def _pixel_bytes(image: DatasetReader) -> int:
    """Return the bytes of a pixel as it is sent: palettes become colors."""
    return len(_COLORS) if _is_paletted(image) else _depth(image)


def _depth(image: DatasetReader) -> int:
    """Return the bytes of a pixel, all bands together."""
    return sum(np.dtype(each).itemsize for each in image.dtypes)


_COLORS = (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha)


def palette_of(image: DatasetReader) -> NDArray[np.uint8] | None:
    """Return the palette by index: one band if all colors are grays, else RGB; with alpha unless all are opaque.

    None if the image has none.
    """
    if not _is_paletted(image):
        return None
    try:
        colormap = image.colormap(1)
    except ValueError:
        return None
    colors = np.zeros((max(colormap) + 1, 4), dtype=np.uint8)
    for index, color in colormap.items():
        colors[index] = color
    if not (colors[:, 3] == _OPAQUE).all():
        return colors
    return colors[:, :3] if (colors[:, :3] != colors[:, :1]).any() else colors[:, :1]


def _is_paletted(image: DatasetReader) -> bool:
    return image.count == 1 and image.colorinterp[0] is ColorInterp.palette and image.dtypes[0] in ("uint8", "uint16")


_OPAQUE = 255
