"""Conversion of shapes from image pixels to longitude and latitude, as GeoJSON has them (RFC 7946).

Straight edges in the image are curves on earth: the corners of a small shape are enough, but a shape that spans many
longitudes, as beside a pole, is traced along its edges. One that contains a pole is closed over it; one that cannot be
traced has no geometry, since a wrong one would look valid.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from trainmaster.images.pixels.reading.georeference import Georeference, wrapped

Shapes = NDArray[Any]
"""Geometries of shapely."""
Numbers = NDArray[np.float64]
_DECIMALS = 9
"""Decimals of degrees: a tenth of a millimetre."""
_WIDE = 10.0
"""Degrees of longitude from which a shape is traced: below, an edge sags by 2 percent of its length."""
_STEPS = 2048
"""Points along the edges of a traced shape."""
_MAX_STEP = 45.0
"""Degrees of longitude between two of them from which a pole is too near to tell on which side it is."""
_COLLINEAR = 1e-9
"""Degrees by which points of a traced shape may be off a straight line to be left out."""


def on_earth(shapes: Shapes, boxes: Sequence[Sequence[float]], where: Georeference) -> list[dict[str, Any]]:
    """Return geometry and bbox of each shape in longitude and latitude.

    Args:
        shapes: in pixels of the image.
        boxes: of each, in pixels of the image; the model's own, if it has one.
        where: converts them.
    """
    count = len(shapes)
    points, of = shapely.get_coordinates(shapes, return_index=True)
    around = np.concatenate([_corners(boxes), _frames(np.column_stack([shapely.bounds(shapes), boxes]))], axis=1)
    whose = np.concatenate([of, np.arange(count).repeat(around.shape[1]) + count])
    degrees = _degrees(np.concatenate([points, around.reshape(-1, 2)]), whose, where)
    nowhere: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)
    nowhere[of[~np.isfinite(degrees[: len(points)]).all(axis=1)]] = True
    frames = degrees[len(points) :].reshape(count, -1, 2)
    nowhere |= ~np.isfinite(frames[:, :4]).all(axis=(1, 2))
    wide = ~nowhere & ~(np.ptp(frames[:, :, 0], axis=1) <= _WIDE)
    usual = ~nowhere & ~wide
    there = np.full(count, None, dtype=object)
    there[usual] = _within_180(shapely.set_coordinates(shapes[usual], degrees[: len(points)][usual[of]]))
    bboxes = _bboxes(frames[:, :4].min(axis=1), frames[:, :4].max(axis=1))
    for index in np.flatnonzero(wide).tolist():
        there[index], bboxes[index] = _wide(shapes[index], boxes[index], where)
    return [
        {"geometry": None} if geometry is None else {"geometry": geometry, "bbox": bbox}
        for geometry, bbox in zip(geojson(there), bboxes, strict=True)
    ]


def geojson(shapes: Shapes) -> list[dict[str, Any] | None]:
    """Return GeoJSON geometries; None for missing ones."""
    return [None if text is None else json.loads(text) for text in shapely.to_geojson(shapes)]


def _corners(boxes: Any) -> Numbers:
    """Return the corners of boxes, n x 4 x 2."""
    found = [((a, b), (c, b), (c, d), (a, d)) for a, b, c, d in boxes]
    return np.array(found, dtype=float).reshape(-1, 4, 2)


def _frames(bounds: Any) -> Numbers:
    """Return corners, middles of the sides and center of the bounds of shape and box together, n x 9 x 2."""
    low, high = np.minimum(bounds[:, :2], bounds[:, 4:6]), np.maximum(bounds[:, 2:4], bounds[:, 6:])
    with np.errstate(over="ignore", invalid="ignore"):  # Models give what they like.
        thirds = np.stack([low, low / 2 + high / 2, high], axis=1)
    columns, rows = np.meshgrid(range(3), range(3))
    return np.stack([thirds[:, columns.ravel(), 0], thirds[:, rows.ravel(), 1]], axis=2)


def _bboxes(low: Numbers, high: Numbers) -> list[list[float]]:
    """Return bboxes; across the antimeridian west is the greater (RFC 7946, 5.2)."""
    found: list[list[float]] = np.column_stack(
        [wrapped(low[:, 0]), low[:, 1], wrapped(high[:, 0]), high[:, 1]]
    ).tolist()
    return found


def _degrees(points: Any, whose: Any, where: Georeference) -> Numbers:
    """Return degrees; the longitudes of one shape across the antimeridian continue beyond 180.

    Args:
        points: n x 2, pixels; those of a shape are adjacent.
        whose: the shape of each.
        where: converts them.
    """
    found = where.world(points)
    first = wrapped(found[np.searchsorted(whose, whose), 0])
    found[:, 0] = first + wrapped(found[:, 0] - first)
    rounded: Numbers = np.round(found, _DECIMALS)
    return rounded


def _wide(shape_: BaseGeometry, box: Sequence[float], where: Georeference) -> tuple[BaseGeometry | None, list[float]]:
    """Return geometry and bbox of a shape that spans many longitudes; None if it cannot be traced."""
    there, frame = _traced(shape_, where), _traced(shapely.box(*box), where)
    if there is None or frame is None:
        return None, []
    west, south, east, north = np.round(frame.bounds, _DECIMALS)
    if east - west >= 360:
        west, east = -180.0, 180.0
    bbox = _bboxes(np.array([[west, south]]), np.array([[east, north]]))[0]
    slim = shapely.simplify(there, _COLLINEAR)
    return _within_180(np.array([there if slim.is_empty else slim], dtype=object))[0], bbox


def _traced(shape_: BaseGeometry, where: Georeference) -> BaseGeometry | None:
    """Return a shape with points along its edges in degrees, beyond 180 where it goes on; None if that is impossible.

    Shapes of several parts and those with holes are not traced.
    """
    simple = isinstance(shape_, shapely.Point | shapely.LineString)
    if not simple and not (isinstance(shape_, shapely.Polygon) and not shape_.interiors):
        return None
    line = shape_ if simple else shapely.LineString(shape_.exterior)
    path = _path(shapely.segmentize(line, max(line.length, 1e-9) / _STEPS), where)
    if path is None:
        return None
    if simple:
        return shapely.Point(path[0]) if isinstance(shape_, shapely.Point) else shapely.LineString(path)
    return _closed(path, shape_, where)


def _path(line: BaseGeometry, where: Georeference) -> Numbers | None:
    """Return the degrees of a line's points, one after the other; None if two are too far apart, or off the earth."""
    found = where.world(shapely.get_coordinates(line))
    if not np.isfinite(found).all():
        return None
    steps = wrapped(np.diff(found[:, 0]))
    if (np.abs(steps) > _MAX_STEP).any():
        return None
    found[:, 0] = wrapped(found[0, 0]) + np.concatenate([[0.0], np.cumsum(steps)])
    return found


