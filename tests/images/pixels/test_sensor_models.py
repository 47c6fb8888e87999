"""Sensor models (RPC) over high ground: evaluated at the height that they were made around."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from rasterio.io import MemoryFile
from rasterio.rpc import RPC

from trainmaster.images.pixels.reading.georeference import georeference_of, interest_window

HIGH = 2_000.0
ROWS, COLUMNS = (each.ravel().astype(float) for each in np.mgrid[0:1800:9j, 0:2000:9j])
PIXELS = np.column_stack([COLUMNS, ROWS])


def an_oblique_model():
    """A metre of height moves what is seen by 0.7 columns and 0.4 rows; all other terms are there, and small."""
    noise = np.random.default_rng(3)

    def coefficients(size, **main):
        some = noise.normal(0, size, 20)
        for index, value in main.items():
            some[int(index[1:])] = value
        return some.tolist()

    return RPC(
        height_off=HIGH, height_scale=500, lat_off=45.0, lat_scale=0.1, long_off=10.0, long_scale=0.1,
        line_num_coeff=coefficients(1e-3, _2=-1.0, _3=0.2), line_den_coeff=coefficients(1e-4, _0=1.0),
        samp_num_coeff=coefficients(1e-3, _1=1.0, _3=0.35), samp_den_coeff=coefficients(1e-4, _0=1.0),
        line_off=900, line_scale=1000, samp_off=1000, samp_scale=1000, err_bias=1, err_rand=1,
    )  # fmt: skip


def by_the_book(model, lonlat, height):
    """Columns and rows by the polynomials themselves (STDI-0002, RPC00B); pixels' middles are whole numbers there."""
    x, y = (lonlat[:, 0] - model.long_off) / model.long_scale, (lonlat[:, 1] - model.lat_off) / model.lat_scale
    z = np.full_like(x, (height - model.height_off) / model.height_scale)
    one = np.ones_like(x)
    first = [one, x, y, z, x * y, x * z, y * z, x * x, y * y, z * z]
    third = [x * y * z, x**3, x * y * y, x * z * z, x * x * y, y**3, y * z * z, x * x * z, y * y * z, z**3]
    terms = np.array(first + third)
    rows = np.array(model.line_num_coeff) @ terms / (np.array(model.line_den_coeff) @ terms)
    columns = np.array(model.samp_num_coeff) @ terms / (np.array(model.samp_den_coeff) @ terms)
    there = [columns * model.samp_scale + model.samp_off, rows * model.line_scale + model.line_off]
    return np.column_stack(there) + 0.5


@pytest.fixture(scope="module")
def where():
    with MemoryFile() as memory:
        with memory.open(driver="GTiff", width=2000, height=1800, count=1, dtype="uint8") as image:
            image.rpcs = an_oblique_model()
        with memory.open() as image:
            yield georeference_of(image)


def test_pixels_are_where_the_polynomials_have_them_at_the_models_own_height(where):
    lonlat = where.world(PIXELS)
    assert np.abs(by_the_book(an_oblique_model(), lonlat, HIGH) - PIXELS).max() < 0.01
    assert np.abs(by_the_book(an_oblique_model(), lonlat, 0.0) - PIXELS).max() > 1_000


def test_going_to_earth_and_back_misses_by_less_than_a_hundredth_of_a_pixel(where):
    assert np.abs(where.image(where.world(PIXELS)) - PIXELS).max() < 0.01


def test_a_region_of_interest_is_found_at_the_same_height(where):
    corners = where.world(np.array([[300.0, 400], [700, 400], [700, 900], [300, 900]]))
    part = interest_window(shapely.Polygon(corners).wkt, where, 2000, 1800)
    assert abs(part.column - 300) <= 1
    assert abs(part.row - 400) <= 1
    assert abs(part.column + part.width - 700) <= 1
    assert abs(part.row + part.height - 900) <= 1
