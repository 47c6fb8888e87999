"""The places of pixels where several georeferences compete, and of shapes over the poles; GDAL has the last word."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
import rasterio.shutil
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rasterio.io import MemoryFile
from rasterio.rpc import RPC
from rasterio.transform import from_origin
from rasterio.warp import reproject, transform
from shapely.geometry import shape

from spots import UTM, geotiff, picture
from trainmaster.images.domain.request import Compression, TileFormat
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.features.features import Origin, placed
from trainmaster.images.pixels.reading.encoding import encode
from trainmaster.images.pixels.reading.georeference import georeference_of
from trainmaster.images.pixels.reading.stretch import EIGHT_BITS
from trainmaster.images.pixels.reading.windows import Chip, placing_of

WIDTH, HEIGHT = 400, 300
PIXELS = np.column_stack([each.ravel() for each in np.mgrid[20:380:7j, 20:280:7j]])
WGS84 = CRS.from_epsg(4326)
LEFT, TOP, DEGREES = 9.99, 45.0075, 5e-5
CORNERS = {"crs": WGS84, "transform": from_origin(LEFT, TOP, DEGREES, DEGREES)}
SECONDS = {"crs": WGS84, "transform": from_origin(9.99 - 0.5 / 3600, 45 + 150.5 / 3600, 1 / 3600, 1 / 3600)}
"""Corners that a NITF can hold: whole arc seconds at pixels' centers."""
ORIGIN = Origin(job="harbour-7", url="s3://images/a.tif")


EAST = 4
"""Pixels by which the sensor model has everything further east than the transform, and half of one to the north."""


def by_model():
    return np.array([LEFT, TOP]) + (PIXELS + np.array([EAST - 0.5, -0.5])) * [DEGREES, -DEGREES]


def by_transform():
    return np.array([LEFT, TOP]) + PIXELS * [DEGREES, -DEGREES]


def a_model():
    """A sensor model of numbers that RPC00B can hold: four decimals of degrees, whole pixels."""
    line, sample = [0.0] * 20, [0.0] * 20
    line[2], sample[1] = -1.0, 1.0
    one = [1.0] + [0.0] * 19
    return RPC(
        height_off=100, height_scale=500, lat_off=TOP - 150 * DEGREES, lat_scale=0.0075, long_off=10.0 + EAST * DEGREES,
        long_scale=0.01, line_num_coeff=line, line_den_coeff=one, samp_num_coeff=sample, samp_den_coeff=one,
        line_off=150, line_scale=150, samp_off=200, samp_scale=200, err_bias=1, err_rand=1,
    )  # fmt: skip


def file_of(driver, *, rpcs=None, **profile):
    """The bytes of an image with these georeferences."""
    with MemoryFile(ext=".tif") as draft, MemoryFile(ext=".out") as memory:
        with draft.open(driver="GTiff", width=WIDTH, height=HEIGHT, count=1, dtype="uint8", **profile) as image:
            if rpcs is not None:
                image.rpcs = rpcs
        with draft.open() as image:
            rasterio.shutil.copy(image, memory.name, driver=driver)
        return bytes(memory.getbuffer())


def opened(body):
    with MemoryFile(body) as memory, memory.open() as image:
        chip = Chip(
            image.read(), placing_of(image, Window(0, 0, WIDTH, HEIGHT)), lambda: EIGHT_BITS, image.colorinterp, None
        )
        return georeference_of(image), chip


