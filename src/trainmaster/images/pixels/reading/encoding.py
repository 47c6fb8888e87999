"""Encodes tiles for models in memory as NITF, JPEG, PNG or GeoTIFF, with georeference if the format has it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import rasterio.shutil
import rasterio.warp
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp
from rasterio.io import DatasetWriter, MemoryFile
from rasterio.rpc import RPC

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.request import COMPRESSIONS, Compression, TileFormat
from trainmaster.images.pixels.reading.environment import computing
from trainmaster.images.pixels.reading.georeference import WGS84, applied, moved
from trainmaster.images.pixels.reading.stretch import eight_bits
from trainmaster.images.pixels.reading.windows import Chip, Pixels, Placing

log = logging.getLogger(__name__)

CONTENT_TYPES = {
    TileFormat.NITF: "image/nitf",
    TileFormat.JPEG: "image/jpeg",
    TileFormat.PNG: "image/png",
    TileFormat.GEOTIFF: "image/tiff",
}
"""Content types of tiles if the request has no `ContentType`."""

_DRIVERS = {
    TileFormat.NITF: "NITF",
    TileFormat.JPEG: "JPEG",
    TileFormat.PNG: "PNG",
    TileFormat.GEOTIFF: "GTiff",
}
# The guide for model developers, "imageProcessorTileCompression"; JPEG and PNG have their own.
_OPTIONS: dict[tuple[TileFormat, Compression], dict[str, Any]] = {
    (TileFormat.NITF, Compression.NONE): {"IC": "NC"},
    (TileFormat.NITF, Compression.JPEG): {"IC": "C3"},
    (TileFormat.NITF, Compression.J2K): {"IC": "C8"},
    (TileFormat.GEOTIFF, Compression.NONE): {},
    (TileFormat.GEOTIFF, Compression.LZW): {"COMPRESS": "LZW"},
    (TileFormat.GEOTIFF, Compression.JPEG): {"COMPRESS": "JPEG"},
}
_GREY_OR_RGB, _WITH_ALPHA_TOO = (1, 3), (1, 2, 3, 4)
_BANDS: dict[tuple[TileFormat, Compression | None], tuple[int, ...]] = {
    (TileFormat.JPEG, None): _GREY_OR_RGB,
    (TileFormat.PNG, None): _WITH_ALPHA_TOO,
    (TileFormat.NITF, Compression.JPEG): _GREY_OR_RGB,
    (TileFormat.GEOTIFF, Compression.JPEG): _WITH_ALPHA_TOO,
}
"""Supported numbers of bands; other formats take any number."""


def encode(chip: Chip, form: TileFormat, compression: Compression) -> bytes:
    """Return a tile's bytes; `COMPRESSIONS` of the domain has the legal pairs.

    GeoTIFF keeps the georeference unchanged. NITF has the corners in whole metres or arc seconds (IGEOLO), and the
    whole image's sensor model (RPC00B) with the tile's position in it (ICHIPB). Raises `InvalidRequest` for pixels that
    the format cannot hold.
    """
    with computing():
        return _encode(chip, form, compression)


def _encode(chip: Chip, form: TileFormat, compression: Compression) -> bytes:
    pixels = _fitting(chip, form, compression)
    placing = chip.placing if form in COMPRESSIONS else Placing()
    options = _OPTIONS[form, compression] if form in COMPRESSIONS else {}
    if form is TileFormat.NITF:
        placing = _nitf_placing(placing, pixels)
        options = options | chip_of(placing)
    elif placing.rpcs is not None:
        placing = replace(placing, rpcs=_moved(placing, placing.rpcs))
    try:
        return _encoded(pixels, placing, chip, _DRIVERS[form], options)
    except Exception as error:
        if placing.rpcs is not None:
            log.warning("tiles are sent without the image's sensor model", extra={"cause": str(error)})
            return _encode(replace(chip, placing=replace(chip.placing, rpcs=None)), form, compression)
        # GDAL's exceptions here share no public class.
        message = f"{len(pixels)} bands of {pixels.dtype.name} cannot be encoded as {form} tiles: {error}"
        raise InvalidRequest(message, field="imageProcessorTileFormat") from error


def chip_of(placing: Placing) -> dict[str, str]:
    """Return the tag that marks a NITF as part of a larger image with this sensor model (STDI-0002, ICHIPB).

    It has the rows and columns of four corner pixels' centres, in the tile and in the whole image.
    """
    if placing.rpcs is None:
        return {}
    window, (width, height) = placing.window, placing.size
    here = [(row, column) for row in (0.5, window.height - 0.5) for column in (0.5, window.width - 0.5)]
    there = [(row + window.row, column + window.column) for row, column in here]
    numbers = "".join(f"{number:012.3f}" for pair in (*here, *there) for number in pair)
    return {"TRE": f"ICHIPB=000001.000000000{numbers}{height:08}{width:08}"}


def _moved(placing: Placing, rpcs: RPC) -> RPC:
    """Return the sensor model for the tile alone; GeoTIFF allows offsets of any sign."""
    return moved(rpcs, placing.window.row, placing.window.column)


def _fitting(chip: Chip, form: TileFormat, compression: Compression) -> Pixels:
    """Return the pixels in bands and bits that the format has."""
    pixels = chip.pixels
    bands = _BANDS.get((form, compression if form in COMPRESSIONS else None))
    if bands and len(pixels) not in bands:
        pixels = pixels[:3] if len(pixels) >= 3 else pixels[:1]
    fits = form in COMPRESSIONS and compression is not Compression.JPEG
    if fits or (form is TileFormat.PNG and pixels.dtype == np.uint16):
        return pixels
    return eight_bits(pixels, chip.scale())


def _encoded(pixels: Pixels, placing: Placing, chip: Chip, driver: str, options: dict[str, Any]) -> bytes:
    """Encode, through an image in memory except for GeoTIFF: the other drivers can only copy."""
    bands, height, width = pixels.shape
    profile: dict[str, Any] = {"count": bands, "height": height, "width": width, "dtype": pixels.dtype}
    if chip.nodata is not None and pixels.dtype == chip.pixels.dtype and driver == "GTiff":
        profile["nodata"] = chip.nodata
    if placing.transform is not None:
        profile |= {"crs": placing.crs, "transform": placing.transform}
    with MemoryFile(ext=".tile") as tile:
        if driver == "GTiff":
            with tile.open(driver=driver, **profile, **options) as written:
                _write(written, pixels, placing, chip)
        else:
            with MemoryFile(ext=".draft") as draft, draft.open(driver="MEM", **profile) as drafted:
                _write(drafted, pixels, placing, chip)
                rasterio.shutil.copy(drafted, tile.name, driver=driver, **options)
        return bytes(tile.getbuffer())


def _write(written: DatasetWriter, pixels: Pixels, placing: Placing, chip: Chip) -> None:
    """Write the pixels after everything that a GeoTIFF has before them."""
    written.colorinterp = _colors(chip, len(pixels))
    if placing.gcps:
        written.gcps = (list(placing.gcps), placing.gcps_crs)
    if placing.rpcs is not None:
        written.rpcs = placing.rpcs
    written.write(pixels)


def _colors(chip: Chip, bands: int) -> Sequence[ColorInterp]:
    """Return the image's color interpretations without palettes, which tiles do not have."""
    kept = chip.colors[:bands]
    return tuple(ColorInterp.gray if each is ColorInterp.palette else each for each in kept)


def _nitf_placing(placing: Placing, pixels: Pixels) -> Placing:
    """Return a placing that NITF can hold: corners in WGS 84 or its UTM zones; others are reprojected."""
    if placing.transform is None or _is_nitfs(placing.crs):
        return replace(placing, gcps=(), gcps_crs=None)
    _, height, width = pixels.shape
    middles = ((0.5, 0.5), (width - 0.5, 0.5), (width - 0.5, height - 0.5), (0.5, height - 0.5))
    there = [applied(placing.transform, *each) for each in middles]
    xs, ys = rasterio.warp.transform(placing.crs, WGS84, [x for x, _ in there], [y for _, y in there])
    points = (GroundControlPoint(row, column, x, y) for (column, row), x, y in zip(middles, xs, ys, strict=True))
    return replace(placing, crs=None, transform=None, gcps=tuple(points), gcps_crs=WGS84)


def _is_nitfs(crs: Any) -> bool:
    code = crs.to_epsg() or 0
    return code == 4326 or 32601 <= code <= 32660 or 32701 <= code <= 32760
