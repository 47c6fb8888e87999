"""Tiles as models get them: formats, bits, bands, and where on earth they are."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from rasterio.control import GroundControlPoint
from rasterio.io import MemoryFile
from rasterio.transform import from_origin
from test_headers import a_sensor_model

from spots import NORTH, STEP, UTM, WEST, geotiff, picture
from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.request import COMPRESSIONS, Compression, TileFormat
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.reading.encoding import encode
from trainmaster.images.pixels.reading.georeference import georeference_of
from trainmaster.images.pixels.reading.stretch import Scale, eight_bits, measured, scale_of
from trainmaster.images.pixels.reading.windows import Chip, placing_of

WINDOW = Window(20, 30, 64, 48)


def tile_of(source, form, compression=Compression.NONE, window=WINDOW):
    """An image's tile, as bytes."""
    with MemoryFile(source) as memory, memory.open() as image:
        rows, columns = (window.row, window.row + window.height), (window.column, window.column + window.width)
        there = image.read(window=(rows, columns))
        chip = Chip(there, placing_of(image, window), lambda: scale_of(image), tuple(image.colorinterp), image.nodata)
        return encode(chip, form, compression)


@contextmanager
def opened(tile):
    with MemoryFile(tile) as memory, memory.open() as image:
        yield image


def a_ramp(dtype, bands=1):
    """Pixels that differ in every column, row and band."""
    rows, columns = np.mgrid[0:200, 0:300]
    return np.stack([(rows + columns * 2 + band * 7) % 250 for band in range(bands)]).astype(dtype)


