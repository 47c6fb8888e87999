"""Conversion of a model's features from tile pixels to image pixels, and to longitude and latitude if possible.

The properties are those of ModelRunner's "Guide for Model Developers": `imageGeometry`, `imageBBox`, `featureClasses`.
The older `bounds_imcoords`, `geom_imcoords`, `detection` and `feature_types` are understood and converted too, since
tile pixels in a result would mislead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import shapely
from shapely.geometry import shape
from shapely.geometry.base import BaseGeometry

from trainmaster.domain.errors import RequestRefused
from trainmaster.images.domain.tiling import Window
from trainmaster.images.domain.urls import without_secrets
from trainmaster.images.pixels.features.on_earth import geojson, on_earth
from trainmaster.images.pixels.reading.georeference import Georeference

Feature = dict[str, Any]
Box = tuple[float, float, float, float]
"""Minimum x, minimum y, maximum x, maximum y, in pixels of the image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Metadata common to all features of an image.

    Attributes:
        job: the job's name.
        url: of the image; results do not include its secrets.
        format_: of the image, such as GTiff.
        source: further members of `sourceMetadata`.
        time: of processing, ISO 8601.
        properties: added to each feature (`featureProperties`).
    """

    job: str
    url: str
    format_: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    time: str = ""
    properties: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


@dataclass(slots=True)
class _Draft:
    """A feature on its way from the tile to the image.

    Attributes:
        feature: as the result has it.
        shape: in pixels, of the tile; None if it has none.
    """

    feature: Feature
    shape: BaseGeometry | None


def placed(features: Sequence[Feature], tile: Window, where: Georeference | None, origin: Origin) -> list[Feature]:
    """Return a tile's features in image coordinates; those off the earth (a full disk's corners) have no geometry.

    All points of the tile are converted at once: a call of PROJ costs more than its points.

    Args:
        features: the model's; not modified.
        tile: the part of the image that the model saw.
        where: converts pixels into longitude and latitude; None if the image has no georeference.
        origin: metadata common to all features.

    Raises `RequestRefused` for a feature with an invalid shape.
    """
    drafts = [_draft(each, tile, where) for each in features]
    shaped = [each for each in drafts if each.shape is not None]
    if shaped:
        _place(shaped, tile, where)
    common = _metadata(origin)
    for each in drafts:
        each.feature["properties"] |= common()
    return [each.feature for each in drafts]


def _place(drafts: Sequence[_Draft], tile: Window, where: Georeference | None) -> None:
    shift = np.array([tile.column, tile.row])
    shapes = shapely.transform(np.array([each.shape for each in drafts], dtype=object), lambda points: points + shift)
    bounds = shapely.bounds(shapes).tolist()
    boxes = []
    for each, geometry, box in zip(drafts, geojson(shapes), bounds, strict=True):
        properties = each.feature["properties"]
        properties |= {"imageGeometry": geometry, "imageBBox": properties.get("imageBBox") or box}
        boxes.append(properties["imageBBox"])
    if where is not None:
        for each, found in zip(drafts, on_earth(shapes, boxes, where), strict=True):
            each.feature |= found


def _draft(feature: Feature, tile: Window, where: Georeference | None) -> _Draft:
    try:
        given = dict(feature.get("properties") or {})
        found = image_geometry(given)
        moved = _moved(given, tile.column, tile.row)
    except _SHAPE_ERRORS as error:
        raise RequestRefused(f"the model's feature has an invalid shape: {error}") from error
    _classes(moved)
    drafted = {**feature, "type": "Feature", "geometry": feature.get("geometry"), "properties": moved}
    try:
        class_and_score(drafted)
    except _SHAPE_ERRORS as error:
        raise RequestRefused(f"the model's feature has invalid classes: {error}") from error
    if (found is None or where is None) and not isinstance(drafted["geometry"], dict | None):
        raise RequestRefused("the model's feature has a geometry that is not an object")
    return _Draft(drafted, found)


def _metadata(origin: Origin) -> Callable[[], dict[str, Any]]:
    """Return a function that makes the common properties of a feature."""
    url = without_secrets(origin.url)
    more: dict[str, Any] = {}
    for each in origin.properties:
        more |= each
    return lambda: {
        "image_id": f"{origin.job}:{url}",
        "inferenceMetadata": {"jobId": origin.job, "inferenceDT": origin.time},
        "sourceMetadata": [{"location": url, "format": origin.format_, **origin.source}],
        **more,
    }


_SHAPE_ERRORS = (
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
    shapely.errors.ShapelyError,
)
"""Exceptions of reading an invalid shape or class."""


def image_geometry(properties: Mapping[str, Any]) -> BaseGeometry | None:
    """Return a feature's geometry in its tile or image, in the guide's order of preference; None if it has none.

    Raises ValueError and similar errors for an invalid shape.
    """
    found: BaseGeometry | None = None
    detection = properties.get("detection")
    if properties.get("imageGeometry"):
        found = shape(properties["imageGeometry"])
    elif properties.get("imageBBox"):
        found = shapely.box(*_four(properties["imageBBox"]))
    elif properties.get("geom_imcoords"):
        found = shapely.Polygon(properties["geom_imcoords"])
    elif isinstance(detection, dict) and detection.get("pixelCoordinates"):
        found = shape({"type": detection["type"], "coordinates": detection["pixelCoordinates"]})
    elif properties.get("bounds_imcoords"):
        found = shapely.box(*_four(properties["bounds_imcoords"]))
    if found is None:
        return None
    found = shapely.force_2d(found)
    if found.is_empty or not np.isfinite(shapely.get_coordinates(found)).all():
        raise ValueError("it is empty, or has coordinates that are not numbers")
    return found


def box_of(feature: Feature) -> Box | None:
    """Return the bounds of a converted feature in pixels of the image; None if they are unknown."""
    properties = feature["properties"]
    if properties.get("imageBBox"):
        low_x, low_y, high_x, high_y = properties["imageBBox"]
        return float(low_x), float(low_y), float(high_x), float(high_y)
    return None


def is_clipped(box: Box, tile: Window, part: Window) -> bool:
    """Return whether a box reaches an edge of its tile beyond which the requested part continues.

    A neighboring tile may show the whole object.
    """
    low_x, low_y, high_x, high_y = box
    right, bottom = tile.column + tile.width, tile.row + tile.height
    return (
        (low_x <= tile.column + _EDGE and tile.column > part.column)
        or (low_y <= tile.row + _EDGE and tile.row > part.row)
        or (high_x >= right - _EDGE and right < part.column + part.width)
        or (high_y >= bottom - _EDGE and bottom < part.row + part.height)
    )


_EDGE = 1.0
"""Pixels: models measure boxes from pixel edges or pixel centres."""


def class_and_score(feature: Feature) -> tuple[str, float]:
    """Return a feature's most likely class and its score; "" and 1.0 without one. A score of null is none."""
    classes = feature["properties"].get("featureClasses") or ()
    scored = ((str(each.get("iri", "")), each.get("score")) for each in classes if isinstance(each, dict))
    known = [(name, 1.0 if score is None else float(score)) for name, score in scored]
    if not all(math.isfinite(score) for _, score in known):
        raise ValueError("a score is not a number")
    return min(known, key=lambda each: (-each[1], each[0]), default=("", 1.0))


