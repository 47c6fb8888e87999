"""The article's queue on the same engine, with the same jobs: what its manager reads and a job's life costs.

Where a depth is too great to load (its rows hold whole requests: 4 GB at a million), its figures follow from the size
of a row, by the rule that the measured depths have confirmed.
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
MAX_LOADED = 10_000
_PAGE = 1024 * 1024
_PART = 2_000


@dataclass
class Scene:
    """The article's queue, an account to run in, and a clock; events reach the queue as they arise."""

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
        """Let time pass, telling the queue of each end."""
        for _ in range(seconds):
            self.simulator.advance(1)
            while self.events:
                event = self.events.pop(0)
                self.ended += event["detail"]["TrainingJobStatus"] in article.ENDED
                self.queue.on_event(event)


def measure(waiting: int) -> dict[str, Any]:
    """A pass of the article's manager at a depth, with every instance taken: counted, or computed beyond 10,000."""
    if waiting > MAX_LOADED:
        return _computed(waiting)
    with _table(waiting) as client:
        scene = Scene(client)
        scene.queue.manage()
        scene.run(200)
        taken = []
        scene.meter.reset()
        passes = 5
        for _ in range(passes):
            begin = time.perf_counter()
            scene.queue.manage()
            taken.append(time.perf_counter() - begin)
        cost = total(scene.meter.reset().values()).over(passes)
    return {"waiting": waiting, "how": "counted", **_units(cost.reads, cost.writes, cost.calls), **shown(taken)}


def life(jobs: int, capacity: int) -> dict[str, Any]:
    """The average cost of a job's life in a burst of so many."""
    rng = random.Random(1)
    with engine() as client:
        article.make_table(client)
        scene = Scene(client, capacity)
        for number in range(jobs):
            scene.queue.submit(request(f"job{number:04d}", training_seconds=rng.randint(300, 900)))
            scene.run(1)
        while scene.ended < jobs:
            scene.run(60)
        cost = total(scene.meter.reset().values()).over(jobs)
    return {"jobs": jobs, "capacity": capacity, **_units(cost.reads, cost.writes, cost.calls)}


def _computed(waiting: int) -> dict[str, Any]:
    """Two scans of the whole table, eventually consistent: half a unit for each 4 KB of what a page went through.

    A pass of a full queue: one scan for what waits, one for what runs.
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
    """A client of an engine whose table has so many jobs, and as many more as there is room for."""
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
    """The size of an item: its names and its text; its one number is a digit."""
    return sum(len(name) + len(next(iter(value.values())).encode()) for name, value in item.items())
