"""The path of a tile: what is read ahead of the model, and that no tile or feature costs a session of boto3."""

from __future__ import annotations

import cProfile
import json
import pstats
import threading
import time
from dataclasses import replace
from pathlib import Path

import boto3
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from imaging_stage import JOB
from rasterio.io import MemoryFile
from rasterio.transform import from_origin
from rasterio.warp import transform

from spots import collection, geotiff, picture
from trainmaster.images.domain.request import Compression, TileFormat
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.pixels.features.features import Origin, placed
from trainmaster.images.pixels.reading.encoding import encode
from trainmaster.images.pixels.reading.georeference import georeference_of
from trainmaster.images.pixels.reading.stretch import EIGHT_BITS
from trainmaster.images.pixels.reading.windows import Chip, Image, placing_of
from trainmaster.images.pixels.work.region_outcome import Outcome
from trainmaster.images.pixels.work.request_stats import RequestStats

ORIGIN = Origin(job=JOB, url="s3://images/a.tif")
TILE = Window(40, 20, 64, 64)
FULL_DISK = "+proj=geos +h=35785831 +lon_0=170"


def sessions_made(work):
    """Return the number of boto3 sessions that this makes."""
    profile = cProfile.Profile()
    profile.runcall(work)
    home = Path(boto3.session.__file__)
    calls = pstats.Stats(profile).stats.items()
    return sum(each[0] for (file, _, name), each in calls if name == "__init__" and Path(file) == home)


