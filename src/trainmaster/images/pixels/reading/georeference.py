"""Conversion between pixels and longitude and latitude, by affine transform, ground control points or RPC model.

Image coordinates are (x, y) in pixels from the upper left corner of the image's first pixel.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
import shapely
from rasterio.crs import CRS
from rasterio.io import DatasetReader
from rasterio.rpc import RPC
from rasterio.transform import GCPTransformer, RPCTransformer
from rasterio.warp import transform as reproject
from shapely.geometry.base import BaseGeometry

from trainmaster.domain.errors import InvalidRequest, ServiceError
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.reading.environment import computing
from trainmaster.images.pixels.reading.sensors import (
    NO_SENSORS,
    Elevation,
    Numbers,
    SensorModel,
    Sensors,
    calling,
)

log = logging.getLogger(__name__)

WGS84 = CRS.from_epsg(4326)
MAX_INTEREST_LENGTH = 100_000
"""Maximum characters of a region of interest."""
_INTEREST = "regionOfInterest"
_ORDER = "WKT coordinates are longitude first, then latitude, in degrees."
_POINTS_PER_SIDE = 32
"""Minimum points per side of a region of interest: a straight line on the map is curved in the image."""


class PixelModel(Protocol):
    """Positions of pixels in a system of coordinates."""

    @property
    def crs(self) -> CRS:
        """The system of the coordinates."""
        ...

    def ground(self, columns: Numbers, rows: Numbers) -> tuple[Any, Any]:
        """Return the coordinates of pixels."""
        ...

    def pixels(self, xs: Numbers, ys: Numbers) -> tuple[Any, Any]:
        """Return columns and rows of coordinates."""
        ...


class Georeference:
    """The positions of an image's pixels; safe for several threads.

    Args:
        image: an open image with georeference; see `georeference_of`.
        model: the positions of its pixels.
    """

    def __init__(self, image: DatasetReader, model: PixelModel) -> None:
        self._model = model
        if not (model.crs.is_geographic or model.crs.is_projected):
            raise ValueError("its coordinates are not on a map")
        middle = self.world(np.array([[image.width / 2, image.height / 2]]))
        self._middle = float(middle[0, 0])
        if not np.isfinite(middle).all() or not np.isfinite(self.image(middle)).all():
            raise ValueError("its center has no coordinates")

    def world(self, points: Numbers) -> Numbers:
        """Return longitude and latitude of points (n x 2) of the image in degrees; NaN for points without."""
        with computing():
            xs, ys = self._model.ground(points[:, 0], points[:, 1])
            return self._reprojected(xs, ys, self._model.crs, WGS84)

    def image(self, points: Numbers) -> Numbers:
        """Return the image's points (n x 2) at longitudes and latitudes in degrees."""
        longitudes = points[:, 0]
        if self._model.crs.is_geographic:
            # An image across the antimeridian has all its longitudes on one side of it, even beyond 180.
            longitudes = self._middle + wrapped(longitudes - self._middle)
        with computing():
            there = self._reprojected(longitudes, points[:, 1], WGS84, self._model.crs)
            columns, rows = self._model.pixels(there[:, 0], there[:, 1])
        return np.column_stack([np.asarray(columns, dtype=float), np.asarray(rows, dtype=float)])

    @staticmethod
    def _reprojected(xs: Any, ys: Any, source: CRS, target: CRS) -> Numbers:
        xs, ys = np.atleast_1d(np.asarray(xs, dtype=float)), np.atleast_1d(np.asarray(ys, dtype=float))
        if source != target:
            xs, ys = _map_to_map(source, target, xs, ys)
        found = np.column_stack([np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)])
        return np.where(np.isfinite(found), found, np.nan)


def _map_to_map(source: CRS, target: CRS, xs: Any, ys: Any) -> tuple[Any, ...]:
    """Return coordinates in another system; NaN for points outside it.

    For such a point rasterio raises GDAL's error as a class of its private `_err`, so all exceptions are caught;
    nothing else can fail here.
    """
    try:
        # GDAL keeps the transformation between two systems for the next call.
        xs, ys = reproject(source, target, xs, ys)
    except Exception:  # noqa: BLE001 - what GDAL raises here shares no public class
        # One invalid point fails the whole call.
        if len(xs) == 1:
            return [math.nan], [math.nan]
        half = len(xs) // 2
        parts = [_map_to_map(source, target, xs[part], ys[part]) for part in (slice(half), slice(half, None))]
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return xs, ys


