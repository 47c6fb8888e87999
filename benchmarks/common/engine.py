"""Runs Dynoxide, a DynamoDB engine over HTTP that reports consumed capacity by AWS's rules."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from benchmarks import ROOT
from trainmaster.adapters.dynamodb.encoding.plain_values import take_values_as_they_are
from trainmaster.bootstrap.clients import config_of
from trainmaster.local.stack.processes import GuardedProcess, free_port, listening

BINARY = ROOT / ".local" / "dynoxide" / "dynoxide"


@contextmanager
def engine(database: Path | None = None) -> Iterator[Any]:
    """Run the engine, and yield its client; tables are in memory, or in a SQLite file."""
    if not BINARY.exists():
        raise SystemExit("Dynoxide is missing: run `make .local/dynoxide/.stamp`")
    port = free_port()
    options = [] if database is None else ["--db-path", str(database)]
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [BINARY, "--port", str(port), *options]
        with closing(GuardedProcess("dynoxide", command, os.environ, Path(folder) / "log")) as process:
            process.wait_until(lambda: listening(port), seconds=60)
            with closing(_client(port)) as client:
                yield client


def _client(port: int) -> Any:
    client = boto3.session.Session().client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
        config=config_of("dynamodb", tries=1).merge(Config(read_timeout=600)),
    )
    return take_values_as_they_are(client)
