"""Tables filled with waiting jobs, quickly: rows in the store's own encoding, imported into the engine's file.

A file is kept in `.local/bench` for as long as the encoding stays the same; whoever measures gets a copy. It must not
measure anything.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import SCRATCH
from benchmarks.engine import BINARY, engine
from benchmarks.requests import request
from benchmarks.world import CALLER, EPOCH, make_table
from builders import G5, P5, pools_of
from trainmaster.adapters.dynamodb.requests import request_rows
from trainmaster.adapters.dynamodb.rows import row_of
from trainmaster.adapters.sagemaker.request_model import problems
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.job import Job
from trainmaster.service.admission.policy import AdmissionPolicy

Row = dict[str, Any]
KINDS = (P5, G5)
"""The instance types of the waiting jobs: so many lanes."""
PRIORITIES = 10
WITH_REQUEST = 10_000
"""Jobs that have their request in the table too. Passes read the requests of those alone that they start."""
_SHARD = 25_000
_A_DAY_LONG = 86_000
_PATTERN_NAME = "waiting-pattern"


@contextmanager
def waiting_table(count: int) -> Iterator[Any]:
    """A client of an engine whose table has so many waiting jobs."""
    kept = _kept(count)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(kept, copy)
        with engine(copy) as client:
            yield client


def imported(database: Path, rows: Sequence[Callable[[], Iterator[Row]]], make: Callable[[Any], None]) -> None:
    """Make the engine's file, with one table.

    Args:
        database: the file.
        rows: each gives a part of the rows; the parts are made side by side, so they must be picklable.
        make: creates the table with a client.
    """
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=database.parent) as text:
        folder = Path(text)
        name = _describe(make, folder / "schema.json")
        parts = folder / "export" / name / "data"
        parts.mkdir(parents=True)
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as workers:
            list(workers.map(_write, rows, [parts / f"{number:04d}.json.gz" for number in range(len(rows))]))
        made = folder / "made.db"
        _run("import", "--source", folder / "export", "--schema", folder / "schema.json", "--output", made)
        made.replace(database)


def waiting_jobs(first: int, until: int, count: int) -> Iterator[Job]:
    """Some of `count` jobs that wait in two lanes, of ten priorities, one entered each second."""
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
        """Each job's lane entry, and for the first jobs the identity with the request."""
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
    """A short name for how rows look now: other code, other file."""
    sample = list(Part(0, 40, 40)())
    return hashlib.sha256(json.dumps(sample, default=list).encode()).hexdigest()[:8]


def _pattern(kind: str) -> Job:
    """A job as the door makes it."""
    door = AdmissionPolicy(shape_problems=problems, allowed_roles=("*",))
    return door.admit(_request(_PATTERN_NAME, kind), CALLER, pools_of(*(Pool(each, 1) for each in KINDS)), EPOCH).job


def _request(name: str, kind: str) -> Row:
    return request(name, kind=kind, training_seconds=_A_DAY_LONG)


def _write(rows: Callable[[], Iterator[Row]], path: Path) -> None:
    with gzip.open(path, "wt", compresslevel=1) as file:
        for row in rows():
            file.write(json.dumps({"Item": row}, default=_as_text) + "\n")


def _as_text(value: Any) -> str:
    """Bytes as DynamoDB's JSON has them."""
    return base64.b64encode(value).decode()


def _describe(make: Callable[[Any], None], path: Path) -> str:
    """Write the description of the table that `make` creates; returns its name."""
    with engine() as client:
        make(client)
        (name,) = client.list_tables()["TableNames"]
        path.write_text(json.dumps({"Table": client.describe_table(TableName=name)["Table"]}, default=str))
    return str(name)


def _run(*arguments: str | Path) -> None:
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dynoxide import failed: {done.stderr}")
