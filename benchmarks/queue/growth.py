"""Cost of a read of the queue by running jobs, lanes, and the depth to which jobs of a lane could start.

Rows are written in the store's encoding; no job is started.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import builders as b
from benchmarks.common.engine import engine
from benchmarks.common.meter import Meter, total
from benchmarks.common.prices import dollars
from benchmarks.common.timing import milliseconds
from benchmarks.common.world import CALLER, TABLE, make_table
from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.rows import row_of
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.planner.schedule import schedule

POOLS = (
    *("ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.g6.2xlarge"),
    *(f"ml.g5.{size}" for size in ("xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "24xlarge", "48xlarge")),
)
_BATCH = 25


@dataclass(frozen=True, slots=True)
class Size:
    """A queue: running jobs and lanes, spread evenly over as many pools as lanes; `deep` has each lane read deeply."""

    running: int
    lanes: int
    deep: bool = False
    waiting_each: int = 150


SIZES = (
    Size(0, 1),
    Size(10, 1),
    Size(100, 1),
    Size(100, 10),
    Size(1_000, 1),
    Size(1_000, 10),
    Size(1_000, 10, deep=True),
)


def measure(size: Size) -> dict[str, Any]:
    """Measure the read of a pass, the read of a query, and the planning of what was read."""
    with engine() as client:
        make_table(client)
        fill(client, size)
        pools = {name: Pool(name, max(1, size.running // size.lanes)) for name in POOLS[: size.lanes]}
        store = DynamoStore(
            Table(client, TABLE, lambda _: None), default_pools=pools, parameter="", now=SystemClock().now
        )
        meter = Meter(client)
        snapshot = store.begin_pass()
        passed = total(meter.reset().values())
        store.read_snapshot()
        surveyed = total(meter.reset().values())
        reading = milliseconds(store.begin_pass, times=10, at_most=5)
    planning = milliseconds(lambda: schedule(snapshot, b.NOW, random.Random(1)), times=20, at_most=5)
    return {
        "running": size.running,
        "lanes": size.lanes,
        "considered": len(snapshot.waiting),
        "pass_read_units": passed.reads,
        "pass_calls": passed.calls,
        "survey_read_units": surveyed.reads,
        "dollars_per_1000_passes": round(dollars(passed) * 1000, 5),
        "reading": reading,
        "planner": planning,
    }


def fill(client: Any, size: Size) -> None:
    """Write such a queue into the table of an engine."""
    rows = [row_of(job) for job in _jobs(size)]
    for first in range(0, len(rows), _BATCH):
        puts = [{"PutRequest": {"Item": row}} for row in rows[first : first + _BATCH]]
        client.batch_write_item(RequestItems={TABLE: puts})


def _jobs(size: Size) -> Iterator[Job]:
    """Yield the jobs: the priority of running ones is higher, or lower where lanes are to be read deeply."""
    for number in range(size.running):
        units, since = {POOLS[number % size.lanes]: 1}, b.at(-number)
        yield b.a_running_job(
            f"running-{number:05d}", priority=5, units=units, now=since, entry_time=since, submitted_by=CALLER
        )
    for number in range(size.lanes * size.waiting_each):
        units, priority = {POOLS[number % size.lanes]: 1}, 9 if size.deep else 0
        entry = b.at(number)
        yield b.a_job(f"waiting-{number:05d}", priority=priority, units=units, entry_time=entry, submitted_by=CALLER)
