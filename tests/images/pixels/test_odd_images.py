"""Images that are odd, broken or meant to do harm: read as well as they can be, or refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio.shutil
from affine import Affine
from imaging_stage import written
from rasterio.control import GroundControlPoint
from rasterio.io import MemoryFile
from rasterio.transform import from_origin

from spots import geotiff, picture
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.request import Compression, TileFormat
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.features.features import Origin, placed
from trainmaster.images.pixels.http.url_policy import image_location
from trainmaster.images.pixels.reading.encoding import encode
from trainmaster.images.pixels.reading.georeference import georeference_of, interest_window
from trainmaster.images.pixels.reading.stretch import scale_of
from trainmaster.images.pixels.reading.windows import Image, check_memory

NOWHERE = Origin(job="a", url="s3://images/a.tif")


def changed(change, **profile):
    """A small GeoTIFF, changed before it is closed."""
    given = {"driver": "GTiff", "width": 80, "height": 60, "count": 1, "dtype": "uint8"} | profile
    with MemoryFile() as memory:
        with memory.open(**given) as image:
            change(image)
        return bytes(memory.getbuffer())


def where_of(source):
    with MemoryFile(source) as memory, memory.open() as image:
        return georeference_of(image)


def points(*at):
    return lambda image: setattr(image, "gcps", ([GroundControlPoint(*each) for each in at], "EPSG:4326"))


@pytest.mark.parametrize(
    "source",
    [
        geotiff(picture(80, 60, []), transform=Affine(0, 0, 500_000, 0, 0, 5_000_000)),
        geotiff(picture(80, 60, []), transform=Affine(0.5, 0, float("nan"), 0, -0.5, 5_000_000)),
        geotiff(picture(80, 60, []), crs='LOCAL_CS["a workshop",UNIT["metre",1]]'),
        geotiff(picture(80, 60, []), crs="EPSG:4978"),
        geotiff(picture(80, 60, []), crs="+proj=eqc +R=1737400"),
        changed(points((0, 0, 10, 45))),
        changed(points(*[(0, 0, 10, 45)] * 5)),
        changed(points((float("nan"), 0, 10, 45), (0, 80, 10, 46), (60, 0, 11, 45), (60, 80, 11, 46))),
    ],
    ids=["degenerate", "no number", "workshop", "geocentric", "moon", "one point", "equal points", "point without row"],
)
def test_invalid_coordinates_give_no_georeference(source, imaging, web):
    web.files["a.tif"] = source
    header = imaging.headers.read(f"{web.url}/a.tif", interest="POINT (10 45)")
    assert header.part == Window(0, 0, 80, 60)
    image = Image(imaging._access, image_location(f"{web.url}/a.tif", loopback=True), None)
    chip = image.read(Window(0, 0, 40, 30))
    image.close()
    assert encode(chip, TileFormat.NITF, Compression.NONE)


@pytest.mark.parametrize(
    ("crs", "transform"),
    [("EPSG:4326", from_origin(179.99, 10, 0.0005, 0.0005)), ("EPSG:32660", from_origin(828_000, 1_107_000, 50, 50))],
)
def test_geometries_across_the_antimeridian_are_cut_and_found_from_both_sides(crs, transform):
    where = where_of(geotiff(picture(80, 60, []), crs=crs, transform=transform))
    middle = float(where.image(np.array([[180.0, where.world(np.array([[0.0, 30.0]]))[0, 1]]]))[0, 0])
    (found,) = placed(
        [{"properties": {"imageBBox": [middle - 5, 20, middle + 5, 30]}}], Window(0, 0, 80, 60), where, NOWHERE
    )
    longitudes = [x for part in found["geometry"]["coordinates"] for x, _ in part[0]]
    assert found["geometry"]["type"] == "MultiPolygon"
    assert all(179.9 < abs(x) <= 180 for x in longitudes)
    west, _, east, _ = found["bbox"]
    assert (west > 179, east < -179) == (True, True)
    south, north = found["bbox"][1], found["bbox"][3]
    boxes = [
        f"(({a} {south}, {b} {south}, {b} {north}, {a} {north}, {a} {south}))" for a, b in ((west, 180), (-180, east))
    ]
    part = interest_window(f"MULTIPOLYGON ({', '.join(boxes)})", where, 80, 60)
    assert abs(part.column - (middle - 5)) <= 2
    assert part.width <= 14
    assert part.height <= 14


def test_geometries_beside_the_antimeridian_keep_their_side():
    where = where_of(geotiff(picture(80, 60, []), crs="EPSG:4326", transform=from_origin(179.99, 10, 0.0005, 0.0005)))
    (found,) = placed([{"properties": {"imageBBox": [60, 20, 70, 30]}}], Window(0, 0, 80, 60), where, NOWHERE)
    assert found["geometry"]["type"] == "Polygon"
    assert found["bbox"][0] == pytest.approx(-179.98)
    assert found["bbox"][2] == pytest.approx(-179.975)


def test_features_off_the_earth_have_no_geometry_and_keep_their_pixels():
    """A full disk, as weather satellites see it, has corners that show nothing but sky."""
    seen = "+proj=geos +h=35785831 +lon_0=0 +sweep=y"
    disk = geotiff(picture(100, 100, []), crs=seen, transform=from_origin(-5.6e6, 5.6e6, 112_000, 112_000))
    boxes = [{"properties": {"imageBBox": box}} for box in ([1, 1, 4, 4], [48, 48, 52, 52])]
    sky, earth = placed(boxes, Window(0, 0, 100, 100), where_of(disk), NOWHERE)
    assert sky["geometry"] is None
    assert "bbox" not in sky
    assert sky["properties"]["imageBBox"] == [1, 1, 4, 4]
    assert earth["geometry"]["type"] == "Polygon"


@pytest.mark.parametrize(("low", "high"), [("low", "high"), ("0,5", "9,5"), ("nan", "inf"), ("", "1")])
def test_statistics_that_are_none_are_as_if_there_were_none(low, high):
    source = changed(
        lambda image: image.update_tags(1, STATISTICS_MINIMUM=low, STATISTICS_MAXIMUM=high), dtype="float32"
    )
    with MemoryFile(source) as memory, memory.open() as image:
        assert scale_of(image) is None


def chip_of(imaging, web, source):
    web.files["a.tif"] = source
    image = Image(imaging._access, image_location(f"{web.url}/a.tif", loopback=True), None)
    chip = image.read(Window(0, 0, 80, 60))
    return image, chip


@pytest.mark.parametrize("kind", [("GTiff", {"photometric": "palette"}, 3), ("PNG", {}, 4)])
@pytest.mark.parametrize("form", [TileFormat.GEOTIFF, TileFormat.PNG, TileFormat.NITF, TileFormat.JPEG])
def test_of_a_paletted_image_models_see_the_colors(imaging, web, form, kind):
    def paint(image):
        image.write(np.ones((1, 60, 80), dtype="uint8"))
        image.write_colormap(1, {0: (0, 0, 0, 0), 1: (250, 120, 10, 255)})

    driver, options, bands = kind
    image, chip = chip_of(imaging, web, changed(paint, driver=driver, **options))
    image.close()
    with MemoryFile(encode(chip, form, Compression.NONE)) as memory, memory.open() as tile:
        assert tile.count == (3 if form is TileFormat.JPEG else bands)
        assert np.abs(tile.read((1, 2, 3))[:, 30, 40].astype(int) - (250, 120, 10)).max() <= 6


def test_a_palette_of_greys_is_one_band(imaging, web):
    """GDAL gives all images of one bit such a palette."""
    image, chip = chip_of(imaging, web, geotiff(np.ones((1, 60, 80), dtype="uint8"), nbits=1))
    image.close()
    with MemoryFile(encode(chip, TileFormat.JPEG, Compression.NONE)) as memory, memory.open() as tile:
        assert tile.count == 1
        assert tile.read().min() >= 254


def test_sixteen_bits_are_looked_at_only_for_a_tile_of_eight(imaging, web):
    source = geotiff(np.random.default_rng(1).integers(100, 1_100, (1, 600, 800)).astype("uint16"))
    image, chip = chip_of(imaging, web, source)
    encode(chip, TileFormat.NITF, Compression.NONE)
    before = len(web.asked)
    tiles = [encode(image.read(Window(0, 0, 80, 60)), TileFormat.JPEG, Compression.NONE) for _ in range(2)]
    assert len(web.asked) > before
    image.close()
    assert tiles[0] == tiles[1]
    with MemoryFile(tiles[0]) as memory, memory.open() as tile:
        assert 100 < tile.read().mean() < 150


@pytest.mark.parametrize("form", [TileFormat.NITF, TileFormat.GEOTIFF, TileFormat.JPEG])
def test_bands_that_jpeg_does_not_have_are_left_out_in_whatever_it_is(imaging, web, form):
    image, chip = chip_of(imaging, web, geotiff(picture(80, 60, [(20, 20)], bands=5)))
    image.close()
    with MemoryFile(encode(chip, form, Compression.JPEG)) as memory, memory.open() as tile:
        assert tile.count == 3


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_before_the_job_enters(imaging, web):
    def nothing(image):
        """Leaves all blocks out."""

    bomb = changed(
        nothing,
        width=40_000,
        height=40_000,
        tiled=True,
        blockxsize=32_000,
        blockysize=32_000,
        sparse_ok=True,
        compress="deflate",
    )
    assert len(bomb) < 10_000
    web.files["a.tif"] = bomb
    with pytest.raises(InvalidRequest, match="the image's blocks") as caught:
        imaging.headers.read(f"{web.url}/a.tif")
    assert caught.value.field == "imageUrls"


def test_a_tile_that_does_not_fit_into_memory_is_refused():
    def nothing(image):
        """Leaves all blocks out."""

    large = changed(nothing, width=20_000, height=20_000, count=4, tiled=True, sparse_ok=True)
    with (
        MemoryFile(large) as memory,
        memory.open() as image,
        pytest.raises(InvalidRequest, match="a tile of") as caught,
    ):
        check_memory(image, Window(0, 0, 10_000, 10_000))
    assert caught.value.field == "imageProcessorTileSize"


@pytest.mark.parametrize("driver", ["GTiff", "JPEG", "PNG", "JP2OpenJPEG", "NITF"])
def test_a_truncated_image_is_refused_where_pixels_are_missing(imaging, web, tmp_path, driver):
    noise = np.random.default_rng(1).integers(0, 255, (1, 256, 256), dtype="uint8")
    web.files["a"] = written(tmp_path / "a.jp2", noise, driver)[:12_000]
    image = Image(imaging._access, image_location(f"{web.url}/a", loopback=True), None)
    with pytest.raises(InvalidRequest, match="not an image that can be read") as caught:
        image.read(Window(200, 200, 50, 50))
    image.close()
    assert "previous exception" not in str(caught.value)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_an_image_of_one_pixel_is_one_tile(imaging, web, dtype):
    web.files["a.tif"] = geotiff(np.full((3, 1, 1), 7, dtype=dtype))
    assert imaging.headers.read(f"{web.url}/a.tif").part == Window(0, 0, 1, 1)
    image = Image(imaging._access, image_location(f"{web.url}/a.tif", loopback=True), None)
    chip = image.read(Window(0, 0, 1, 1))
    image.close()
    for form in (TileFormat.NITF, TileFormat.GEOTIFF):
        with MemoryFile(encode(chip, form, Compression.NONE)) as memory, memory.open() as tile:
            assert (tile.read() == 7).all()


def test_of_a_nitf_with_several_images_the_first_is_looked_at(imaging, web, tmp_path):
    path = str(tmp_path / "a.ntf")
    for size, options in (((80, 60), {"NUMI": 2}), ((40, 30), {"APPEND_SUBDATASET": "YES"})):
        with MemoryFile(geotiff(picture(*size, []))) as memory, memory.open() as source:
            rasterio.shutil.copy(source, path, driver="NITF", **options)
    web.files["a.ntf"] = (tmp_path / "a.ntf").read_bytes()
    header = imaging.headers.read(f"{web.url}/a.ntf")
    assert (header.width, header.height) == (80, 60)
