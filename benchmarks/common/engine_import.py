"""Imports rows into a file of the DynamoDB engine: much faster than writing them through its API."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.common.engine import BINARY, engine

Row = dict[str, Any]


def imported(database: Path, rows: Sequence[Callable[[], Iterator[Row]]], make: Callable[[Any], None]) -> None:
    """Create the engine's file, with one table.

    Args:
        database: the file.
        rows: each returns a part of the rows; processes make the parts in parallel, so these must be picklable.
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


def _write(rows: Callable[[], Iterator[Row]], path: Path) -> None:
    with gzip.open(path, "wt", compresslevel=1) as file:
        for row in rows():
            file.write(json.dumps({"Item": row}, default=_as_text) + "\n")


def _as_text(value: Any) -> str:
    """Encode bytes as in DynamoDB's JSON."""
    return base64.b64encode(value).decode()


def _describe(make: Callable[[Any], None], path: Path) -> str:
    """Write the description of the table that `make` creates; return its name."""
    with engine() as client:
        make(client)
        (name,) = client.list_tables()["TableNames"]
        path.write_text(json.dumps({"Table": client.describe_table(TableName=name)["Table"]}, default=str))
    return str(name)


def _run(*arguments: str | Path) -> None:
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dynoxide import failed: {done.stderr}")
