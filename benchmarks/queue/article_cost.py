"""Cost of the article's queue on the same engine, with the same jobs: reads of its manager, and the life of a job.

A million rows with whole requests would take 4 GB, so the figures of such a depth are computed from the size of a row,
by a rule that the measured depths confirm.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import SCRATCH
from benchmarks.common.engine import engine
from benchmarks.common.engine_import import imported
from benchmarks.common.meter import Cost, Meter, total
from benchmarks.common.prices import dollars
from benchmarks.common.requests import request
from benchmarks.common.timing import shown
from benchmarks.common.world import EPOCH
from benchmarks.queue import article
from benchmarks.queue.article import ArticleQueue, item_of
from trainmaster.local.simulator import SageMakerSimulator, VirtualClock

CAPACITY = 80
MAX_COUNTED = 10_000
_PAGE = 1024 * 1024
_PART = 2_000


@dataclass
class ArticleWorld:
    """The article's queue, a simulated account, and a clock; events are delivered at once."""

    dynamodb: Any
    capacity: int = CAPACITY
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(EPOCH))
    ended: int = 0

    def __post_init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.simulator = SageMakerSimulator(self.clock, sink=self.events.append, rates={"ListTrainingJobs": None})
        self.queue = ArticleQueue(self.dynamodb, self.simulator.client(), self.clock.now, self.capacity)
        self.meter = Meter(self.dynamodb)

    def run(self, seconds: int) -> None:
        """Let time pass, and deliver each event."""
        for _ in range(seconds):
            self.simulator.advance(1)
            while self.events:
                event = self.events.pop(0)
                self.ended += event["detail"]["TrainingJobStatus"] in article.ENDED
                self.queue.on_event(event)


def measure(waiting: int) -> dict[str, Any]:
    """Measure a pass of the article's manager with all instances in use: counted, or computed beyond 10,000 jobs."""
    if waiting > MAX_COUNTED:
        return _computed(waiting)
    with _table(waiting) as client:
        world = ArticleWorld(client)
        world.queue.manage()
        world.run(200)
        taken = []
        world.meter.reset()
        passes = 5
        for _ in range(passes):
            begin = time.perf_counter()
            world.queue.manage()
            taken.append(time.perf_counter() - begin)
        cost = total(world.meter.reset().values()).over(passes)
    return {"waiting": waiting, "how": "counted", **_units(cost.reads, cost.writes, cost.calls), **shown(taken)}


def life(jobs: int, capacity: int) -> dict[str, Any]:
    """Return the average cost of a job's life in a burst."""
    rng = random.Random(1)
    with engine() as client:
        article.make_table(client)
        world = ArticleWorld(client, capacity)
        for number in range(jobs):
            world.queue.submit(request(f"job{number:04d}", training_seconds=rng.randint(300, 900)))
            world.run(1)
        while world.ended < jobs:
            world.run(60)
        cost = total(world.meter.reset().values()).over(jobs)
    return {"jobs": jobs, "capacity": capacity, **_units(cost.reads, cost.writes, cost.calls)}


def _computed(waiting: int) -> dict[str, Any]:
    """Compute two scans of the whole table: half a unit for each 4 KB, with eventual consistency.

    A pass of a full queue scans once for waiting and once for running jobs.
    """
    size = _bytes(item_of(_request("waiting-0000000", 0), EPOCH)) * (waiting + CAPACITY)
    pages = -(-size // _PAGE)
    return {"waiting": waiting, "how": "computed from row size", **_units(2 * size / 4096 / 2, 0, 2 * pages)}


def _units(reads: float, writes: float, calls: float) -> dict[str, float]:
    price = dollars(Cost(reads=reads, writes=writes))
    return {
        "read_units": round(reads, 1),
        "write_units": round(writes, 1),
        "calls": round(calls, 1),
        "dollars_per_1000": round(price * 1000, 4),
    }


class _Part:
    """Some of the article's waiting jobs."""

    def __init__(self, first: int, until: int) -> None:
        self._span = (first, until)

    def __call__(self) -> Iterator[dict[str, Any]]:
        for number in range(*self._span):
            made = _request(f"waiting-{number:07d}", number % 10)
            yield item_of(made, EPOCH - timedelta(seconds=1_000_000 - number))


@contextmanager
def _table(waiting: int) -> Iterator[Any]:
    """Yield the client of an engine whose table has this many jobs, and one more for each instance."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    count = waiting + CAPACITY
    parts = [_Part(first, min(first + _PART, count)) for first in range(0, count, _PART)]
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        database = Path(folder) / "article.db"
        imported(database, parts, article.make_table)
        with engine(database) as client:
            yield client


def _request(name: str, priority: int) -> dict[str, Any]:
    return request(name, priority=priority, training_seconds=86_000)


def _bytes(item: dict[str, Any]) -> int:
    """Return the size of an item: its names and its text; its one number is a digit."""
    return sum(len(name) + len(next(iter(value.values())).encode()) for name, value in item.items())
