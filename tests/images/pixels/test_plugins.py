"""Plug-ins: sensor models of a deployment's own and elevation, against GDAL's own answers and plain geometry."""

from __future__ import annotations

import random
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasterio.shutil
from imaging_stage import BUCKET
from rasterio.crs import CRS
from rasterio.io import MemoryFile
from rasterio.rpc import RPC
from rasterio.transform import RPCTransformer, from_origin
from rasterio.warp import transform

from trainmaster.adapters.clock import SystemClock
from trainmaster.domain.errors import InvalidRequest, Unavailable
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.features.features import Origin, placed
from trainmaster.images.pixels.reading.elevation import LocalSource, RasterElevation
from trainmaster.images.pixels.reading.georeference import georeference_of
from trainmaster.images.pixels.reading.sensors import Sensors, load, load_factories
from trainmaster.images.pixels.wiring import Imaging
from trainmaster.images.settings import ImageSettings

EXAMPLES = str(Path(__file__).parents[3] / "examples" / "images")
ROWS, COLUMNS = (each.ravel().astype(float) for each in np.mgrid[100:1800:7j, 100:1900:7j])
PIXELS = np.column_stack([COLUMNS, ROWS])
HIGH = 1_000.0


# -- elevation --------------------------------------------------------------------------------------------------------
def an_oblique_model():
    """A metre of height moves what is seen by 0.7 columns and 0.4 rows."""
    line, sample = np.zeros(20), np.zeros(20)
    line[[2, 3]], sample[[1, 3]] = (-1.0, 0.2), (1.0, 0.35)
    one = np.eye(20)[0].tolist()
    return RPC(
        height_off=HIGH, height_scale=500, lat_off=45.0, lat_scale=0.1, long_off=10.0, long_scale=0.1,
        line_num_coeff=line.tolist(), line_den_coeff=one, samp_num_coeff=sample.tolist(), samp_den_coeff=one,
        line_off=900, line_scale=1000, samp_off=1000, samp_scale=1000, err_bias=1, err_rand=1,
    )  # fmt: skip


def hills(longitudes, latitudes):
    return HIGH + 150 + 120 * np.sin(longitudes * 60) * np.cos(latitudes * 45)


def a_raster(path, *, crs=CRS.from_epsg(4326), step=0.002, missing=(), values=hills):  # noqa: B008 -- a constant
    """Write the hills around the model as a GeoTIFF."""
    origin = from_origin(9.7, 45.3, step, step)
    side = round(0.6 / step)
    x, y = np.meshgrid(9.7 + (np.arange(side) + 0.5) * step, 45.3 - (np.arange(side) + 0.5) * step)
    heights = values(x, y).astype("float32")
    for where in missing:
        heights[where] = -9999
    profile = {"width": side, "height": side, "count": 1, "dtype": "float32", "nodata": -9999}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=origin, **profile) as raster:
        raster.write(heights, 1)
    return str(path)


def an_image(**profile):
    with MemoryFile() as memory:
        with memory.open(driver="GTiff", width=2000, height=1800, count=1, dtype="uint8", **profile) as image:
            image.rpcs = an_oblique_model()
        return bytes(memory.getbuffer())


def georeference(sensors, body=None):
    with rasterio.Env(), MemoryFile(body or an_image()) as memory, memory.open() as image:
        return georeference_of(image, sensors)


def with_raster(path, **options):
    return georeference(Sensors(elevation=RasterElevation(lambda: LocalSource(path), path, **options)))


def test_places_on_hills_are_those_of_gdal_with_the_same_raster(tmp_path):
    path = a_raster(tmp_path / "hills.tif")
    where = with_raster(path)
    lonlat = where.world(PIXELS)
    with rasterio.Env():
        gdal = RPCTransformer(an_oblique_model(), RPC_DEM=path, RPC_PIXEL_ERROR_THRESHOLD=1e-3)
        rows, columns = gdal.rowcol(lonlat[:, 0], lonlat[:, 1], op=lambda value: value)
        theirs = np.column_stack(gdal.xy(ROWS, COLUMNS, offset="ul"))
    assert np.abs(np.column_stack([columns, rows]) - PIXELS).max() < 0.1
    assert np.abs(theirs - lonlat).max() < 0.1 * 1e-4, "a pixel is 0.0001 degrees"
    flat = georeference(Sensors())
    assert np.abs(flat.world(PIXELS) - lonlat).max() > 100 * 1e-4 * 0.35, "hundreds of metres matter"
    assert np.abs(where.image(lonlat) - PIXELS).max() < 0.05


