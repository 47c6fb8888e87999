"""The check of placement that anyone can repeat on images of others, on hostile ones; GDAL's warper is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
import rasterio.shutil
from affine import Affine
from benchmarks.images.placement import check, main
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.rpc import RPC
from rasterio.transform import from_origin

WIDTH, HEIGHT = 240, 180
WGS84, POLAR = CRS.from_epsg(4326), CRS.from_epsg(3413)
GCPS = [GroundControlPoint(row, column, 10 + column * 1e-4 + row * 2e-5, 45 - row * 1e-4)
        for row in (0, 90, 180) for column in (0, 120, 240)]  # fmt: skip


def a_model():
    line, sample, one = np.zeros(20), np.zeros(20), np.eye(20)[0].tolist()
    line[2], sample[1] = -1.0, 1.0
    return RPC(
        height_off=100, height_scale=500, lat_off=45.0, lat_scale=0.009, long_off=10.0, long_scale=0.012,
        line_num_coeff=line.tolist(), line_den_coeff=one, samp_num_coeff=sample.tolist(), samp_den_coeff=one,
        line_off=90, line_scale=90, samp_off=120, samp_scale=120, err_bias=1, err_rand=1,
    )  # fmt: skip


ROTATED = Affine.translation(9.9, 45.1) * Affine.rotation(30) * Affine.scale(1e-4, -1e-4)
HOSTILE = {
    "sensor model beside a transform without a system": {"rpcs": a_model(), "transform": from_origin(0, 0, 2, 2)},
    "control points": {"gcps": GCPS, "crs": WGS84},
    "rotated": {"crs": WGS84, "transform": ROTATED},
    "rotated and sheared on a map": {
        "crs": CRS.from_epsg(32632), "transform": Affine(0.5, 0.2, 500_000, 0.1, -0.6, 5_000_000),
    },
    "antimeridian": {"crs": WGS84, "transform": from_origin(179.99, 10, 1e-4, 1e-4)},
    "antimeridian from the west": {"crs": CRS.from_epsg(32660), "transform": from_origin(826_000, 1_106_000, 50, 50)},
    "pole": {"crs": POLAR, "transform": from_origin(-12_000, 9_000, 100, 100)},
    "beside the south pole": {"crs": CRS.from_epsg(3031), "transform": from_origin(200_000, 9_000, 100, 100)},
    "pixels that are not square": {"crs": WGS84, "transform": from_origin(10, 45, 3e-4, 5e-5)},
    "south up": {"crs": WGS84, "transform": Affine(1e-4, 0, 10, 0, 1e-4, 45)},
    "one bit": {"crs": WGS84, "transform": from_origin(10, 45, 1e-4, 1e-4), "nbits": 1},
    "pixel is point": {"crs": WGS84, "transform": from_origin(10, 45, 1e-4, 1e-4), "AREA_OR_POINT": "Point"},
}  # fmt: skip


def written(path, driver="GTiff", *, rpcs=None, dtype="uint8", **profile):
    point = profile.pop("AREA_OR_POINT", None)
    with rasterio.open(path, "w", driver=driver, width=WIDTH, height=HEIGHT, count=1, dtype=dtype, **profile) as image:
        image.write(np.zeros((1, HEIGHT, WIDTH), dtype))
        if rpcs is not None:
            image.rpcs = rpcs
        if point is not None:
            image.update_tags(AREA_OR_POINT=point)
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_images_are_placed_as_gdal_places_them(tmp_path, name):
    found = check(written(tmp_path / "a.tif", **HOSTILE[name]))
    assert found.said == "ok", found
    assert found.pixels < 0.2


def test_a_nitf_with_corners_and_a_sensor_model_is_placed_by_the_model(tmp_path):
    corners = {"crs": WGS84, "transform": from_origin(9.5, 45.5, 1 / 3600, 1 / 3600)}
    with rasterio.open(written(tmp_path / "a.tif", rpcs=a_model(), **corners)) as image:
        rasterio.shutil.copy(image, str(tmp_path / "a.ntf"), driver="NITF")
    found = check(tmp_path / "a.ntf")
    assert (found.said, found.note) == ("ok", "NITF")


def test_images_that_tell_no_place_are_none_and_those_that_gdal_cannot_read_are_left_out(tmp_path):
    assert check(written(tmp_path / "plain.png", "PNG")).said == "none"
    (tmp_path / "broken.tif").write_bytes(b"II*\0 and no more")
    assert check(tmp_path / "broken.tif").said == "left out"
    mars = CRS.from_wkt(
        'GEOGCS["Mars",DATUM["D_Mars",SPHEROID["Mars",3396190,0]],PRIMEM["Reference",0],UNIT["degree",0.0174532925]]'
    )
    assert check(written(tmp_path / "mars.tif", crs=mars, transform=from_origin(10, 45, 1e-3, 1e-3))).said == "left out"


def test_a_difference_beyond_the_tolerance_is_told_and_fails(tmp_path, capsys):
    written(tmp_path / "a.tif", **HOSTILE["rotated"])
    assert main([str(tmp_path)]) == 0
    assert "ok: 1" in capsys.readouterr().out
    assert main([str(tmp_path), "--tolerance", "0"]) == 1
    assert f"pixels {tmp_path / 'a.tif'} GTiff" in capsys.readouterr().out