@pytest.mark.parametrize(
    ("form", "compression"),
    [
        (TileFormat.GEOTIFF, Compression.NONE),
        (TileFormat.GEOTIFF, Compression.LZW),
        (TileFormat.NITF, Compression.NONE),
        (TileFormat.PNG, Compression.NONE),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("bands", [1, 3])
def test_pixels_come_out_as_they_went_in_where_the_format_loses_nothing(form, compression, dtype, bands):
    pixels = a_ramp(dtype, bands)
    with opened(tile_of(geotiff(pixels), form, compression)) as tile:
        assert (tile.read() == pixels[:, 30:78, 20:84]).all()
        assert tile.dtypes[0] == dtype


@pytest.mark.parametrize(
    ("form", "compression", "bands"),
    [
        (TileFormat.JPEG, Compression.NONE, 1),
        (TileFormat.JPEG, Compression.NONE, 3),
        (TileFormat.GEOTIFF, Compression.JPEG, 3),
        (TileFormat.NITF, Compression.JPEG, 1),
        (TileFormat.NITF, Compression.J2K, 1),
    ],
)
def test_a_small_overlap_lowers_the_score_little(form, compression, bands):
    pixels = picture(300, 200, [(30, 40)], bands=bands)
    with opened(tile_of(geotiff(pixels), form, compression)) as tile:
        assert np.abs(tile.read().astype(int) - pixels[:, 30:78, 20:84]).mean() < 3
        assert tile.count == bands


def test_bands_that_a_format_does_not_have_are_left_out():
    five, two = geotiff(a_ramp("uint8", 5)), geotiff(a_ramp("uint8", 2))
    for source, form, count in ((five, TileFormat.JPEG, 3), (five, TileFormat.PNG, 3), (two, TileFormat.JPEG, 1)):
        with opened(tile_of(source, form)) as tile:
            assert tile.count == count
    with opened(tile_of(five, TileFormat.NITF)) as tile:
        assert tile.count == 5


def test_eleven_bits_fill_the_eight_where_the_header_tells_of_them():
    pixels = np.full((1, 200, 300), 2047, dtype="uint16")
    with opened(tile_of(geotiff(pixels, nbits=11), TileFormat.JPEG)) as tile:
        assert tile.read().min() >= 254


def test_all_tiles_of_an_image_have_the_same_scale():
    """A dark tile stays dark: stretched tile by tile, its neighbors would look different."""
    scale = Scale(0.0, 65_535.0)
    dark = eight_bits(np.full((1, 4, 4), 300, dtype="uint16"), scale)
    assert dark.max() <= 2
    assert eight_bits(np.array([[[-5.0, np.nan, 0.5, 9.0]]]), Scale(0.0, 1.0)).tolist() == [[[0, 0, 128, 255]]]


@pytest.mark.parametrize("form", [TileFormat.JPEG, TileFormat.PNG])
def test_one_bit_becomes_black_and_white_and_not_two_shades_of_black(form):
    with opened(tile_of(geotiff(np.ones((1, 200, 300), dtype="uint8"), nbits=1), form)) as tile:
        assert tile.read().min() >= 254


@pytest.mark.parametrize("dtype", ["uint16", "int16", "float32"])
@pytest.mark.parametrize("blocks", [{}, {"tiled": True, "blockxsize": 64, "blockysize": 64}])
def test_where_the_header_says_nothing_the_range_is_that_of_what_is_seen(dtype, blocks):
    """Eleven bits of sixteen would be nearly black, and one glaring pixel must not change that."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(200, 2000, (1, 400, 500)).astype(dtype)
    pixels[0, 0, :5] = 32_000
    with MemoryFile(geotiff(pixels, nodata=0, **blocks)) as memory, memory.open() as image:
        scale = measured(image)
        assert scale == measured(image)
    assert 190 <= scale.low <= 210
    assert 1_990 <= scale.high <= 3_000


def test_an_image_of_one_value_has_a_range_nevertheless():
    with MemoryFile(geotiff(np.full((1, 20, 30), 7, dtype="uint16"))) as memory, memory.open() as image:
        assert measured(image) == Scale(0.0, 7.0)


def test_floating_point_goes_into_eight_bits_only_where_its_range_is_known():
    pixels = np.linspace(0, 1, 60_000, dtype="float32").reshape(1, 200, 300)
    source = geotiff(pixels)
    with pytest.raises(InvalidRequest, match="no known range") as caught:
        tile_of(source, TileFormat.PNG)
    assert caught.value.field == "imageProcessorTileFormat"
    with opened(tile_of(source, TileFormat.GEOTIFF)) as tile:
        assert (tile.read() == pixels[:, 30:78, 20:84]).all()


@pytest.mark.parametrize("form", TileFormat)
def test_all_that_a_request_may_ask_for_can_be_written(form):
    for compression in COMPRESSIONS.get(form, Compression):
        with opened(tile_of(geotiff(a_ramp("uint8")), form, compression)) as tile:
            assert tile.count == 1


@pytest.mark.parametrize(("form", "metres"), [(TileFormat.GEOTIFF, 1e-6), (TileFormat.NITF, 1.5)])
def test_a_tile_knows_where_it_is(form, metres):
    with opened(tile_of(geotiff(a_ramp("uint8")), form)) as tile:
        assert tile.crs == UTM
        assert tile.transform.c == pytest.approx(WEST + 20 * STEP, abs=metres)
        assert tile.transform.f == pytest.approx(NORTH - 30 * STEP, abs=metres)


def test_nitf_has_its_corners_in_wgs84_where_it_cannot_have_the_images_own_system():
    source = geotiff(a_ramp("uint8"), crs="EPSG:3857", transform=from_origin(1_000_000, 6_000_000, 500, 500))
    with opened(tile_of(source, TileFormat.NITF)) as tile:
        where = georeference_of(tile)
        assert where is not None
        corner = where.world(np.array([[0.0, 0.0]]))
    with MemoryFile(source) as memory, memory.open() as image:
        expected = georeference_of(image).world(np.array([[20.0, 30.0]]))
    assert corner == pytest.approx(expected, abs=1 / 1800)


def test_control_points_and_sensor_models_move_with_the_tile():
    points = [GroundControlPoint(r, c, 10 + c * 1e-4, 45 - r * 1e-4) for r in (0, 100, 200) for c in (0, 150, 300)]
    by_points = _plain(lambda image: setattr(image, "gcps", (points, "EPSG:4326")))
    by_model = _plain(lambda image: setattr(image, "rpcs", a_sensor_model(10.5, 20.5)))
    for source, form, x, y in (
        (by_points, TileFormat.GEOTIFF, 0, 0),
        (by_model, TileFormat.GEOTIFF, 20.5, 10.5),
        (by_model, TileFormat.NITF, 20.5, 10.5),
    ):
        with opened(tile_of(source, form)) as tile:
            found = georeference_of(tile).world(np.array([[5.0, 6.0]]))
        assert found == pytest.approx(np.array([[10 + (25 - x) * 1e-4, 45 - (36 - y) * 1e-4]]), abs=1e-6)


def test_a_tile_of_a_tile_still_knows_where_it_is():
    """NITF's sensor model stays that of the whole image, however often something is cut out of it."""
    source = _plain(lambda image: setattr(image, "rpcs", a_sensor_model(10.5, 20.5)))
    first = tile_of(source, TileFormat.NITF)
    with opened(tile_of(first, TileFormat.NITF, window=Window(4, 3, 20, 20))) as tile:
        found = georeference_of(tile).world(np.array([[1.0, 2.0]]))
    assert found == pytest.approx(np.array([[10 + (25 - 20.5) * 1e-4, 45 - (35 - 10.5) * 1e-4]]), abs=1e-6)


def test_features_without_a_place_stay_without_one():
    with opened(tile_of(geotiff(a_ramp("uint8"), crs=None, transform=None), TileFormat.GEOTIFF)) as tile:
        assert georeference_of(tile) is None


def _plain(change):
    with MemoryFile() as memory:
        with memory.open(driver="GTiff", width=300, height=200, count=1, dtype="uint8") as image:
            image.write(a_ramp("uint8"))
            change(image)
        return bytes(memory.getbuffer())