def _moved(properties: dict[str, Any], x: int, y: int) -> dict[str, Any]:
    """Return the properties with all pixel coordinates moved."""
    moved = dict(properties)
    for name in ("imageBBox", "bounds_imcoords"):
        if moved.get(name):
            low_x, low_y, high_x, high_y = _four(moved[name])
            moved[name] = [low_x + x, low_y + y, high_x + x, high_y + y]
    if moved.get("geom_imcoords"):
        moved["geom_imcoords"] = _shifted(moved["geom_imcoords"], x, y)
    detection = moved.get("detection")
    if isinstance(detection, dict) and detection.get("pixelCoordinates"):
        moved["detection"] = {**detection, "pixelCoordinates": _shifted(detection["pixelCoordinates"], x, y)}
    return moved


def _shifted(nested: Any, x: int, y: int) -> Any:
    if nested and isinstance(nested[0], int | float):
        return [nested[0] + x, nested[1] + y, *nested[2:]]
    return [_shifted(each, x, y) for each in nested]


def _four(values: Any) -> tuple[float, float, float, float]:
    low_x, low_y, high_x, high_y = (float(each) for each in values)
    if not all(map(math.isfinite, (low_x, low_y, high_x, high_y))):
        raise ValueError("a box has coordinates that are not numbers")
    return min(low_x, high_x), min(low_y, high_y), max(low_x, high_x), max(low_y, high_y)


def _classes(properties: dict[str, Any]) -> None:
    """Convert the old `feature_types` to `featureClasses`."""
    old = properties.get("feature_types")
    if isinstance(old, dict) and "featureClasses" not in properties:
        properties["featureClasses"] = [{"iri": name, "score": score} for name, score in old.items()]
        del properties["feature_types"]
