"""Sensor model of SIDD products in a plane: a plug-in for `ImageSensorModels=sidd_plane:model` (NGA.STND.0025).

It reads the XML of the NITF's data extension segment, as GDAL shows it, and places each pixel at its point in the
product plane. It does not project along the range, so that elevation has no effect: ground above or below the plane
is offset.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from rasterio.crs import CRS
from rasterio.warp import transform

GEOCENTRIC, GEODETIC = CRS.from_epsg(4978), CRS.from_epsg(4979)


def model(image: Any) -> PlaneModel | None:
    """Return the sensor model of an image (`sensors.ImageDescription`); None if it is no SIDD product in a plane."""
    text = image.metadata("xml:DES").get("xml:DES", "") if image.format == "NITF" else ""
    plane = ET.fromstring(text).find(".//{*}PlaneProjection") if "PlaneProjection" in text else None  # noqa: S314
    return None if plane is None else PlaneModel(plane)


class PlaneModel:
    """Pixels in a plane that is tangent to the ground or slanted.

    Args:
        plane: the element `PlaneProjection`.
    """

    def __init__(self, plane: ET.Element) -> None:
        self._origin = _numbers(plane, "ReferencePoint/{*}ECEF", "XYZ")
        self._pixel = _numbers(plane, "ReferencePoint/{*}Point", ("Row", "Col"))
        spacing = _numbers(plane, "SampleSpacing", ("Row", "Col"))
        directions = [_numbers(plane, f"ProductPlane/{{*}}{name}UnitVector", "XYZ") for name in ("Row", "Col")]
        self._steps = np.array(directions) * spacing[:, None]
        self._normal = np.cross(*directions)
        self.reference_height = float(_geodetic(self._origin[None])[2][0])

    def to_ground(self, columns: Any, rows: Any, heights: Any) -> tuple[Any, Any]:  # noqa: ARG002 -- see above
        """Return longitudes and latitudes of pixels."""
        # SIDD counts from the middle of the first pixel.
        along = np.column_stack([rows - 0.5, columns - 0.5]) - self._pixel
        return _geodetic(self._origin + along @ self._steps)[:2]

    def to_image(self, longitudes: Any, latitudes: Any, heights: Any) -> tuple[Any, Any]:  # noqa: ARG002 -- see above
        """Return columns and rows of the points of the plane straight above or below these places."""
        foot = _geocentric(longitudes, latitudes, np.zeros_like(longitudes))
        up = _geocentric(longitudes, latitudes, np.ones_like(longitudes)) - foot
        rise = ((self._origin - foot) @ self._normal) / (up @ self._normal)
        there = foot + up * rise[:, None] - self._origin
        along = np.linalg.lstsq(self._steps.T, there.T, rcond=None)[0].T + self._pixel
        return along[:, 1] + 0.5, along[:, 0] + 0.5


def _numbers(plane: ET.Element, path: str, names: Any) -> Any:
    return np.array([float(plane.findtext(f"{{*}}{path}/{{*}}{name}", "")) for name in names])


def _geodetic(points: Any) -> tuple[Any, Any, Any]:
    longitudes, latitudes, heights = transform(GEOCENTRIC, GEODETIC, *points.T)
    return np.array(longitudes), np.array(latitudes), np.array(heights)


def _geocentric(longitudes: Any, latitudes: Any, heights: Any) -> Any:
    return np.column_stack(transform(GEODETIC, GEOCENTRIC, longitudes, latitudes, heights))