def wrapped(longitudes: Any) -> Any:
    """Return longitudes from -180 to 180 in degrees; values in that range stay exactly the same."""
    return np.where(np.abs(longitudes) <= 180, longitudes, (longitudes + 180) % 360 - 180)


def applied(affine: Any, columns: Any, rows: Any) -> tuple[Any, Any]:
    """Return the result of an affine transform; written out, since releases of `affine` differ in the operator."""
    with np.errstate(over="ignore", invalid="ignore"):  # Models give what they like.
        return affine.a * columns + affine.b * rows + affine.c, affine.d * columns + affine.e * rows + affine.f


def _as_it_is(value: Any) -> Any:
    return value


class OnMap:
    """Pixels by an affine transform."""

    def __init__(self, affine: Any, crs: CRS) -> None:
        self._affine, self.crs = affine, crs

    def ground(self, columns: Numbers, rows: Numbers) -> tuple[Any, Any]:
        """Return coordinates; see `PixelModel`."""
        return applied(self._affine, columns, rows)

    def pixels(self, xs: Numbers, ys: Numbers) -> tuple[Any, Any]:
        """Return columns and rows; see `PixelModel`."""
        return applied(~self._affine, xs, ys)


class ByControlPoints:
    """Pixels by ground control points."""

    def __init__(self, gcps: Any, crs: CRS) -> None:
        self._transformer, self._lock, self.crs = GCPTransformer(gcps), threading.Lock(), crs

    def ground(self, columns: Numbers, rows: Numbers) -> tuple[Any, Any]:
        """Return coordinates; see `PixelModel`."""
        with self._lock:
            xs, ys = self._transformer.xy(rows, columns, offset="ul")
        return xs, ys

    def pixels(self, xs: Numbers, ys: Numbers) -> tuple[Any, Any]:
        """Return columns and rows; see `PixelModel`."""
        with self._lock:
            rows, columns = self._transformer.rowcol(xs, ys, op=_as_it_is)
        return columns, rows


class Rpc:
    """A sensor model of GDAL's (RPC); see `sensors.SensorModel`.

    Its reference height is `HEIGHT_OFF`, metres above the ellipsoid. GDAL's default is the ellipsoid itself, kilometres
    away from high ground in an oblique view. QGIS chooses the same height (its pull request 36385).
    """

    def __init__(self, rpcs: RPC) -> None:
        self.reference_height = float(rpcs.height_off)
        options = {"RPC_HEIGHT": rpcs.height_off, "RPC_PIXEL_ERROR_THRESHOLD": _TIGHT}
        self._transformer, self._lock = RPCTransformer(rpcs, **options), threading.Lock()

    def to_ground(self, columns: Numbers, rows: Numbers, heights: Numbers) -> tuple[Any, Any]:
        """Return longitudes and latitudes; see `sensors.SensorModel`."""
        with self._lock:
            xs, ys = self._transformer.xy(rows, columns, zs=heights - self.reference_height, offset="ul")
        return np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)

    def to_image(self, longitudes: Numbers, latitudes: Numbers, heights: Numbers) -> tuple[Any, Any]:
        """Return columns and rows; see `sensors.SensorModel`."""
        zs = heights - self.reference_height
        with self._lock:
            rows, columns = self._transformer.rowcol(longitudes, latitudes, zs=zs, op=_as_it_is)
        return np.asarray(columns, dtype=float), np.asarray(rows, dtype=float)


_TIGHT = 1e-3
"""Maximum error in pixels of a conversion and its inverse; GDAL's default of 0.1 would show in the results."""


