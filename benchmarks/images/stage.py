"""A queue of image requests on DynamoDB's real engine: rows as the store encodes them, shipped manager, played workers.

Workers do at once what they are told to, outside of what is measured. It must not measure anything.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.common.engine import engine
from benchmarks.common.engine_import import imported
from benchmarks.common.world import CALLER, EPOCH, TABLE, MeteredWorld, make_table
from image_runs_world import Aside, Endpoints, Regions
from image_stores import DynamoImageStore, MemoryImageStore
from trainmaster.adapters.dynamodb.requests import request_rows
from trainmaster.adapters.dynamodb.rows import row_of
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.adapters.sagemaker.launcher import SageMakerLauncher
from trainmaster.bootstrap import Application, Settings
from trainmaster.domain.jobs.job import Change, Job, JobState
from trainmaster.domain.plan import Snapshot
from trainmaster.images.adapters.endpoint_rows import endpoint_row
from trainmaster.images.adapters.runs import DynamoRuns
from trainmaster.images.domain.endpoint import Endpoint, Variant
from trainmaster.images.domain.tiling import Cut, Window, load, regions
from trainmaster.images.domain.work import MERGE, Claim, run_of, work_of
from trainmaster.images.kind import image_parts
from trainmaster.service.kinds import KindLauncher

Row = dict[str, Any]
QUEUE = "sagemaker-queue"
PART = Window(0, 0, 10_000, 18_000)
CUT = Cut(tile=(1024, 1024), overlap=(50, 50))
REGIONS = regions(PART, CUT)
"""Those of every image."""
WORKERS = 4
"""Requests that a region makes at once (`TILE_WORKERS_PER_INSTANCE`)."""
LOAD = load(REGIONS, WORKERS)
"""Requests that an image makes at once."""
MEMORY = Path("/dev/shm")
"""Folder whose files are in memory."""
_BY_WRITING = 2_000
"""Rows up to which a table is filled by writing them; more are imported."""
_BATCH = 25
_SHARD = 25_000


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of image requests, one as large as the other, which the endpoints take in turn.

    Attributes:
        outstanding: how many there are.
        endpoints: over how many endpoints.
        running: how many of them the endpoints take together; as many each.
        served: how many of the first have their requests in the table too: those that are to start.
    """

    outstanding: int
    endpoints: int
    running: int
    served: int

    def rows(self, first: int, until: int) -> Iterator[Row]:
        """Some of the requests, as the store keeps what has been submitted."""
        pattern = _pattern()
        for number in range(first, until):
            job = self._job(pattern, number)
            yield row_of(job)
            if number < self.served:
                yield from request_rows(job, _request(job.name, self._endpoint(number)))

    def remembered(self) -> Iterator[Row]:
        """The endpoints, each described a moment ago."""
        takes = self.running // self.endpoints * LOAD
        for number in range(self.endpoints):
            variants = (Variant(name="blue", max_concurrency=takes),)
            yield endpoint_row(Endpoint(key=self._endpoint(number), variants=variants, described_at=EPOCH), 1)

    def _endpoint(self, number: int) -> str:
        return f"ships-{number % self.endpoints:03d}"

    def _job(self, pattern: Job, number: int) -> Job:
        name = f"image-{number:07d}"
        entry = EPOCH - timedelta(seconds=self.outstanding - number)
        assert pattern.work is not None
        work = replace(pattern.work, endpoint=self._endpoint(number))
        return replace(
            pattern,
            name=name,
            entry_time=entry,
            digest=hashlib.sha256(name.encode()).hexdigest(),
            container_image=work.pool,
            work=work,
            demand=work.demand(),
            history=tuple(replace(change, at=entry) for change in pattern.history),
        )


@contextmanager
def filled(queue: Queue) -> Iterator[Any]:
    """A client of an engine whose table has such a queue, on a file in memory: the disk is not what is measured."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        database = Path(folder) / "images.db"
        by_writing = queue.outstanding <= _BY_WRITING
        if not by_writing:
            starts = range(0, queue.outstanding, _SHARD)
            parts = [_Part(queue, first, min(first + _SHARD, queue.outstanding)) for first in starts]
            imported(database, [*parts, _Remembered(queue)], make_table)
        with engine(database) as client:
            if by_writing:
                make_table(client)
                _write(client, [*queue.rows(0, queue.outstanding), *queue.remembered()])
            yield client


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of some of the requests, made by another process."""

    queue: Queue
    first: int
    until: int

    def __call__(self) -> Iterator[Row]:
        return self.queue.rows(self.first, self.until)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """The rows of the endpoints, made by another process."""

    queue: Queue

    def __call__(self) -> Iterator[Row]:
        return self.queue.remembered()