def test_where_no_height_is_known_the_models_own_holds(tmp_path):
    flat = georeference(Sensors()).world(PIXELS)
    where = with_raster(a_raster(tmp_path / "none.tif", missing=[np.s_[:, :]]))
    assert np.abs(where.world(PIXELS) - flat).max() < 1e-9
    beyond = with_raster(a_raster(tmp_path / "far.tif", crs=CRS.from_epsg(3857)))
    assert np.abs(beyond.world(PIXELS) - flat).max() < 1e-9


def test_places_far_apart_are_looked_up_in_parts(tmp_path):
    path = a_raster(tmp_path / "hills.tif")
    whole = with_raster(path).world(PIXELS)
    assert np.abs(with_raster(path, max_pixels=50).world(PIXELS) - whole).max() < 1e-12


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (lambda path: path.write_bytes(b"no raster"), "not recognized"),
        (lambda path: None, "No such file"),
        (lambda path: a_raster(path, crs=None), "has no georeference"),
        (lambda path: a_raster(path, crs=CRS.from_string("EPSG:4326+3855")), "above a geoid; convert them"),
    ],
    ids=["no raster", "no file", "no system", "geoid"],
)
def test_a_raster_that_cannot_be_used_says_what_to_do(tmp_path, broken, told):
    path = tmp_path / "broken.tif"
    broken(path)
    with pytest.raises(Unavailable, match=told) as caught:
        with_raster(str(path))
    assert "ImageElevation" in str(caught.value)


def test_a_raster_in_s3_is_read_by_the_functions_own_role(session, s3, tmp_path):
    path = a_raster(tmp_path / "hills.tif")
    s3.put_object(Bucket=BUCKET, Key="dem/hills.tif", Body=Path(path).read_bytes())
    s3.put_object(Bucket=BUCKET, Key="a.tif", Body=an_image())
    imaging = Imaging(session, SystemClock(), "q", random.Random(1), elevation=f"s3://{BUCKET}/dem/hills.tif")
    with closing(imaging):
        corner = with_raster(path).world(np.array([[300.0, 400], [700, 900]]))
        wkt = f"LINESTRING ({corner[0][0]} {corner[0][1]}, {corner[1][0]} {corner[1][1]})"
        part = imaging.headers.read(f"s3://{BUCKET}/a.tif", interest=wkt).part
    assert (part.column, part.row) == (pytest.approx(300, abs=1), pytest.approx(400, abs=1))
    assert (part.column + part.width, part.row + part.height) == (pytest.approx(700, abs=1), pytest.approx(900, abs=1))
    assert s3.get_object(Bucket=BUCKET, Key="dem/hills.tif")


def test_a_raster_in_s3_that_is_missing_lets_no_image_in(session, s3):
    s3.put_object(Bucket=BUCKET, Key="a.tif", Body=an_image())
    with (
        closing(Imaging(session, SystemClock(), "q", elevation=f"s3://{BUCKET}/dem/none.tif")) as imaging,
        pytest.raises(Unavailable, match=r"elevation data s3://images/dem/none.tif cannot be read"),
    ):
        imaging.headers.read(f"s3://{BUCKET}/a.tif", interest="POINT (10 45)")


# -- sensor models ----------------------------------------------------------------------------------------------------
ORIGIN_LONLAT, UP = (25.0, 60.0), 35.0
GEOCENTRIC, GEODETIC = CRS.from_epsg(4978), CRS.from_epsg(4979)
SPACING = (0.8, 0.5)


def east_and_south():
    """Return the tangent directions at the reference point, by plain trigonometry."""
    longitude, latitude = np.radians(ORIGIN_LONLAT)
    east = np.array([-np.sin(longitude), np.cos(longitude), 0])
    north = np.array([-np.sin(latitude) * np.cos(longitude), -np.sin(latitude) * np.sin(longitude), np.cos(latitude)])
    turn = np.radians(20)
    return np.cos(turn) * east - np.sin(turn) * north, -np.sin(turn) * east - np.cos(turn) * north


def reference_point():
    return np.array([each[0] for each in transform(GEODETIC, GEOCENTRIC, [ORIGIN_LONLAT[0]], [ORIGIN_LONLAT[1]], [UP])])


def vector(name, values):
    return (
        f"<{name}>"
        + "".join(f"<{axis}>{float(value)!r}</{axis}>" for axis, value in zip("XYZ", values, strict=True))
        + f"</{name}>"
    )