class BySensor:
    """Pixels by a sensor model, at the height of the ground where it is known, elsewhere at the reference height.

    Args:
        model: the sensor model.
        elevation: heights of the ground; None to use the reference height everywhere.
        name: of the plug-in; "" for GDAL's own.
    """

    crs = WGS84

    def __init__(self, model: SensorModel, elevation: Elevation | None, name: str = "") -> None:
        self._model, self._elevation, self._name = model, elevation, name

    def ground(self, columns: Numbers, rows: Numbers) -> tuple[Any, Any]:
        """Return coordinates; see `PixelModel`."""
        with calling(self._name) if self._name else nullcontext():
            heights = np.full(len(columns), float(self._model.reference_height))
            found = self._model.to_ground(columns, rows, heights)
            for round_ in range(_MAX_ROUNDS if self._elevation is not None else 0):
                seen = self._heights(*found)
                if not (np.abs(seen - heights) > _CLOSE).any():
                    break
                # In steep ground the line of sight may find two heights in turn; the mean of them leads on.
                heights = seen if round_ < _DAMPED_AFTER else (heights + seen) / 2
                found = self._model.to_ground(columns, rows, heights)
            return found

    def pixels(self, xs: Numbers, ys: Numbers) -> tuple[Any, Any]:
        """Return columns and rows; see `PixelModel`."""
        with calling(self._name) if self._name else nullcontext():
            return self._model.to_image(xs, ys, self._heights(xs, ys))

    def _heights(self, longitudes: Numbers, latitudes: Numbers) -> Numbers:
        reference = float(self._model.reference_height)
        if self._elevation is None:
            return np.full(len(longitudes), reference)
        found = np.asarray(self._elevation.heights(longitudes, latitudes), dtype=float)
        return np.where(np.isfinite(found), found, reference)


_MAX_ROUNDS, _DAMPED_AFTER = 30, 5
_CLOSE = 0.01
"""Metres."""


def moved(rpcs: RPC, row: float, column: float) -> RPC:
    """Return a sensor model for the part of an image that begins at this row and column."""
    given = rpcs.to_dict()
    given["line_off"] -= row
    given["samp_off"] -= column
    return RPC(**given)


def chip_offset(image: DatasetReader) -> tuple[float, float] | None:
    """Return row and column of a NITF in the larger image of its sensor model (STDI-0002, ICHIPB).

    None if it is rotated or scaled against it; GDAL ignores all of this.
    """
    text = image.tags(ns="TRE").get("ICHIPB", "") if image.driver == "NITF" else ""
    if not text:
        return 0.0, 0.0
    try:
        numbers = [float(text[_CHIP + 12 * i : _CHIP + 12 * (i + 1)]) for i in range(16)]
    except ValueError:
        return None
    here, there = np.array(numbers[:8]).reshape(4, 2), np.array(numbers[8:]).reshape(4, 2)
    offsets = there - here
    if np.abs(offsets - offsets[0]).max() > _SLACK_OF_CHIPS:
        return None
    return float(offsets[0][0]), float(offsets[0][1])


_CHIP = 16
"""Characters of ICHIPB before the corners."""
_SLACK_OF_CHIPS = 0.01


def has_transform(image: DatasetReader) -> bool:
    """Return whether an affine transform leads to coordinates whose system is known."""
    return image.crs is not None and not image.transform.is_identity


def has_gcps(image: DatasetReader) -> bool:
    """Return whether there are ground control points whose system is known."""
    gcps, gcps_crs = image.gcps
    return bool(gcps) and gcps_crs is not None


def has_model(image: DatasetReader) -> bool:
    """Return whether there is a sensor model (RPC) for these pixels."""
    return image.rpcs is not None and chip_offset(image) is not None


def has_better_model(image: DatasetReader) -> bool:
    """Return whether a sensor model (RPC) places the pixels better than transform or control points beside it.

    A NITF's corners are whole arc seconds or metres (MIL-STD-2500C, IGEOLO): up to 15 m off. ModelRunner's toolkit
    prefers the model, too. In other formats a transform is exact.
    """
    return image.driver == "NITF" and has_model(image)