@pytest.fixture
def keys(monkeypatch):
    """AWS keys in the environment, as in Lambda."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def opened(body):
    with MemoryFile(body) as memory, memory.open() as image:
        window = Window(0, 0, 64, 64)
        chip = Chip(image.read(), placing_of(image, window), lambda: EIGHT_BITS, tuple(image.colorinterp), None)
        return georeference_of(image), chip


@pytest.mark.usefixtures("keys")
def test_neither_a_tile_nor_a_feature_costs_a_session_where_the_environment_has_aws_keys():
    where, chip = opened(geotiff(picture(64, 64, [])))
    features = collection([(0, 0, 9, 9)])["features"]
    assert sessions_made(lambda: placed(features, TILE, where, ORIGIN)) == 0
    for form in TileFormat:
        assert sessions_made(lambda form=form: encode(chip, form, Compression.NONE)) == 0
    assert sessions_made(lambda: transform("EPSG:4326", "EPSG:3857", [1.0], [1.0])) > 0, "rasterio has changed"


IMAGES = {
    "in UTM": opened(geotiff(picture(300, 200, [])))[0],
    "across the antimeridian": opened(
        geotiff(picture(300, 200, []), crs="EPSG:4326", transform=from_origin(179.99, 1, 1e-4, 1e-4))
    )[0],
    "of a full disk": opened(
        geotiff(picture(300, 200, []), crs=FULL_DISK, transform=from_origin(-5.6e6, 5.6e6, 3.7e4, 5.6e4))
    )[0],
}
pixels = st.integers(-50, 300)
shapes = st.one_of(
    st.builds(lambda *box: {"imageBBox": list(box)}, pixels, pixels, pixels, pixels),
    st.builds(lambda x, y: {"imageGeometry": {"type": "Point", "coordinates": [x, y]}}, pixels, pixels),
    st.builds(
        lambda x, y, size: {
            "imageGeometry": {
                "type": "Polygon",
                "coordinates": [[[x, y], [x + size, y], [x, y + size], [x, y]]],
            },
            "imageBBox": [x, y, x + 1, y + 1],
        },
        *(pixels, pixels, st.integers(1, 50)),
    ),
    st.just({"note": "fog"}),
)


@pytest.mark.parametrize("image", IMAGES)
@given(found=st.lists(shapes, max_size=8))
@example([{"imageBBox": [27, 3, 23, 3]}])
def test_features_of_a_tile_have_the_places_that_each_has_alone(image, found):
    features = [{"type": "Feature", "properties": each} for each in found]
    alone = [placed([each], TILE, IMAGES[image], ORIGIN)[0] for each in features]
    assert json.dumps(placed(features, TILE, IMAGES[image], ORIGIN)) == json.dumps(alone)


def test_off_the_earth_there_is_no_geometry_and_neighbors_keep_theirs():
    points = [{"properties": {"imageGeometry": {"type": "Point", "coordinates": [x, 80]}}} for x in (-40, 110, 259)]
    geometries = [each["geometry"] for each in placed(points, TILE, IMAGES["of a full disk"], ORIGIN)]
    assert [each is None for each in geometries] == [True, False, True]
    assert placed(points[:1], TILE, IMAGES["of a full disk"], ORIGIN)[0]["geometry"] is None


class Held:
    """A workshop whose model answers once it may, and whose image counts what was read."""

    def __init__(self, workshop):
        self._workshop = workshop
        self.may, self._lock = threading.Event(), threading.Lock()
        self.read = self.asked = self.now = self.most = 0
        self.stats = RequestStats()

    def __getattr__(self, name):
        return getattr(self._workshop, name)

    def image(self, task):
        return Counting(self._workshop.image(task), self)

    def model(self, task, wait):
        return self

    def features(self, tile):
        with self._lock:
            self.asked, self.now = self.asked + 1, self.now + 1
            self.most = max(self.most, self.now)
        self.may.wait(20)
        with self._lock:
            self.now -= 1
        return []


class Counting:
    """An image whose reads are counted."""

    def __init__(self, image: Image, held: Held) -> None:
        self._image, self._held = image, held

    def __getattr__(self, name):
        return getattr(self._image, name)

    def read(self, window):
        with self._held._lock:
            self._held.read += 1
        return self._image.read(window)


def until(true, seconds=10.0):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


@pytest.fixture
def play(play_of, web):
    web.files["large.tif"] = geotiff(picture(300, 200, []))
    made = play_of(f"{web.url}/large.tif", (300, 200), Cut(region=(300, 200), tile=(50, 50), overlap=(0, 0)))
    made.task = replace(made.task, workers=1)
    made.workshop = Held(made.workshop)
    made.create()
    return made


def test_tiles_are_read_while_the_model_thinks_and_it_gets_no_more_at_once_for_that(play):
    held, outcomes = play.workshop, []
    worker = threading.Thread(target=lambda: outcomes.append(play.turn(0)))
    worker.start()
    assert until(lambda: held.read == 3)
    time.sleep(0.1)
    assert (held.read, held.asked) == (3, 1)
    held.may.set()
    worker.join()
    assert outcomes == [Outcome.DONE]
    assert (held.read, held.asked, held.most) == (24, 24, 1)


def test_what_was_read_ahead_is_not_sent_once_the_time_is_short(play):
    held, left = play.workshop, [900.0]
    worker = threading.Thread(target=lambda: play.turn(0, left=lambda: left[0]))
    worker.start()
    assert until(lambda: held.read == 3)
    left[0] = 60.0
    held.may.set()
    worker.join()
    assert held.asked == 1
    assert play.run.records[0].tiles_done == 1


def test_large_tiles_are_not_read_ahead(play):
    held = play.workshop
    image = held.image(play.task)
    image.bytes_of = lambda window: 2**26
    held.image = lambda task: image
    worker = threading.Thread(target=lambda: play.turn(0))
    worker.start()
    assert until(lambda: held.asked == 1)
    time.sleep(0.1)
    assert held.read == 1
    held.may.set()
    worker.join()


@pytest.mark.parametrize("colors", [1, 2, 3, 4])
def test_a_geotiff_tile_is_the_image_in_pixels_colors_and_place(colors):
    body = geotiff(np.arange(colors * 64 * 64, dtype="uint16").reshape(colors, 64, 64), nodata=7)
    with MemoryFile(body) as memory, memory.open() as image:
        placing = placing_of(image, Window(0, 0, 64, 64))
        chip = Chip(image.read(), placing, lambda: None, tuple(image.colorinterp), image.nodata)
        with MemoryFile(encode(chip, TileFormat.GEOTIFF, Compression.LZW)) as tile, tile.open() as sent:
            assert (sent.read() == image.read()).all()
            assert sent.colorinterp == image.colorinterp
            assert (sent.crs, sent.transform, sent.nodata) == (image.crs, image.transform, 7)
            assert sent.compression.value == "LZW"