def sidd(path, *, spacing=SPACING):
    """Write a NITF with a SIDD plane projection in a data extension segment; return its bytes."""
    column_way, row_way = east_and_south()
    xml = (
        '<SIDD xmlns="urn:SIDD:2.0.0"><Measurement><PlaneProjection>'
        f"<ReferencePoint>{vector('ECEF', reference_point())}"
        "<Point><Row>150</Row><Col>200</Col></Point></ReferencePoint>"
        f"<SampleSpacing><Row>{spacing[0]}</Row><Col>{spacing[1]}</Col></SampleSpacing><ProductPlane>"
        f"{vector('RowUnitVector', row_way)}{vector('ColUnitVector', column_way)}"
        "</ProductPlane></PlaneProjection></Measurement></SIDD>"
    )
    segment = "XML_DATA_CONTENT=01U" + " " * 166 + "0000" + xml
    with rasterio.open(path, "w", driver="NITF", width=400, height=300, count=1, dtype="uint8", DES=segment) as image:
        image.write(np.zeros((1, 300, 400), "uint8"))
    return path.read_bytes()


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    yield "sidd_plane:model"
    sys.modules.pop("sidd_plane", None)


def expected(pixels):
    """Return where the plane has these pixels."""
    column_way, row_way = east_and_south()
    along = (pixels - 0.5 - [200, 150]) * SPACING[::-1]
    points = reference_point() + along[:, :1] * column_way + along[:, 1:] * row_way
    return np.column_stack(transform(GEOCENTRIC, GEODETIC, *points.T)[:2])


SOME = np.array([[200.5, 150.5], [10.0, 20.0], [390.0, 290.0], [100.0, 250.0]])


def test_the_example_places_a_sidd_product_that_gdal_cannot_place(tmp_path, example):
    body = sidd(tmp_path / "a.ntf")
    assert georeference(Sensors(), body) is None
    where = georeference(Sensors(load_factories([example])), body)
    assert np.abs(where.world(SOME) - expected(SOME)).max() < 1e-9
    assert where.world(SOME[:1])[0] == pytest.approx(ORIGIN_LONLAT)
    assert np.abs(where.image(where.world(SOME)) - SOME).max() < 1e-3
    (found,) = placed(
        [{"properties": {"imageBBox": [10, 20, 100, 250]}}],
        Window(0, 0, 400, 300),
        where,
        Origin(job="a", url="s3://b/a"),
    )
    assert found["geometry"]["type"] == "Polygon"


def test_images_of_other_kinds_keep_gdals_georeference(example):
    by_plugin = georeference(Sensors(load_factories([example])))
    assert np.abs(by_plugin.world(PIXELS) - georeference(Sensors()).world(PIXELS)).max() == 0


def test_the_functions_load_the_plugins_that_settings_name(session, s3, tmp_path, example):
    s3.put_object(Bucket=BUCKET, Key="a.ntf", Body=sidd(tmp_path / "a.ntf"))
    settings = ImageSettings.of_values({"SENSOR_MODELS": example})
    with closing(Imaging(session, SystemClock(), "q", sensor_models=settings.sensor_models)) as imaging:
        places = expected(np.array([[10.0, 20.0], [100, 250]]))
        wkt = f"LINESTRING ({places[0][0]} {places[0][1]}, {places[1][0]} {places[1][1]})"
        assert imaging.headers.read(f"s3://{BUCKET}/a.ntf", interest=wkt).part == Window(10, 20, 90, 230)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_such_package:model", "No module named 'no_such_package'"),
        ("json:no_such_function", "no attribute 'no_such_function'"),
        ("math:pi", "is no function"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_says_where_it_belongs(name, told):
    with pytest.raises(Unavailable, match=told) as caught:
        load(name)
    assert "ImagePluginLayerArn" in str(caught.value)


class Failing:
    reference_height = 0.0

    def to_ground(self, columns, rows, heights):
        raise ZeroDivisionError("no orbit")

    to_image = to_ground


@pytest.mark.parametrize("factory", [lambda image: Failing(), lambda image: 1 / 0], ids=["model", "factory"])
def test_a_plugin_that_fails_fails_the_image_with_its_name(factory):
    with pytest.raises(InvalidRequest, match=r"plug-in orbit:model failed at this image: ZeroDivisionError"):
        georeference(Sensors({"orbit:model": factory}))


def test_an_image_whose_own_description_is_broken_is_refused_with_the_reason(tmp_path, example):
    body = sidd(tmp_path / "a.ntf", spacing=("wide", 1))
    with pytest.raises(InvalidRequest, match="could not convert string to float"):
        georeference(Sensors(load_factories([example])), body)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"SENSOR_MODELS": "sidd_plane"}, "SENSOR_MODELS"),
        ({"SENSOR_MODELS": "a:b,rm -rf"}, "SENSOR_MODELS"),
        ({"ELEVATION": "https://example.com/dem.tif"}, "ELEVATION"),
        ({"ELEVATION": "dem.tif"}, "ELEVATION"),
    ],
)
def test_settings_of_another_form_are_refused(settings, field):
    with pytest.raises(InvalidRequest) as caught:
        ImageSettings.of_values(settings)
    assert caught.value.field == field