def _closed(path: Numbers, shape_: BaseGeometry, where: Georeference) -> BaseGeometry | None:
    """Return the polygon in a closed path; around a pole it is closed over the pole, if that lies inside."""
    turns = round((path[-1, 0] - path[0, 0]) / 360)
    if turns == 0:
        path[-1] = path[0]
        return shapely.Polygon(path)
    latitudes = [pole for pole in (-90.0, 90.0) if _contains(shape_, pole, where)]
    if abs(turns) != 1 or len(latitudes) != 1:
        return None
    over = [(path[-1, 0], latitudes[0]), (path[0, 0], latitudes[0])]
    return shapely.Polygon([*path.tolist(), *over])


def _contains(shape_: BaseGeometry, latitude: float, where: Georeference) -> bool:
    pole = where.image(np.array([[0.0, latitude]]))[0]
    return bool(np.isfinite(pole).all()) and bool(shape_.contains(shapely.Point(pole)))


def _within_180(shapes: Shapes) -> Shapes:
    """Return shapes as RFC 7946 requires: cut at the antimeridian (3.1.9), exterior rings counterclockwise (3.1.6).

    In images y goes down, and on earth north goes up.
    """
    bounds = shapely.bounds(shapes)
    for index in np.flatnonzero((bounds[:, 0] < -180) | (bounds[:, 2] > 180)):
        shapes[index] = _cut(shapes[index])
    oriented: Shapes = shapely.orient_polygons(shapes)
    return oriented


def _cut(shape_: BaseGeometry) -> BaseGeometry:
    whole = shapely.make_valid(shape_)
    pieces = [_shifted_by(shapely.intersection(whole, shapely.box(*_turn(k))), -360 * k) for k in (-1, 0, 1)]
    return shapely.union_all([each for each in pieces if not each.is_empty])


def _turn(number: int) -> tuple[float, float, float, float]:
    return 360.0 * number - 180, -90.0, 360.0 * number + 180, 90.0


def _shifted_by(shape_: BaseGeometry, degrees: float) -> BaseGeometry:
    return shapely.transform(shape_, lambda points: points + np.array([degrees, 0.0]))
