"""Stage for image workers in tests: generated images with known objects, S3 (moto), and servers on the loopback.

The model server finds bright blobs; images are served by ranges, and what was asked for is written down.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import rasterio.shutil
from rasterio.io import MemoryFile

from spots import blobs, collection, geotiff
from trainmaster.images.domain.endpoint import Endpoint
from trainmaster.images.domain.request import ImageRequest, Output, Processor, ProcessorType, TileFormat
from trainmaster.images.domain.tiling import Cut, Window, regions
from trainmaster.images.domain.work import MERGE, Claim, Run
from trainmaster.images.local.memory_runs import MemoryRuns
from trainmaster.images.pixels.wiring import Imaging
from trainmaster.images.pixels.work.region_outcome import Outcome
from trainmaster.images.pixels.work.task import Queue, Task, TimeLimits
from trainmaster.images.pixels.work.worker import process_message

BUCKET, RESULTS, SECOND, JOB = "images", "results", "second", "harbour-7"


class Served:
    """A server on the loopback: files by name, by ranges, and a model at /model that finds blobs.

    Attributes:
        leads: where else a name leads to.
        before: called before a file is answered, with how many requests there were.
        asked: method, path, and bytes of the answer.
        tiles: content type and driver of each tile.
        trouble: called before a tile is looked at; a status that it gives is the answer.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes | int] = {}
        self.leads: dict[str, str] = {}
        self.before: Callable[[int], None] = lambda number: None
        self.asked: list[tuple[str, str, int]] = []
        self.tiles: list[tuple[str, str]] = []
        self.trouble: Callable[[int], int | None] = lambda number: None
        self.lock = threading.Lock()

    def look(self, content_type: str, body: bytes) -> tuple[int, bytes]:
        with self.lock:
            self.tiles.append((content_type, _driver(body)))
            number = len(self.tiles)
        status = self.trouble(number)
        return (status, b"busy") if status else (200, json.dumps(collection(blobs(body))).encode())


def _driver(body: bytes) -> str:
    with MemoryFile(body) as memory, memory.open() as image:
        return str(image.driver)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for the stage that its server has."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would hold each body back until its headers are acknowledged

    @property
    def stage(self) -> Served:
        return self.server.stage  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        return

    def do_HEAD(self) -> None:
        self._file(body=False)

    def do_GET(self) -> None:
        self._file(body=True)

    def do_POST(self) -> None:
        tile = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(*self.stage.look(self.headers["Content-Type"], tile), {}, body=True)

    def _file(self, *, body: bool) -> None:
        name = self.path.lstrip("/")
        self.stage.before(len(self.stage.asked))
        if name in self.stage.leads:
            self._answer(302, b"", {"Location": self.stage.leads[name]}, body=body)
            return
        held = self.stage.files.get(name, 404)
        if isinstance(held, int):
            self._answer(held, b"", {}, body=body)
            return
        asked, headers, status = self.headers.get("Range"), {"Accept-Ranges": "bytes"}, 200
        if asked:
            first, last = (int(each or len(held) - 1) for each in asked.removeprefix("bytes=").split("-"))
            headers["Content-Range"] = f"bytes {first}-{min(last, len(held) - 1)}/{len(held)}"
            held, status = held[first : last + 1], 206
        self._answer(status, held, headers, body=body)

    def _answer(self, status: int, said: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.stage.asked.append((self.command, self.path, len(said) if body else 0))
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(said))}).items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(said)


