"""One run over the tiles of an image, in a process of its own: `python -m benchmarks.images.tile_runs WHAT IMAGE N`.

It prints tiles, seconds, CPU seconds and the peak of its memory as JSON. WHAT is `worker`: the region worker as
shipped; `rasterio`: a loop over the same tiles, with the same requests at once; `stages`: the worker's stages one after
the other on one thread; `decode`: nothing but reading, on two threads.
"""

from __future__ import annotations

import gc
import itertools
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import rasterio
import rasterio.warp
from rasterio.io import MemoryFile
from rasterio.session import DummySession
from rasterio.windows import Window as RasterWindow

from trainmaster.adapters.clock import SystemClock
from trainmaster.images.domain.request import Compression, ImageRequest, Output, Processor, TileFormat
from trainmaster.images.domain.tiling import Cut, Window, regions, tiles
from trainmaster.images.domain.work import Claim
from trainmaster.images.local.memory_runs import MemoryRuns
from trainmaster.images.pixels.features.features import Origin, placed
from trainmaster.images.pixels.features.results import ResultNames, Results
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.reading.access import Source
from trainmaster.images.pixels.reading.encoding import encode
from trainmaster.images.pixels.reading.sensors import NO_SENSORS
from trainmaster.images.pixels.reading.windows import Image
from trainmaster.images.pixels.work.models import features_of
from trainmaster.images.pixels.work.region_outcome import Outcome
from trainmaster.images.pixels.work.request_stats import RequestStats
from trainmaster.images.pixels.work.task import Queue, Task, TimeLimits
from trainmaster.images.pixels.work.worker import process_message

CUT = Cut(tile=(1024, 1024), overlap=(24, 24))
REQUESTS = 4
"""Requests to the model at once."""
SECONDS = 0.05
"""The model's time for a tile."""
CORES = 2
JOB = "tiles"
_URL = "s3://images/large.tif"
Figures = dict[str, Any]


class Model:
    """A model that answers each tile after the same time with the same features.

    Args:
        count: features of a tile.
    """

    def __init__(self, count: int) -> None:
        self.stats = RequestStats()
        self._answer = json.dumps({"type": "FeatureCollection", "features": [_feature(n) for n in range(count)]})

    def features(self, tile: bytes) -> list[Figures]:  # noqa: ARG002 - what it is sent changes nothing
        """Return the features, parsed as an answer is."""
        time.sleep(SECONDS)
        return features_of(self._answer.encode())


def _feature(number: int) -> Figures:
    x, y = number * 37 % 1000, number * 91 % 1000
    box = {"imageBBox": [x, y, x + 12, y + 12], "featureClasses": [{"iri": "ship", "score": 0.9}]}
    return {"type": "Feature", "geometry": None, "properties": box}


class Workshop:
    """The components of a worker, for an image on this machine and results that go nowhere.

    Args:
        path: of the image.
        count: features of a tile.
    """

    sensors = NO_SENSORS

    def __init__(self, path: Path, count: int) -> None:
        self._path = path
        self._model = Model(count)

    def source(self, place: ImageLocation, role: str | None, submitter: str = "") -> Source:  # noqa: ARG002
        """See `Access.source`."""
        return Source(place, str(self._path))

    def image(self, task: Task) -> Image:
        """See `worker.WorkerFactory`."""
        access: Any = self
        return Image(access, ImageLocation(task.request.image_url), None)

    def model(self, task: Task, wait: Callable[[float], bool]) -> Model:  # noqa: ARG002
        """See `worker.WorkerFactory`."""
        return self._model

    def results(self, task: Task) -> Results:
        """See `worker.WorkerFactory`."""
        client: Any = self
        return Results(lambda _: client, ResultNames(JOB, "large.tif"), task.request.buckets)

    def put_object(self, **_: Any) -> None:
        """Forget a result."""


class Regions:
    """A region queue that forgets its messages: the benchmark works on all regions anyway."""

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        """See `images.ports.RegionQueue`."""

    def progressed(self, run: str, number: int) -> None:
        """See `task.Queue.tell`."""


def by_worker(path: Path, count: int) -> int:
    """Work on all regions as the function does; return the number of tiles."""
    shop = Workshop(path, count)
    task = _task(path)
    laid = regions(task.part, task.cut)
    runs = MemoryRuns()
    runs.create(JOB, 1, laid)
    regions_queue = Regions()
    queue = Queue(runs=runs, regions=regions_queue, endpoints=None, tell=regions_queue.progressed, clock=SystemClock())
    for each in laid:
        claim = Claim(job=JOB, attempt=1, number=each.number, worker="w")
        outcome = process_message(claim, queue, TimeLimits(left=lambda: 900.0), lambda _: task, shop)
        if outcome is not Outcome.DONE:
            raise RuntimeError(f"region {each.number}: {outcome}")
    return sum(each.tiles for each in laid)


