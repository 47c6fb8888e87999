"""Makes the image whose tiles the benchmark sends: a deflated GeoTIFF in UTM, with hills and a little noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import rasterio
from rasterio.transform import from_origin
from rasterio.windows import Window

BLOCK = 512
BANDS = 3
_PERIOD = 2048


def make_image(path: Path, side: int) -> None:
    """Write an image of so many pixels per side, with blocks of 512 x 512 pixels."""
    profile = {"crs": "EPSG:32633", "transform": from_origin(500_000, 5_000_000, 0.5, 0.5), "compress": "deflate"}
    with (
        rasterio.Env(GDAL_NUM_THREADS="ALL_CPUS"),
        rasterio.open(
            path,
            "w",
            driver="GTiff",
            width=side,
            height=side,
            count=BANDS,
            dtype="uint8",
            tiled=True,
            blockxsize=BLOCK,
            blockysize=BLOCK,
            **profile,
        ) as image,
    ):
        for row in range(0, side, BLOCK):
            rows = min(BLOCK, side - row)
            image.write(_rows(row, rows, side), window=Window(0, row, side, rows))


def _rows(row: int, rows: int, width: int) -> np.ndarray:
    down, across = np.mgrid[row : row + rows, 0:_PERIOD]
    hills = 90 + 50 * np.sin(down / 97) * np.cos(across * 2 * np.pi / _PERIOD * 16)
    noise = np.random.default_rng(row).integers(0, 4, (BANDS, rows, _PERIOD))
    strip = (hills + noise + 20 * np.arange(BANDS).reshape(-1, 1, 1)).astype(np.uint8)
    return np.tile(strip, (1, 1, -(-width // _PERIOD)))[:, :, :width]
