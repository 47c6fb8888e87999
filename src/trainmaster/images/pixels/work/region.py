"""Processing of one region: reads its tiles, sends them to the model from several threads, and saves the features.

Some tiles are read and encoded ahead, so that the model does not wait for them. The main thread sends heartbeats, saves
progress, and ends everything before the worker's time does. Duplicates are removed once for the whole image
(`features/merge.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.errors import Throttled
from trainmaster.images.domain.tiling import Window, tiles
from trainmaster.images.pixels.features.features import Feature, Origin, box_of, is_clipped, placed
from trainmaster.images.pixels.features.results import Found, Results
from trainmaster.images.pixels.reading.encoding import encode
from trainmaster.images.pixels.reading.windows import Image
from trainmaster.images.pixels.work.models import Model
from trainmaster.images.pixels.work.pressure import OverloadMonitor, note_throttling
from trainmaster.images.pixels.work.region_outcome import Outcome, Stopped, TimeUp, done, give_back
from trainmaster.images.pixels.work.task import Assignment, Task

_Seen = tuple[list[Feature], list[bool]]
_CORES = 2
"""Tiles that are read and encoded at once; a worker's memory gives it about two cores."""
_AHEAD_BYTES = 32 * 1024 * 1024
"""Maximum bytes of pixels that are read ahead of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTools:
    """The components that process a region.

    Attributes:
        image: read by several threads.
        model: called by several threads.
        results: stores the features.
        stop_event: set when the region ends; the model's retries end with it.
    """

    image: Image
    model: Model
    results: Results
    stop_event: threading.Event = field(default_factory=threading.Event)


class RegionWork:
    """A worker's run of a region that it has claimed.

    Args:
        task: the job.
        assignment: the region.
        tools: image, model and results.
    """

    def __init__(self, task: Task, assignment: Assignment, tools: RegionTools) -> None:
        self._task = task
        self._assignment = assignment
        self._queue = assignment.queue
        self._limits = assignment.limits
        self._tools = tools
        self._tiles = tiles(assignment.record.region.window, task.cut)
        self._found = Found()
        self._watch = OverloadMonitor(assignment.queue, task, tools.model.stats)
        self._before = 0
        self._cores, self._requests = threading.Semaphore(_CORES), threading.Semaphore(task.workers)
        self._end_reason: BaseException | None = None
        self._throttling: list[Throttled] = []
        self._beat_at = self._saved_at = assignment.queue.clock.now()

    def work(self) -> Outcome:
        """Process the rest of the region, then finish it or give it back."""
        try:
            self._load_progress()
            self._process_tiles()
            whole = len(self._found.done) == len(self._tiles)
            if (whole or len(self._found.done) > self._before) and self._save() and whole:
                self._end_reason = None  # A stop after the last tile comes too late.
        except Exception as error:  # noqa: BLE001 - whatever it was, the region has to be given back
            self._end_reason = self._end_reason or error
        if self._end_reason is None:
            return done(self._assignment, features=len(self._found.features))
        if self._end_reason in self._throttling:
            note_throttling(self._queue, self._task.endpoint, self._task.variant)
        progress = len(self._found.done) > self._before and self._tools.results.kept
        return give_back(self._assignment, self._end_reason, progress=progress)

    def _load_progress(self) -> None:
        if self._assignment.record.tiles_done:
            region = self._assignment.record.region
            self._found = self._tools.results.load(region.number, region.window, len(self._tiles))
        self._before = len(self._found.done)

    def _process_tiles(self) -> None:
        """Process all open tiles; end early, with the reason in `_end_reason`, once running tiles have ended."""
        todo = iter([index for index in range(len(self._tiles)) if index not in self._found.done])
        under_way: dict[Future[_Seen], int] = {}
        ahead = self._ahead()
        pool = ThreadPoolExecutor(self._task.workers + ahead, thread_name_prefix="tile")
        try:
            while True:
                self._send(todo, under_way, pool, self._task.workers + ahead)
                if not under_way:
                    return
                ended, _ = wait(under_way, timeout=self._wait_seconds(), return_when=FIRST_COMPLETED)
                for future in ended:
                    self._collect(future, under_way.pop(future))
                self._keep_alive()
                if under_way and self._limits.left() < self._limits.spare:
                    self._end(TimeUp())
                    return
        finally:
            self._tools.stop_event.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _ahead(self) -> int:
        """Return the number of tiles to read ahead of the model: as many as the cores, unless they are large."""
        size = max((self._tools.image.bytes_of(each) for each in self._tiles), default=0)
        return min(_CORES, _AHEAD_BYTES // max(1, size))

    def _send(
        self, todo: Iterator[int], under_way: dict[Future[_Seen], int], pool: ThreadPoolExecutor, most: int
    ) -> None:
        while self._end_reason is None and len(under_way) < most:
            index = next(todo, None)
            if index is None:
                return
            if self._limits.left() < self._limits.reserve:
                self._end(TimeUp())
                return
            under_way[pool.submit(self._process_tile, self._tiles[index])] = index

    def _process_tile(self, tile: Window) -> _Seen:
        """Process one tile, on a thread of the pool."""
        with self._cores:
            body = self._body(tile)
        with self._requests:
            found = self._ask(body)
        features = placed(found, tile, self._tools.image.georeference, self._origin())
        boxes = [box_of(each) for each in features]
        return features, [box is not None and is_clipped(box, tile, self._task.part) for box in boxes]

    def _body(self, tile: Window) -> bytes:
        self._check_time()
        request = self._task.request
        return encode(self._tools.image.read(tile), request.tile_format, request.tile_compression)

    def _ask(self, body: bytes) -> list[Feature]:
        """Return the model's features; its throttling counts for the endpoint, that of other servers does not."""
        self._check_time()
        try:
            return self._tools.model.features(body)
        except Throttled as error:
            self._throttling.append(error)
            raise

    def _check_time(self) -> None:
        """Raise `TimeUp` if nothing may be begun any more; the region's first reason to end counts."""
        if self._tools.stop_event.is_set() or self._limits.left() < self._limits.reserve:
            raise TimeUp

    def _origin(self) -> Origin:
        request = self._task.request
        return Origin(
            job=request.job_id,
            url=request.image_url,
            format_=self._tools.image.driver,
            source=self._tools.image.source,
            time=_written(self._queue.clock.now()),
            properties=request.feature_properties,
        )

    def _collect(self, future: Future[_Seen], index: int) -> None:
        error = future.exception()
        if error is None:
            self._found.add(index, *future.result())
        else:
            self._end(error)

    def _end(self, why: BaseException) -> None:
        """Record the first reason; later ones are its consequences."""
        if self._end_reason is None:
            self._end_reason = why
        self._tools.stop_event.set()

    def _wait_seconds(self) -> float:
        """Return the seconds until something is due."""
        return max(0.05, min(self._limits.beat_every / 2, self._limits.left() - self._limits.spare))

    def _keep_alive(self) -> None:
        """Report the model's load, send a heartbeat, and save progress, each if it is due."""
        self._watch.look()
        now = self._queue.clock.now()
        if now - self._beat_at >= timedelta(seconds=self._limits.beat_every):
            self._beat_at = now
            if not self._queue.runs.beat(self._assignment.claim, now, tiles_done=len(self._found.done)):
                self._end(Stopped())
        if now - self._saved_at >= timedelta(seconds=self._limits.save_every) and self._found.done:
            self._saved_at = now
            self._save()

    def _save(self) -> bool:
        """Save progress unless another worker has the region and may have saved more."""
        if not self._is_ours():
            return False
        region = self._assignment.record.region
        self._tools.results.save(region.number, region.window, len(self._tiles), self._found)
        return True

    def _is_ours(self) -> bool:
        """Return whether the region is still this worker's; no other worker can take it soon after that.

        The heartbeat also tells the next worker that progress is saved. It returns False for a stopped run, too: then
        the region is still this worker's, to be given back with its progress.
        """
        claim = self._assignment.claim
        if self._queue.runs.beat(claim, self._queue.clock.now(), tiles_done=len(self._found.done)):
            return True
        self._end(Stopped())
        run = self._queue.runs.run(claim.job)
        records = run.records if run is not None and run.attempt == claim.attempt else ()
        return any(each.region.number == claim.number and each.worker == claim.worker for each in records)


def _written(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
