"""Placement of images that others made, against GDAL's warper: `python -m benchmarks.images.placement FOLDER ...`.

Each image's pixels, numbered, are warped to longitude and latitude by GDAL, which tells where each pixel goes; the
georeference of a region worker has to agree in both directions. It downloads nothing: the folders have the images,
such as clones of rasterio, rio-tiler and nitro on GitHub, and JITC's NITF sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rasterio.io import DatasetReader
from rasterio.transform import from_bounds
from rasterio.warp import reproject

from trainmaster.images.pixels.reading.access import DRIVERS, OPTIONS
from trainmaster.images.pixels.reading.georeference import (
    Georeference,
    chip_offset,
    georeference_of,
    has_better_model,
    has_transform,
    moved,
)

MAX_PIXELS = 9_000_000
"""Of an image; larger ones are left out, since all their numbers are warped in memory."""
SIDE = 60
"""Pixels of each map on either side; they are as large as those of the image, or smaller."""
FRACTIONS = (0.15, 0.5, 0.85)
"""Places of the maps in the image."""
MIN_PIXELS = 5
WGS84 = CRS.from_epsg(4326)


@dataclass(frozen=True)
class Checked:
    """The outcome for one image.

    Attributes:
        path: of the image.
        said: "ok", "none" (neither side has a georeference), "left out" or "WRONG".
        pixels: largest difference from GDAL, in pixels of the image; None if nothing was compared.
        note: what is to be known about it.
    """

    path: Path
    said: str
    pixels: float | None = None
    note: str = ""


def check(path: Path, tolerance: float = 0.2) -> Checked:
    """Compare the places of one image with GDAL's."""
    warnings.simplefilter("ignore")
    with rasterio.Env(**OPTIONS):
        try:
            image = DatasetReader(str(path), driver=DRIVERS, sharing=False)
        except rasterio.errors.RasterioIOError as error:
            return Checked(path, "left out", note=f"GDAL cannot open it: {str(error)[:80]}")
        with image:
            return _check(path, image, tolerance)


def _check(path: Path, image: DatasetReader, tolerance: float) -> Checked:
    where, given = georeference_of(image), _given(image)
    if where is None:
        return Checked(path, "none" if given is None else "left out", note="" if given is None else "no usable place")
    if image.width * image.height > MAX_PIXELS:
        return Checked(path, "left out", note="too large to warp here")
    lonlat, pixels = _warped(image, where, given or {})
    if len(lonlat) < MIN_PIXELS:
        return Checked(path, "left out", note="too few pixels to compare")
    worst = float(np.abs(where.image(lonlat) - pixels).max())
    # GDAL fits one polynomial to control points in each direction, and neither is the inverse of the other.
    if "gcps" not in (given or {}):
        worst = max(worst, float(np.abs(where.image(where.world(pixels)) - pixels).max()))
    return Checked(path, "ok" if worst <= tolerance else "WRONG", worst, str(image.driver))


def _given(image: DatasetReader) -> dict[str, Any] | None:
    """Return the georeference for GDAL's warper, the best one of several; None without any."""
    offset, (gcps, gcps_crs) = chip_offset(image), image.gcps
    rpcs = None if image.rpcs is None or offset is None else moved(image.rpcs, *offset)
    by_model = {} if rpcs is None else {"src_crs": WGS84, "rpcs": rpcs, "RPC_HEIGHT": rpcs.height_off}
    if by_model and has_better_model(image):
        return by_model
    if has_transform(image):
        return {"src_crs": image.crs, "src_transform": image.transform}
    if gcps and gcps_crs is not None:
        return {"src_crs": gcps_crs, "gcps": gcps}
    return by_model or None


def _warped(image: DatasetReader, where: Georeference, given: dict[str, Any]) -> tuple[Any, Any]:
    """Return longitudes and latitudes with columns and rows, as GDAL's warper has them, around nine points."""
    size = np.array([image.width, image.height])
    half = np.minimum(size / 8, SIDE / 2)
    rows, columns = np.mgrid[0 : image.height, 0 : image.width].astype("float64") + 0.5
    found = [
        _warped_around(size * (x, y), half, where, given, np.stack([columns, rows]))
        for x in FRACTIONS
        for y in FRACTIONS
    ]
    return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])


def _warped_around(middle: Any, half: Any, where: Georeference, given: dict[str, Any], numbers: Any) -> tuple[Any, Any]:
    corners = where.world(middle + half * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]))
    (west, south), (east, north) = corners.min(axis=0), corners.max(axis=0)
    if not np.isfinite(corners).all() or not 0 < east - west < 180 or north <= south:
        return np.empty((0, 2)), np.empty((0, 2))
    onto = from_bounds(west, south, east, north, SIDE, SIDE)
    columns, rows = (
        reproject(
            each, np.full((SIDE, SIDE), -1.0), dst_transform=onto, dst_crs=WGS84, dst_nodata=-1, init_dest_nodata=True,
            resampling=Resampling.bilinear, tolerance=0, **given,
        )[0]
        for each in numbers
    )  # fmt: skip
    height, width = numbers.shape[1:]
    y, x = np.nonzero((columns > 1) & (rows > 1) & (columns < width - 1) & (rows < height - 1))
    longitudes, latitudes = west + (x + 0.5) * (east - west) / SIDE, north - (y + 0.5) * (north - south) / SIDE
    return np.column_stack([longitudes, latitudes]), np.column_stack([columns[y, x], rows[y, x]])


def _images(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)


def main(arguments: list[str]) -> int:
    """Check all images of some folders; return 1 if one is placed wrong."""
    options = _options(arguments)
    found = [check(path, options.tolerance) for path in _images(options.folders)]
    for one in (one for one in found if one.said == "WRONG" or (one.pixels is not None and one.pixels > 0.05)):
        sys.stdout.write(f"{one.said} {one.pixels:.3f} pixels {one.path} {one.note}\n")
    for said in sorted({one.said for one in found}):
        of_it = [one for one in found if one.said == said]
        sys.stdout.write(f"{said}: {len(of_it)}\n")
    for one in (one for one in found if one.said == "left out"):
        sys.stdout.write(f"  left out: {one.path.name}: {one.note}\n")
    return int(any(one.said == "WRONG" for one in found))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.images.placement", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--tolerance", type=float, default=0.2, help="in pixels of the image")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