def gdals(step, **georeference):
    """Longitudes and latitudes with columns and rows, as GDAL's warper has them: pixels warped by their numbers."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH].astype("float64") + 0.5
    west, north = LEFT, 45 + 150 * step
    with rasterio.Env():
        found = [
            reproject(
                each, np.full((1, 200, 200), -1.0), dst_transform=from_origin(west, north, 2 * step, 2 * step),
                dst_crs=WGS84, dst_nodata=-1, init_dest_nodata=True, resampling=Resampling.bilinear, tolerance=0,
                **georeference,
            )[0][0]
            for each in (columns[None], rows[None])
        ]  # fmt: skip
    there = (found[0] > 2) & (found[1] > 2) & (found[0] < WIDTH - 2) & (found[1] < HEIGHT - 2)
    y, x = np.nonzero(there)
    lonlat = np.column_stack([west + (x + 0.5) * 2 * step, north - (y + 0.5) * 2 * step])
    return lonlat, np.column_stack([found[0][there], found[1][there]])


def test_in_a_nitf_the_sensor_model_counts_and_not_the_corners():
    where, chip = opened(file_of("NITF", rpcs=a_model(), **CORNERS))
    assert np.abs(where.world(PIXELS) - by_model()).max() < 0.01 * DEGREES
    assert chip.placing.rpcs is not None
    assert chip.placing.transform is not None


@pytest.mark.parametrize("form", [TileFormat.NITF, TileFormat.GEOTIFF])
def test_a_nitfs_tile_has_corners_and_sensor_model(form):
    _, chip = opened(file_of("NITF", rpcs=a_model(), **CORNERS))
    with MemoryFile(encode(chip, form, Compression.NONE)) as memory, memory.open() as tile:
        assert tile.rpcs is not None
        assert tile.crs == WGS84
        assert tile.transform.almost_equals(CORNERS["transform"], precision=1e-4)


def test_in_a_geotiff_the_transform_counts_and_not_the_sensor_model():
    where, chip = opened(file_of("GTiff", rpcs=a_model(), **CORNERS))
    assert np.abs(where.world(PIXELS) - by_transform()).max() < 1e-9
    assert chip.placing.rpcs is None


def test_a_transform_whose_coordinates_mean_nothing_does_not_hide_the_sensor_model():
    where, chip = opened(file_of("GTiff", rpcs=a_model(), transform=from_origin(0, 0, 2, 2)))
    assert np.abs(where.world(PIXELS) - by_model()).max() < 0.01 * DEGREES
    assert chip.placing.rpcs is not None


def test_a_sensor_model_that_has_no_answer_leaves_the_corners():
    broken = a_model()
    broken.samp_num_coeff = [0.0] * 20
    broken.line_num_coeff = [0.0] * 20
    where, _ = opened(file_of("NITF", rpcs=broken, **CORNERS))
    assert np.abs(where.world(PIXELS) - by_transform()).max() < 1 / 3600


GCPS = [
    GroundControlPoint(row, column, LEFT + (column + 0.1 * row) * DEGREES, TOP - row * DEGREES)
    for row in (0, 150, 300)
    for column in (0, 200, 400)
]


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (lambda: file_of("GTiff", **CORNERS), {"src_crs": WGS84, "src_transform": CORNERS["transform"]}),
        (lambda: file_of("NITF", **SECONDS), {"src_crs": WGS84, "src_transform": SECONDS["transform"]}),
        (lambda: file_of("GTiff", gcps=GCPS, crs=WGS84), {"src_crs": WGS84, "gcps": GCPS}),
        (
            lambda: file_of("NITF", rpcs=a_model(), **CORNERS),
            {"src_crs": WGS84, "rpcs": a_model(), "RPC_HEIGHT": 100},
        ),
    ],
    ids=["transform", "corners of a NITF", "control points", "sensor model"],
)
def test_places_are_those_of_gdals_warper_to_a_tenth_of_a_pixel(body, given):
    where, _ = opened(body())
    step = 1 / 3600 if given.get("src_transform") == SECONDS["transform"] else DEGREES
    lonlat, pixels = gdals(step, **given)
    assert len(lonlat) > 10_000
    assert np.abs(where.image(lonlat) - pixels).max() < 0.1
    assert np.abs(where.image(where.world(pixels)) - pixels).max() < 0.01


POLES = {
    "north": ("EPSG:3413", 90.0),
    "south": ("EPSG:3031", -90.0),
    "whole earth": ("EPSG:4326", None),
    "beside a zone": (UTM, None),
}
SIDE = 400


def polar(name):
    crs, _ = POLES[name]
    step = 0.9 if name == "whole earth" else 20_000
    if name == "whole earth":
        origin = from_origin(-180, 90, step, step / 2)
    elif name == "beside a zone":
        origin = from_origin(-3_500_000, 9_990_000, step, step)
    else:
        origin = from_origin(-SIDE / 2 * step, SIDE / 2 * step, step, step)
    where, _ = opened_as(geotiff(picture(SIDE, SIDE, []), crs=crs, transform=origin))
    return where, crs, origin


def opened_as(body):
    with MemoryFile(body) as memory, memory.open() as image:
        return georeference_of(image), image.crs


IMAGES = {name: polar(name) for name in POLES}


def on_earth(name, box):
    where, _, _ = IMAGES[name]
    (found,) = placed([{"properties": {"imageBBox": list(box)}}], Window(0, 0, SIDE, SIDE), where, ORIGIN)
    return found


def points_of(box, rng, inside):
    """Pixels inside the box, or around it, and none near its edge."""
    low, high = np.array(box[:2]), np.array(box[2:])
    margin = 0.05 * (high - low).max()
    points = rng.uniform(low - 2 * (high - low), high + 2 * (high - low), (400, 2))
    within = ((points > low + margin) & (points < high - margin)).all(axis=1)
    beyond = ((points < low - margin) | (points > high + margin)).any(axis=1)
    points = points[within if inside else beyond]
    return points[((points >= 0) & (points <= SIDE)).all(axis=1)]


def lonlat_of(name, points):
    """By the definition of a transform, and GDAL."""
    _, crs, origin = IMAGES[name]
    there = [origin * tuple(each) for each in points]
    return np.column_stack(transform(crs, WGS84, [x for x, _ in there], [y for _, y in there])[:2])


boxes = st.builds(
    lambda left, top, width, height: (left, top, min(SIDE, left + width), min(SIDE, top + height)),
    *(st.integers(0, SIDE - 2), st.integers(0, SIDE - 2), st.integers(1, SIDE), st.integers(1, SIDE)),
)


@pytest.mark.parametrize("name", POLES)
@given(box=boxes, seed=st.integers(0, 99))
def test_a_shape_has_what_it_has_in_the_image_or_no_geometry(name, box, seed):
    found = on_earth(name, box)
    assume(found["geometry"] is not None)
    there, rng = shape(found["geometry"]), np.random.default_rng(seed)
    assert there.is_valid
    low_x, low_y, high_x, high_y = there.bounds
    assert -180 <= low_x <= high_x <= 180
    assert -90 <= low_y <= high_y <= 90
    for inside in (True, False):
        points = lonlat_of(name, points_of(box, rng, inside))
        assert (shapely.contains_xy(there.buffer(1e-6 if inside else 0), *points.T) == inside).all()


@pytest.mark.parametrize("name", ["north", "south"])
def test_a_shape_around_a_pole_covers_it(name):
    found = on_earth(name, (SIDE / 2 - 60, SIDE / 2 - 35, SIDE / 2 + 40, SIDE / 2 + 45))
    pole = POLES[name][1]
    there = shape(found["geometry"])
    assert all(there.buffer(1e-6).contains(shapely.Point(longitude, pole)) for longitude in range(-180, 181, 30))
    assert found["bbox"][0] == -180
    assert found["bbox"][2] == 180
    assert pole in (found["bbox"][1], found["bbox"][3])


def test_a_shape_whose_edge_runs_over_a_pole_is_refused():
    assert on_earth("north", (SIDE / 2, SIDE / 2 - 30, SIDE / 2 + 40, SIDE / 2 + 30))["geometry"] is None


def test_a_shape_around_the_earth_keeps_its_width():
    found = on_earth("whole earth", (10, 100, 390, 300))
    assert shape(found["geometry"]).bounds == pytest.approx((-171, -45, 171, 45))
    assert found["bbox"] == pytest.approx([-171, -45, 171, 45])


def test_parts_of_a_shape_that_spans_many_longitudes_are_refused():
    parts = shapely.MultiPolygon([shapely.box(150, 150, 180, 250), shapely.box(220, 150, 250, 250)])
    given_ = {"imageGeometry": shapely.geometry.mapping(parts)}
    (found,) = placed([{"properties": given_}], Window(0, 0, SIDE, SIDE), IMAGES["north"][0], ORIGIN)
    assert found["geometry"] is None
