"""A table with every kind of row of image jobs, written by the real stores: the source of their fixture tables."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import table_scenario
from table_scenario import filled

import builders as b
from image_builders import an_image_job
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.images.adapters.endpoint_rows import DynamoEndpoints
from trainmaster.images.adapters.refusals import DynamoRefusals
from trainmaster.images.adapters.runs import DynamoRuns
from trainmaster.images.domain.endpoint import Endpoint, Variant
from trainmaster.images.domain.refusal import Refusal
from trainmaster.images.domain.tiling import Region, Window
from trainmaster.images.domain.work import Claim

KEY = "ships"


class _StillClock:
    """A clock that stands at `builders.NOW`."""

    def now(self) -> datetime:
        return b.NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def open_store(table: Table) -> DynamoStore:
    """Return a store that discovers endpoints' pools."""
    endpoints = DynamoEndpoints(table)
    return DynamoStore(table, default_pools={}, parameter="fixture", discover=endpoints.discover, now=lambda: b.NOW)


def play(table: Table) -> None:
    """Write all that image jobs store. Every value is fixed, so that two runs write equal rows."""
    DynamoEndpoints(table).remember(filled(Endpoint, key=KEY, variants=(filled(Variant, name="blue"),)), None)
    DynamoRefusals(table, _StillClock()).note(filled(Refusal, job="refused"))
    runs = DynamoRuns(table, _StillClock())
    runs.create("image1", 1, [Region(number=n, window=Window(n * 100, 0, 100, 80), tiles=4) for n in range(3)])
    for number in range(2):
        claim = Claim(job="image1", attempt=1, number=number, worker="worker")
        runs.begin(claim, b.NOW, dead_before=b.NOW - timedelta(seconds=120))
        runs.beat(claim, b.at(20), tiles_done=2)
    runs.finish(Claim(job="image1", attempt=1, number=0, worker="worker"), b.at(40), features=7)
    runs.narrow("image1", 1, 2)
    open_store(table).submit(an_image_job("image1"), {"jobName": "image1"})


def everything(table: Table) -> dict[str, Any]:
    """Return all that the stores read from the table, as JSON."""
    plain = table_scenario.plain
    store = open_store(table)
    return {
        "endpoints": plain(dict(DynamoEndpoints(table).known([KEY]))),
        "refusal": plain(DynamoRefusals(table, _StillClock()).of("refused")),
        "run": plain(DynamoRuns(table, _StillClock()).run("image1")),
        "job": plain(store.find("image1")),
        "pools": plain(dict(store.read_snapshot().pools)),
    }