class Stage(MeteredWorld):
    """The tests' world on a metered engine, with a deployment's image jobs.

    Args:
        client: of an engine with such a table in it.
    """

    stores = (MemoryImageStore, DynamoImageStore)

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.regions, self.aside, self.endpoints = Regions(), Aside(), Endpoints(takes=0)
        self.passes = 0
        self.read: tuple[Job, ...] = ()

    @cached_property
    def runs(self) -> DynamoRuns:
        """The regions, on the same table."""
        return DynamoRuns(Table(self.dynamodb, TABLE, lambda _: None), self)

    def application(self) -> Application:
        """A fresh process."""
        made = Application(
            Settings(
                queue=QUEUE,
                table=TABLE,
                pools=self.pools,
                job_kinds={"image": {"REGION_QUEUE_URL": "regions", "IMAGE_QUEUE_URL": "images"}},
            )
        )
        made.clock = self
        store = self._store()
        made.__dict__ |= {
            "store": store,
            "known_endpoints": store,
            "publisher": self.queue,
            "checkpoints": self,
            "rendezvous": self.rendezvous,
            "resize_requesters": self.resize_requesters,
        }
        image_parts(made).__dict__ |= {
            "runs": self.runs,
            "region_queue": self.regions,
            "image_queue": self.aside,
            "endpoints": self.endpoints,
        }
        made.__dict__["launcher"] = KindLauncher(SageMakerLauncher(self.sagemaker, made.settings.queue), made.runs)
        return made

    def invoke(self) -> None:
        """One invocation of the manager; what it would write to its log as metrics is not shown."""
        with redirect_stdout(io.StringIO()):
            super().invoke()

    def _pass_over(self, time: timedelta) -> None:  # noqa: ARG002 -- the world gives it
        """A manager that fails would be asked again forever."""
        raise RuntimeError("the manager has failed")

    def _store(self) -> Any:
        """The metered store; passes are counted."""
        return _Counting(super()._store(), self)

    def work(self) -> int:
        """Workers do all that was dispatched, and tell the manager of every image that is done; how many that is."""
        messages, self.regions.messages = self.regions.messages, []
        attempts = {(job, attempt): None for job, attempt, _ in messages}
        for job, attempt, number in messages:
            self._do(job, attempt, number)
        for job, attempt in attempts:
            self._do(job, attempt, MERGE)
            self.queue.send(f'{{"kind":"image","run":"{run_of(job, attempt)}"}}')
        return len(attempts)

    def _do(self, job: str, attempt: int, number: int) -> None:
        claim = Claim(job=job, attempt=attempt, number=number, worker="worker")
        now = self.now()
        if self.runs.begin(claim, now, dead_before=now) is None:
            raise RuntimeError(f"region {number} of {job} cannot be begun")
        if self.runs.finish(claim, now, features=1) is None:
            raise RuntimeError(f"region {number} of {job} cannot be finished")


class _Counting:
    """A store whose passes are counted, and which tells who waits of those that the last one has read."""

    def __init__(self, store: Any, stage: Stage) -> None:
        self._store, self._stage = store, stage

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    def begin_pass(self) -> Snapshot:
        """See `ports.Store`."""
        snapshot: Snapshot = self._store.begin_pass()
        self._stage.passes += 1
        self._stage.read = snapshot.waiting
        return snapshot


def _write(client: Any, rows: Sequence[Row]) -> None:
    for first in range(0, len(rows), _BATCH):
        puts = [{"PutRequest": {"Item": row}} for row in rows[first : first + _BATCH]]
        client.batch_write_item(RequestItems={TABLE: puts})


def _pattern() -> Job:
    """An image job as the intake makes it."""
    work = work_of("", "blue", PART, CUT, WORKERS)
    return Job(
        name="pattern",
        priority=0,
        entry_time=EPOCH,
        demand=work.demand(),
        digest="",
        checkpointed=True,
        work=work,
        submitted_by=CALLER,
        history=(Change(EPOCH, None, JobState.PENDING, f"submitted by {CALLER}"),),
    )


def _request(name: str, endpoint: str) -> Row:
    """A request in ModelRunner's form, with what its guide shows."""
    return {
        "jobId": name,
        "jobName": f"ships in {name}",
        "imageUrls": [f"s3://acme-imagery-us-east-1/2026/11/21/{name}.tif"],
        "outputs": [{"type": "S3", "bucket": "acme-detections-us-east-1", "prefix": f"ships/{name}/"}],
        "imageProcessor": {"name": endpoint, "type": "SM_ENDPOINT"},
        "imageProcessorTileSize": CUT.tile[0],
        "imageProcessorTileOverlap": CUT.overlap[0],
        "imageProcessorTileFormat": "GTIFF",
        "imageProcessorTileCompression": "NONE",
        "postProcessing": [
            {"step": "FEATURE_DISTILLATION", "algorithm": {"algorithmType": "NMS", "iouThreshold": 0.75}}
        ],
    }