def by_rasterio(path: Path, count: int) -> int:
    """Read, encode, ask and convert in a loop over rasterio; return the number of tiles.

    Each thread has an environment and a handle of its own, and all points of a tile are converted at once; boxes become
    polygons, and nothing else is looked at.
    """
    model, mine = Model(count), threading.local()

    def begin() -> None:
        mine.env = rasterio.Env(session=DummySession(), GDAL_CACHEMAX=128)
        mine.env.__enter__()
        mine.image = rasterio.open(path)

    def one(tile: Window) -> list[Figures]:
        image = mine.image
        window = RasterWindow(tile.column, tile.row, tile.width, tile.height)
        transform = image.window_transform(window)
        profile = {"count": image.count, "width": tile.width, "height": tile.height, "dtype": "uint8"}
        with MemoryFile() as memory:
            with memory.open(driver="GTiff", crs=image.crs, transform=transform, **profile) as sent:
                sent.write(image.read(window=window))
            body = memory.read()
        return _converted(model.features(body), image.crs, transform)

    laid = [tile for each in regions(_task(path).part, CUT) for tile in tiles(each.window, CUT)]
    with ThreadPoolExecutor(REQUESTS, initializer=begin) as pool:
        found = [feature for features in pool.map(one, laid) for feature in features]
    json.dumps({"type": "FeatureCollection", "features": found})
    return len(laid)


def _converted(features: Sequence[Figures], crs: Any, transform: Any) -> list[Figures]:
    boxes = [each["properties"]["imageBBox"] for each in features]
    corners = [corner for a, b, c, d in boxes for corner in ((a, b), (c, b), (c, d), (a, d), (a, b))]
    there = [transform * corner for corner in corners]
    xs, ys = rasterio.warp.transform(crs, "EPSG:4326", [x for x, _ in there], [y for _, y in there])
    points = list(zip(xs, ys, strict=True))
    return [
        {**each, "geometry": {"type": "Polygon", "coordinates": [points[5 * n : 5 * n + 5]]}}
        for n, each in enumerate(features)
    ]


def by_stages(path: Path, count: int) -> dict[str, float]:
    """Return the CPU milliseconds of each stage for a tile of the first region, one after the other."""
    shop, task = Workshop(path, count), _task(path)
    image, origin = shop.image(task), Origin(job=JOB, url=_URL, format_="GTiff")
    laid = tiles(regions(task.part, CUT)[0].window, CUT)
    spent = dict.fromkeys(("read", "encode", "ask", "place", "write"), 0.0)
    found: list[Figures] = []
    for tile in laid:
        begun = time.thread_time()
        chip = image.read(tile)
        read = time.thread_time()
        body = encode(chip, TileFormat.GEOTIFF, Compression.NONE)
        encoded = time.thread_time()
        features = shop.model(task, lambda _: False).features(body)
        asked = time.thread_time()
        found += placed(features, tile, image.georeference, origin)
        ended = time.thread_time()
        marks = (begun, read, encoded, asked, ended)
        for name, (first, last) in zip(spent, itertools.pairwise(marks), strict=False):
            spent[name] += last - first
    begun = time.thread_time()
    json.dumps(found)
    spent["write"] = time.thread_time() - begun
    image.close()
    return {name: round(seconds / len(laid) * 1000, 2) for name, seconds in spent.items()}


def by_decoding(path: Path, _: int) -> int:
    """Read all tiles of the first region, and nothing else; return their number."""
    task = _task(path)
    image = Workshop(path, 0).image(task)
    laid = tiles(regions(task.part, CUT)[0].window, CUT)
    with ThreadPoolExecutor(CORES) as pool:
        for _chip in pool.map(image.read, laid):
            pass
    image.close()
    return len(laid)


def _task(path: Path) -> Task:
    with rasterio.Env(session=DummySession()), rasterio.open(path) as image:
        part = Window(0, 0, image.width, image.height)
    request = ImageRequest(
        job_id=JOB,
        image_url=_URL,
        processor=Processor(name="ships"),
        tile_format=TileFormat.GEOTIFF,
        outputs=(Output(bucket="results"),),
    )
    return Task(request=request, endpoint="ships", variant="blue", part=part, cut=CUT, workers=REQUESTS)


RUNS: dict[str, Callable[[Path, int], int]] = {"worker": by_worker, "rasterio": by_rasterio, "decode": by_decoding}


def measured(what: str, path: Path, count: int) -> Figures:
    """Return the figures of one run in this process."""
    if what == "stages":
        return by_stages(path, count)
    begun, processor = time.perf_counter(), time.process_time()
    done = RUNS[what](path, count)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - processor
    gc.collect()
    return {"tiles": done, "seconds": round(seconds, 2), "cpu_s": round(cpu, 2), "peak_mb": _peak()}


def _peak() -> int:
    """Return the most memory that this process has had, in MB (`VmHWM` of proc(5))."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmHWM")) // 1024


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(json.dumps(measured(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