@contextmanager
def served() -> Iterator[Served]:
    """A server, while it is used."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.stage = stage = Served(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield stage
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Ticking:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self, step: float = 1.0) -> None:
        self.time = datetime(2026, 11, 21, tzinfo=UTC)
        self.step = timedelta(seconds=step)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            self.time += self.step
            return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Messages:
    """A region queue that keeps its messages, with how long each is kept back."""

    sent: list[tuple[str, int, int, float]] = field(default_factory=list)

    def dispatch(self, job: str, attempt: int, numbers: Sequence[int], *, after: float = 0.0) -> None:
        self.sent += [(job, attempt, number, after) for number in numbers]


@dataclass
class Known:
    """Endpoints that are remembered."""

    by_key: dict[str, Endpoint] = field(default_factory=dict)

    def known(self, keys: Any) -> dict[str, Endpoint]:
        return {key: self.by_key[key] for key in keys if key in self.by_key}

    def remember(self, endpoint: Endpoint, before: Endpoint | None) -> bool:
        if self.by_key.get(endpoint.key) != before:
            return False
        self.by_key[endpoint.key] = endpoint
        return True


class Play:
    """One image job and those who work on it.

    Args:
        imaging: reads images from a stand-in of S3.
        s3: a client of it.
        url: of the image.
        model: URL of the model.
        size: of the image.
        cut: how it is cut.
    """

    def __init__(
        self, imaging: Imaging, s3: Any, url: str, *, model: str, size: tuple[int, int], cut: Cut, **request: Any
    ):
        asked: dict[str, Any] = {
            "tile_format": TileFormat.GEOTIFF,
            "outputs": (Output(bucket=RESULTS, prefix="ships"),),
        }
        self.request = ImageRequest(
            job_id=JOB,
            image_url=url,
            processor=Processor(name=model, type_=ProcessorType.HTTP),
            tile_size=cut.tile[0],
            tile_overlap=cut.overlap[0],
            **(asked | request),
        )
        part = Window(0, 0, *size)
        self.task = Task(request=self.request, endpoint=model, variant="", part=part, cut=cut, workers=3)
        self.s3 = s3
        self.runs, self.messages, self.known, self.told = MemoryRuns(), Messages(), Known(), []
        self.queue = Queue(
            runs=self.runs,
            regions=self.messages,
            endpoints=self.known,
            tell=lambda run, number: self.told.append((run, number)),
            clock=Ticking(),
        )
        self.imaging = imaging
        self.workshop: Any = imaging
        self.limits = TimeLimits(left=lambda: 900.0)
        self._workers = 0

    def create(self, attempt: int = 1) -> list[int]:
        """The regions' numbers."""
        laid = regions(self.task.part, self.task.cut)
        self.runs.create(JOB, attempt, laid)
        return [each.number for each in laid]

    def turn(self, number: int, attempt: int = 1, **limits: Any) -> Outcome:
        """One message about a region, to a new worker."""
        self._workers += 1
        claim = Claim(job=JOB, attempt=attempt, number=number, worker=f"w{self._workers}")
        return process_message(claim, self.queue, replace(self.limits, **limits), lambda _: self.task, self.workshop)

    def run_all(self, attempt: int = 1) -> dict[str, Any]:
        """All regions, then the merging; the image's result."""
        outcomes = [self.turn(number, attempt) for number in self.create(attempt)]
        assert set(outcomes) <= {Outcome.DONE, Outcome.NOTHING}, outcomes
        assert (JOB, attempt, MERGE, 0.0) in self.messages.sent
        assert self.turn(MERGE, attempt) is Outcome.DONE
        return self.result()

    def result(self) -> dict[str, Any]:
        """The image's."""
        listed = self.s3.list_objects_v2(Bucket=RESULTS, Prefix=f"ships/{JOB}/")["Contents"]
        (key,) = [each["Key"] for each in listed if "/regions/" not in each["Key"]]
        return self.read(key)

    def read(self, key: str) -> dict[str, Any]:
        """An object of the results' bucket."""
        found: dict[str, Any] = json.loads(self.s3.get_object(Bucket=RESULTS, Key=key)["Body"].read())
        return found

    @property
    def run(self) -> Run:
        found = self.runs.run(JOB)
        assert found is not None
        return found


def written(path: Path, pixels: Any, driver: str, **options: Any) -> bytes:
    """The picture in another format, by way of a file."""
    with MemoryFile(geotiff(pixels)) as memory, memory.open() as source:
        rasterio.shutil.copy(source, str(path), driver=driver, **options)
    return path.read_bytes()