def georeference_of(image: DatasetReader, sensors: Sensors = NO_SENSORS) -> Georeference | None:
    """Return an image's georeference; None if it has none, or an invalid one.

    Raises `InvalidRequest` if a plug-in fails; `Unavailable`, `Throttled` if the elevation cannot be read.
    """
    own = sensors.model_of(image)
    if own is not None:
        return _by_plugin(image, *own, sensors)
    for choice in _choices(image):
        try:
            return Georeference(image, choice(image, sensors))
        except (InvalidRequest, ServiceError):
            raise
        except Exception as error:  # noqa: BLE001 - what GDAL and PROJ raise here shares no public class
            log.warning("the image's georeference cannot be used", extra={"cause": str(error)[:500]})
    return None


def _by_plugin(image: DatasetReader, name: str, model: SensorModel, sensors: Sensors) -> Georeference:
    with calling(name):
        return Georeference(image, BySensor(model, sensors.elevation, name))


def _choices(image: DatasetReader) -> list[Callable[[DatasetReader, Sensors], PixelModel]]:
    """Return the functions that make the pixel model, best choice first."""
    on_map = [_on_map] if has_transform(image) or has_gcps(image) else []
    model = [_by_rpc] if has_model(image) else []
    return [*model, *on_map] if has_better_model(image) else [*on_map, *model]


def _on_map(image: DatasetReader, _: Sensors) -> PixelModel:
    return OnMap(image.transform, image.crs) if has_transform(image) else ByControlPoints(*image.gcps)


def _by_rpc(image: DatasetReader, sensors: Sensors) -> PixelModel:
    row, column = chip_offset(image) or (0.0, 0.0)
    return BySensor(Rpc(moved(image.rpcs, row, column)), sensors.elevation)


def interest_window(interest: str, where: Georeference, width: int, height: int) -> Window:
    """Return the part of an image that a region of interest covers: its bounds in pixels, cut to the image.

    Args:
        interest: WKT, longitude and latitude.
        where: the image's georeference.
        width: of the image, pixels.
        height: of the image, pixels.

    Raises `InvalidRequest` for invalid WKT or coordinates, and for a region outside the image.
    """
    points = where.image(_points_of(interest))
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise _outside()
    left, top = (max(0, math.floor(low + _SLACK)) for low in points.min(axis=0))
    right, bottom = (math.ceil(high - _SLACK) for high in points.max(axis=0))
    right, bottom = min(width, right), min(height, bottom)
    if right <= left or bottom <= top:
        raise _outside()
    return Window(left, top, right - left, bottom - top)


_SLACK = 1e-6
"""Fraction of a pixel: the rounding of a reprojected whole number must not add a pixel."""


def _outside() -> InvalidRequest:
    return InvalidRequest("the region of interest lies outside the image", field=_INTEREST, hint=_ORDER)


def _points_of(interest: str) -> Numbers:
    if len(interest) > MAX_INTEREST_LENGTH:
        raise InvalidRequest(f"the region of interest has more than {MAX_INTEREST_LENGTH} characters", field=_INTEREST)
    try:
        shape = shapely.from_wkt(interest)
    except (shapely.errors.ShapelyError, ValueError, NotImplementedError) as error:  # the last for curves
        raise InvalidRequest(f"the region of interest is not WKT: {error}", field=_INTEREST) from error
    if shape is None or shape.is_empty:
        raise InvalidRequest("the region of interest is empty", field=_INTEREST)
    low_x, low_y, high_x, high_y = shape.bounds
    if not (-360 <= low_x <= high_x <= 360 and -90 <= low_y <= high_y <= 90):
        raise InvalidRequest("the region of interest is not on the earth", field=_INTEREST, hint=_ORDER)
    # Part by part: parts on both sides of the antimeridian are small, but their common bounds are not.
    parts = [_finely(each) for each in shapely.get_parts(shape)]
    return np.asarray(shapely.get_coordinates(parts), dtype=float)


def _finely(part: BaseGeometry) -> BaseGeometry:
    low_x, low_y, high_x, high_y = part.bounds
    side = max(high_x - low_x, high_y - low_y)
    return shapely.segmentize(part, side / _POINTS_PER_SIDE) if side else part
