"""Heights of the ground from a raster: a file of a layer, or an object in S3 that is read by byte ranges."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from rasterio.crs import CRS
from rasterio.io import DatasetReader
from rasterio.warp import transform as reproject
from rasterio.windows import Window

from trainmaster.domain.errors import InvalidRequest, Unavailable
from trainmaster.images.pixels.reading.environment import computing
from trainmaster.images.pixels.reading.sensors import Numbers

WGS84 = CRS.from_epsg(4326)
MAX_PIXELS = 4_000_000
_HINT = "See the parameter ImageElevation of the stack of image jobs."


class Source(Protocol):
    """An image that can be opened; see `access.Source`."""

    def reading(self) -> AbstractContextManager[None]:
        """Set GDAL's environment."""
        ...

    def open(self) -> DatasetReader:
        """Return the open image."""
        ...


class LocalSource:
    """A file on this machine, such as one of a layer."""

    def __init__(self, path: str) -> None:
        self._path = path

    def reading(self) -> AbstractContextManager[Any]:
        """Set GDAL's environment."""
        return computing()

    def open(self) -> DatasetReader:
        """Return the open file."""
        return DatasetReader(self._path, driver=["GTiff"], sharing=False)


class RasterElevation:
    """Heights by bilinear interpolation of the first band of a raster; see `sensors.Elevation`.

    Args:
        source: makes the source of the raster, once.
        name: of the raster, for messages.
        max_pixels: pixels that are read at once; more places are looked up in parts.
    """

    def __init__(self, source: Callable[[], Source], name: str, *, max_pixels: int = MAX_PIXELS) -> None:
        self._make, self._name, self._max_pixels = source, name, max_pixels
        self._lock = threading.Lock()
        self._source: Source | None = None
        self._raster: DatasetReader | None = None

    def heights(self, longitudes: Numbers, latitudes: Numbers) -> Numbers:
        """Return heights; see `sensors.Elevation`. Raises `Unavailable` if the raster cannot be used, `Throttled`."""
        with self._lock:
            try:
                source = self._source = self._source or self._make()
                with source.reading():
                    return self._heights(self._opened(source), longitudes, latitudes)
            except InvalidRequest as error:
                raise Unavailable(
                    f"The elevation data {self._name} cannot be read: {error.message}. {_HINT}"
                ) from error
            except OSError as error:  # rasterio's errors of opening and reading
                raise Unavailable(f"The elevation data {self._name} cannot be read: {error}. {_HINT}") from error

    def _opened(self, source: Source) -> DatasetReader:
        if self._raster is None:
            raster = source.open()
            problem = problem_of(raster)
            if problem:
                raise InvalidRequest(problem)
            self._raster = raster
        return self._raster

    def _heights(self, raster: DatasetReader, longitudes: Numbers, latitudes: Numbers) -> Numbers:
        found = np.full(len(longitudes), np.nan)
        known = np.isfinite(longitudes) & np.isfinite(latitudes)
        if not known.any():
            return found
        xs, ys = longitudes[known], latitudes[known]
        if raster.crs.is_geographic:
            middle = (raster.bounds.left + raster.bounds.right) / 2
            xs = middle + (xs - middle + 180) % 360 - 180
        if raster.crs != WGS84:
            xs, ys = (np.asarray(each, dtype=float) for each in reproject(WGS84, raster.crs, xs, ys)[:2])
        there = ~raster.transform
        columns = there.a * xs + there.b * ys + there.c - 0.5
        rows = there.d * xs + there.e * ys + there.f - 0.5
        found[known] = _interpolated(raster, columns, rows, self._max_pixels)
        return found


def problem_of(raster: DatasetReader) -> str:
    """Return why a raster cannot be elevation data; "" if it can be."""
    if raster.crs is None or raster.transform.is_identity:
        return "it has no georeference"
    if "VERT" in raster.crs.to_wkt().upper():
        return (
            "its heights are above a geoid; convert them to heights above the ellipsoid "
            "(gdalwarp -t_srs EPSG:4979), and write them with the horizontal system alone"
        )
    return "" if raster.count else "it has no band"


def _interpolated(raster: DatasetReader, columns: Numbers, rows: Numbers, max_pixels: int) -> Numbers:
    """Return values at pixel centers' coordinates; NaN outside of the raster and beside pixels without a value."""
    inside = (columns > -1) & (rows > -1) & (columns < raster.width) & (rows < raster.height)
    found = np.full(len(columns), np.nan)
    if not inside.any():
        return found
    x, y = np.clip(columns[inside], 0, raster.width - 1), np.clip(rows[inside], 0, raster.height - 1)
    left, top = int(x.min()), int(y.min())
    width = min(raster.width - 1, int(x.max()) + 1) - left + 1
    height = min(raster.height - 1, int(y.max()) + 1) - top + 1
    if width * height > max_pixels and len(x) > 1:
        found[inside] = _in_parts(raster, x, y, max_pixels)
        return found
    band = raster.read(1, window=Window(left, top, width, height), masked=True)
    values = np.ma.filled(band.astype(float), np.nan)
    found[inside] = _bilinear(values, x - left, y - top)
    return found


def _in_parts(raster: DatasetReader, columns: Numbers, rows: Numbers, max_pixels: int) -> Numbers:
    """Return the values of places that are far from one another: each half by itself."""
    longer = columns if np.ptp(columns) >= np.ptp(rows) else rows
    order = np.argsort(longer, kind="stable")
    found = np.empty(len(columns))
    for part in np.array_split(order, 2):
        found[part] = _interpolated(raster, columns[part], rows[part], max_pixels)
    return found


def _bilinear(values: Numbers, x: Numbers, y: Numbers) -> Numbers:
    left = np.minimum(x.astype(int), max(values.shape[1] - 2, 0))
    top = np.minimum(y.astype(int), max(values.shape[0] - 2, 0))
    right, bottom = np.minimum(left + 1, values.shape[1] - 1), np.minimum(top + 1, values.shape[0] - 1)
    part_x, part_y = x - left, y - top
    above = values[top, left] * (1 - part_x) + values[top, right] * part_x
    below = values[bottom, left] * (1 - part_x) + values[bottom, right] * part_x
    return np.asarray(above * (1 - part_y) + below * part_y)
