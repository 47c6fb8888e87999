"""Images in S3 are read by ranges with boto3: a slow S3 stops no other thread, and a changed object is noticed."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from botocore.exceptions import ClientError
from imaging_stage import BUCKET, Play, written

from aws_clients import aws_session
from spots import geotiff
from trainmaster.adapters.clock import SystemClock
from trainmaster.domain.errors import InvalidRequest, Throttled, Unavailable
from trainmaster.images.domain.tiling import Cut, Window
from trainmaster.images.pixels.http.url_policy import ImageLocation, image_location
from trainmaster.images.pixels.reading.s3_parts import S3Parts
from trainmaster.images.pixels.reading.windows import Image
from trainmaster.images.pixels.wiring import Imaging
from trainmaster.images.pixels.work.region_outcome import Outcome

SIDE = 512
NOISE = np.random.default_rng(1).integers(0, 255, (3, SIDE, SIDE), dtype="uint8")
CUT = Cut(region=(SIDE, SIDE), tile=(256, 256), overlap=(0, 0))
SOON = 60.0
"""Seconds after which something that should have happened has not; a loaded machine is slow."""


@pytest.fixture
def slow_s3(web, monkeypatch):
    """The web server of this process as S3, and image components that use it; tests have it answer late."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", web.url)
    session = aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    made = Imaging(session, SystemClock(), "q", random.Random(1))
    yield made
    made.close()


class Seen(list):
    """A list in which another thread can wait for items."""

    def __init__(self):
        super().__init__()
        self._changed = threading.Condition()

    def append(self, item):
        with self._changed:
            super().append(item)
            self._changed.notify_all()

    def wait_for(self, count):
        """Block until it has so many items, or until that has taken too long."""
        with self._changed:
            self._changed.wait_for(lambda: len(self) >= count, SOON)


@pytest.mark.parametrize("driver", ["GTiff", "NITF", "JPEG", "PNG", "JP2OpenJPEG"])
def test_other_threads_run_while_s3_is_slow(slow_s3, web, tmp_path, driver):
    """GDAL's own client held Python's lock, so that not even this server, a thread of the process, could answer it."""
    web.files["images/a"] = written(tmp_path / "a.jp2", NOISE, driver)
    ticks, ran, over = Seen(), [], threading.Event()

    def tick():
        while not over.wait(0.01):
            ticks.append(None)

    def answer_late(_):
        before = len(ticks)
        ticks.wait_for(before + 3)
        ran.append(len(ticks) - before)

    web.before = answer_late
    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        image = Image(slow_s3._access, image_location("s3://images/a"), None)
        image.read(Window(0, 0, 256, 256))
        image.close()
    finally:
        over.set()
        ticking.join()
    assert ran
    assert min(ran) >= 3, "another thread ran during each request"


def test_heartbeats_go_on_while_a_slow_s3_is_read(slow_s3, web, tmp_path):
    # Too dark for the model to find anything: it would look for minutes.
    web.files["images/a.jpg"] = written(tmp_path / "a.jpg", NOISE // 4, "JPEG")
    play = Play(slow_s3, None, "s3://images/a.jpg", model=f"{web.url}/model", size=(SIDE, SIDE), cut=CUT, outputs=())
    beats, plain = Seen(), play.runs.beat

    class Beating:
        def __getattr__(self, name):
            return getattr(play.runs, name)

        def beat(self, claim, now, *, tiles_done):
            beats.append(len(web.tiles))
            return plain(claim, now, tiles_done=tiles_done)

    play.queue = type(play.queue)(
        runs=Beating(),
        regions=play.messages,
        endpoints=None,
        tell=play.queue.tell,
        clock=SystemClock(),
    )
    (number,) = play.create()
    web.before = lambda asked: beats.wait_for(2 if asked else 0)  # the first answer opens the image
    assert play.turn(number, beat_every=0.03) is Outcome.DONE
    assert beats.count(0) >= 2, "the worker sent heartbeats before its first tile was read"


def test_an_object_that_changes_while_it_is_read_is_refused(imaging, s3):
    s3.put_object(Bucket=BUCKET, Key="a.tif", Body=geotiff(NOISE))
    image = Image(imaging._access, image_location(f"s3://{BUCKET}/a.tif"), None)
    s3.put_object(Bucket=BUCKET, Key="a.tif", Body=geotiff(NOISE[::-1]))
    with pytest.raises(InvalidRequest, match="has changed") as caught:
        image.read(Window(0, 256, 256, 256))
    assert caught.value.field == "imageUrls"
    image.close()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("SlowDown", Throttled),
        ("InternalError", Unavailable),
        ("NoSuchKey", InvalidRequest),
        ("AccessDenied", InvalidRequest),
    ],
)
def test_trouble_of_s3_that_may_pass_is_told_from_what_stays(code, error):
    parts = S3Parts(lambda: Refusing(code), ImageLocation("s3://images/a.tif", "images", "a.tif"))
    with pytest.raises(error, match=code) as caught:
        parts(0, 9)
    hint = caught.value.hint if error is InvalidRequest else None
    assert bool(hint) is (code == "AccessDenied")


class Refusing:
    """A client of S3 that meets an error."""

    def __init__(self, code):
        self._code = code

    def get_object(self, **_):
        raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "GetObject")
