"""Fills tables with waiting jobs: rows in the store's encoding, imported into the engine's file.

Files are cached in `.local/bench` until the encoding changes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import SCRATCH
from benchmarks.common.engine import engine
from benchmarks.common.engine_import import Row, imported
from benchmarks.common.requests import request
from benchmarks.common.world import CALLER, EPOCH, make_table
from builders import G5, P5, pools_of
from trainmaster.adapters.dynamodb.requests import request_rows
from trainmaster.adapters.dynamodb.rows import row_of
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.access.caller import Caller
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.service.admission.caller_rules import CallerRules
from trainmaster.service.admission.policy import AdmissionPolicy

KINDS = (P5, G5)
"""Instance types of the waiting jobs, each with a lane of its own."""
PRIORITIES = 10
WITH_REQUEST = 12_000
"""Number of jobs whose request is in the table. Passes read only the requests of jobs that they start."""
_SHARD = 25_000
_A_DAY_LONG = 86_000
_PATTERN_NAME = "waiting-pattern"


@contextmanager
def waiting_table(count: int) -> Iterator[Any]:
    """Yield the client of an engine whose table has this many waiting jobs."""
    kept = _kept(count)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(kept, copy)
        with engine(copy) as client:
            yield client


def waiting_jobs(first: int, until: int, count: int) -> Iterator[Job]:
    """Yield some of `count` jobs that wait in two lanes with ten priorities, one entered each second."""
    patterns = [_pattern(kind) for kind in KINDS]
    for number in range(first, until):
        name = f"waiting-{number:07d}"  # as long as the pattern's, so that its request keeps its size
        pattern = patterns[number % len(KINDS)]
        entry = EPOCH - timedelta(seconds=count - number)
        yield replace(
            pattern,
            name=name,
            priority=number // len(KINDS) % PRIORITIES,
            entry_time=entry,
            digest=hashlib.sha256(name.encode()).hexdigest(),
            history=(replace(pattern.history[0], at=entry),),
        )


class Part:
    """The rows of some of the waiting jobs."""

    def __init__(self, first: int, until: int, count: int) -> None:
        self._span = (first, until, count)

    def __call__(self) -> Iterator[Row]:
        """Yield each job's lane entry, and for the first jobs the rows with the request."""
        texts = {kind: json.dumps(_request(_PATTERN_NAME, kind)) for kind in KINDS}
        for number, job in enumerate(waiting_jobs(*self._span), start=self._span[0]):
            yield row_of(job)
            if number < WITH_REQUEST:
                text = texts[job.demand.pools[0]].replace(_PATTERN_NAME, job.name)
                yield from request_rows(job, json.loads(text))


def _kept(count: int) -> Path:
    database = SCRATCH / f"waiting-{count}-{_encoding()}.db"
    if not database.exists():
        for old in SCRATCH.glob(f"waiting-{count}-*.db"):
            old.unlink()
        starts = range(0, count, _SHARD)
        imported(database, [Part(first, min(first + _SHARD, count), count) for first in starts], make_table)
    return database


def _encoding() -> str:
    """Return a hash of the encoding of rows."""
    sample = list(Part(0, 40, 40)())
    return hashlib.sha256(json.dumps(sample, default=list).encode()).hexdigest()[:8]


def _pattern(kind: str) -> Job:
    """Return a job as the admission makes it."""
    door = AdmissionPolicy(shape_problems=problems, rules=CallerRules(allowed_roles=("*",)))
    return door.admit(
        _request(_PATTERN_NAME, kind), Caller(CALLER), pools_of(*(Pool(each, 1) for each in KINDS)), EPOCH
    ).job


def _request(name: str, kind: str) -> Row:
    return request(name, kind=kind, training_seconds=_A_DAY_LONG)
