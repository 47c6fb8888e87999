"""The queue's table behind a DynamoDB engine, for stories that are told call by call: a new table for each.

The engine is Dynoxide, which is checked against AWS and answers in less than half of moto's time; moto stands in where
npm has no Dynoxide. One process of it serves all that one of pytest's plays.
"""

from __future__ import annotations

import atexit
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from botocore.config import Config
from moto import mock_aws
from tests.contract.engines import Dynoxide

from aws_clients import aws_client
from world import TABLE, make_table

ONCE = {"total_max_attempts": 1}
"""Few tries: faults are injected above them."""


@contextmanager
def new_table() -> Iterator[Any]:
    """A client of its own, with the queue's table; one at a time."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        with mock_aws():
            client = aws_client("dynamodb", config=Config(retries=ONCE))
            make_table(client)
            yield client
        return
    calm, client = _calm(), _engine().client(retries=ONCE)
    make_table(calm)
    try:
        yield client
    finally:
        client.close()
        calm.delete_table(TableName=TABLE)


@lru_cache(maxsize=1)
def _engine() -> Dynoxide:
    engine = Dynoxide()
    atexit.register(engine.close)
    return engine


@lru_cache(maxsize=1)
def _calm() -> Any:
    """A client that meets no faults."""
    client = _engine().client()
    atexit.register(client.close)
    return client
