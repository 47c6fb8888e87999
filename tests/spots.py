"""Generated images with known objects, and what a model that finds them says: bright squares on dark ground.

It must not know of jobs, regions or the queue.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from rasterio.io import MemoryFile
from rasterio.transform import from_origin

UTM = "EPSG:32633"
WEST, NORTH, STEP = 500_000.0, 5_000_000.0, 0.5
"""Upper left corner of generated images in UTM zone 33, and metres per pixel."""
SIDE = 12
"""Pixels of an object's side."""


def scattered(width: int, height: int, count: int, seed: int = 1) -> list[tuple[int, int]]:
    """Upper left corners of that many objects, none near another."""
    rng = random.Random(seed)
    found: list[tuple[int, int]] = []
    while len(found) < count:
        x, y = rng.randrange(0, width - SIDE), rng.randrange(0, height - SIDE)
        if all(max(abs(x - a), abs(y - b)) > 2 * SIDE for a, b in found):
            found.append((x, y))
    return found


def picture(width: int, height: int, objects: Sequence[tuple[int, int]], *, bands: int = 1, dtype="uint8") -> Any:
    """Dark, with a bright square at each place."""
    pixels = np.full((bands, height, width), 10, dtype=dtype)
    for x, y in objects:
        pixels[:, y : y + SIDE, x : x + SIDE] = 200
    return pixels


def geotiff(pixels: Any, **profile: Any) -> bytes:
    """A tiled GeoTIFF in UTM; members of the profile replace the usual ones."""
    bands, height, width = pixels.shape
    given: dict[str, Any] = {"crs": UTM, "transform": from_origin(WEST, NORTH, STEP, STEP), "tiled": True}
    given |= {"blockxsize": 128, "blockysize": 128} | profile
    with MemoryFile() as memory:
        with memory.open(
            driver="GTiff", width=width, height=height, count=bands, dtype=pixels.dtype, **given
        ) as written:
            written.write(pixels)
        return bytes(memory.getbuffer())


def blobs(body: bytes) -> list[tuple[int, int, int, int]]:
    """Boxes of the bright squares in an encoded tile; none touches another."""
    with MemoryFile(body) as memory, memory.open() as image:
        bright = image.read(1) > 100
    found = []
    while bright.any():
        y, x = (int(each) for each in np.argwhere(bright)[0])
        right, bottom = x, y
        while right < bright.shape[1] and bright[y, right]:
            right += 1
        while bottom < bright.shape[0] and bright[bottom, x]:
            bottom += 1
        bright[y:bottom, x:right] = False
        found.append((x, y, right, bottom))
    return found


def collection(boxes: Sequence[tuple[int, int, int, int]]) -> dict[str, Any]:
    """GeoJSON answer of a model: the larger the box, the higher its score."""
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "geometry": None,
                "properties": {
                    "imageBBox": list(box),
                    "featureClasses": [
                        {"iri": "ship", "score": 0.5 + (box[2] - box[0]) * (box[3] - box[1]) / SIDE**2 / 4}
                    ],
                },
            }
            for box in boxes
        ],
    }


def boxes_of(result: dict[str, Any]) -> list[tuple[float, ...]]:
    """The boxes in a result, in order of place."""
    return sorted(tuple(each["properties"]["imageBBox"]) for each in result["features"])


def squares(objects: Sequence[tuple[int, int]]) -> list[tuple[float, ...]]:
    """The boxes that objects have."""
    return sorted((x, y, x + SIDE, y + SIDE) for x, y in objects)
