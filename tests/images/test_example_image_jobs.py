"""Image jobs of the example queue: their requests, their image and the model that answers."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import httpx
from rasterio.io import MemoryFile

from trainmaster.images.domain.request import problems
from trainmaster.images.handlers.models import read_request
from trainmaster.images.local.example_queue import ImageExample, grey_png, model_server


def test_the_requests_are_accepted_without_a_warning():
    for number in (1, 2):
        reading = read_request(ImageExample().body(number, random.Random(number), datetime(2026, 11, 23, tzinfo=UTC)))
        assert (reading.request.job_id, list(reading.warnings)) == (f"harbour-scan-{number}", [])
        assert list(problems(reading.request)) == []


def test_the_image_is_one_that_image_jobs_can_read():
    with MemoryFile(grey_png(64)) as memory, memory.open() as image:
        assert (image.width, image.height, image.count) == (64, 64, 1)
        row = image.read(1)[0]
    assert (row[0], row[-1]) == (0, 255 * 63 // 64)


def test_the_model_answers_with_detections_in_geojson():
    with model_server() as url:
        answer = httpx.post(f"{url}/ship-detector/only", content=b"tile", timeout=10)
    (found,) = answer.json()["features"]
    assert found["properties"]["imageBBox"] == [60, 60, 90, 90]
