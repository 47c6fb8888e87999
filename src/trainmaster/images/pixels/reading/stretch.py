"""Conversion of pixels to eight bits, the same for all tiles of an image and all workers, so that no seams appear."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.io import DatasetReader
from rasterio.windows import Window as RasterWindow

from trainmaster.domain.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of pixel values that eight bits cover.

    Attributes:
        low, high: the values that become 0 and 255.
    """

    low: float
    high: float


EIGHT_BITS = Scale(0.0, 255.0)
"""The scale of pixels that have eight bits already."""


def scale_of(image: DatasetReader) -> Scale | None:
    """Return an image's scale by its header; None if the header has none.

    The bits in use (NBITS) come first, then statistics. Statistics of bytes are ignored: bytes stay as they are.
    """
    kind = np.dtype(image.dtypes[0])
    bits = image.tags(1, ns="IMAGE_STRUCTURE").get("NBITS", "")
    if kind.kind == "u" and bits.isascii() and bits.isdecimal() and 0 < int(bits) <= 8 * kind.itemsize:
        return Scale(0.0, float(2 ** int(bits) - 1))
    if kind == np.uint8:
        return EIGHT_BITS
    tags = image.tags(1)
    low, high = (_number(tags.get(f"STATISTICS_{name}")) for name in ("MINIMUM", "MAXIMUM"))
    return None if low is None or high is None or low >= high else Scale(low, high)


def _number(text: str | None) -> float | None:
    """Return a statistic; None if it is missing or invalid, since headers may contain anything."""
    try:
        found = float(text or "nan")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


_BLOCKS, _SIDE, _BANDS = 16, 512, 3
"""Maximum sampled parts of an image, pixels of a part per axis, and bands."""
_TAILS = (2, 98)
"""Percentiles of the main range of values."""
_BELOW, _ABOVE = 0.2, 0.4
"""Fractions of that range added on both sides, as far as there are pixels."""


def measured(image: DatasetReader) -> Scale | None:
    """Return an image's scale by its pixels; None for complex or missing ones.

    Up to 16 of its blocks are sampled, spread evenly, so that all workers find the same. The range is that of dynamic
    range adjustment in OversightML's imagery toolkit (`DRAParameters`): from the 2nd to the 98th percentile, and a
    little beyond.
    """
    kind = np.dtype(image.dtypes[0])
    if kind.kind not in "uif":
        return None
    seen = [_valid_pixels(image, window) for window in _parts(image)]
    values = np.concatenate(seen) if seen else np.array([])
    if not len(values):
        return None
    first, last = (float(each) for each in np.percentile(values, _TAILS))
    low = max(float(values.min()), first - _BELOW * (last - first))
    high = min(float(values.max()), last + _ABOVE * (last - first))
    return Scale(low, high) if high > low else Scale(min(low, 0.0), max(low, 1.0))


def _parts(image: DatasetReader) -> list[RasterWindow]:
    high, wide = image.block_shapes[0]
    down, across = -(-image.height // high), -(-image.width // wide)
    columns = min(across, max(4, _BLOCKS // down))
    rows = min(down, _BLOCKS // columns)
    return [
        RasterWindow(
            x * wide, y * high, min(wide, _SIDE, image.width - x * wide), min(high, _SIDE, image.height - y * high)
        )
        for y in np.unique(np.linspace(0, down - 1, rows).astype(int)).tolist()
        for x in np.unique(np.linspace(0, across - 1, columns).astype(int)).tolist()
    ]


def _valid_pixels(image: DatasetReader, window: RasterWindow) -> NDArray[np.float64]:
    """Return the valid pixels."""
    bands = list(range(1, min(image.count, _BANDS) + 1))
    values: NDArray[np.float64] = image.read(bands, window=window).astype(np.float64).ravel()
    values = values[np.isfinite(values)]
    return values if image.nodata is None else values[values != image.nodata]


def eight_bits(pixels: NDArray[Any], scale: Scale | None) -> NDArray[np.uint8]:
    """Return pixels in eight bits. Raises `InvalidRequest` if their range is unknown."""
    if pixels.dtype == np.uint8 and scale in (None, EIGHT_BITS):
        return pixels
    if scale is None or pixels.dtype.kind == "c":
        kind = pixels.dtype.name
        hint = "Use NITF or GTIFF without JPEG compression, or put statistics into the image's header."
        raise InvalidRequest(f"{kind} pixels have no known range", field="imageProcessorTileFormat", hint=hint)
    span = max(scale.high - scale.low, 1e-12)
    spread = (pixels.astype(np.float64) - scale.low) * (255.0 / span)
    found: NDArray[np.uint8] = np.nan_to_num(np.clip(np.rint(spread), 0, 255)).astype(np.uint8)
    return found
