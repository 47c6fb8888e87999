"""Engines of the contract suite: memory, moto, and Dynoxide, a DynamoDB engine over HTTP.

An engine opens any number of stores on one table of its own.
"""

from __future__ import annotations

import itertools
import random
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol

import boto3
from botocore.config import Config
from botocore.validate import ParamValidator

from builders import a_pool, pools_of
from trainmaster.adapters.dynamodb.encoding.plain_values import take_values_as_they_are
from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.settings import Policy
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.memory.table import MemoryTable
from trainmaster.ports.store import Store

ROOT = Path(__file__).parent.parent.parent
_names = itertools.count(1)


class Engine(Protocol):
    """Opens stores on one table."""

    def open(
        self,
        *,
        pools: Iterable[Pool] = (),
        parameter: str = "two",
        policy: Policy | None = None,
        **options: Any,
    ) -> Store: ...


class MemoryEngine:
    stores: ClassVar[Callable[..., Store]] = MemoryStore

    def __init__(self) -> None:
        self.table = MemoryTable()

    def open(
        self,
        *,
        pools: Iterable[Pool] = (),
        parameter: str = "two",
        policy: Policy | None = None,
        **options: Any,
    ) -> Store:
        default = pools_of(*(pools or [a_pool()]))
        options = {"now": lambda: datetime.now(UTC), **options}
        return self.stores(table=self.table, default_pools=default, parameter=parameter, policy=policy, **options)


class DynamoEngine:
    """A new table behind any low-level client."""

    stores: ClassVar[Callable[..., Store]] = DynamoStore

    def __init__(self, client: Any) -> None:
        self.client = client
        self.name = f"contract-{next(_names)}-{random.randrange(10**9)}"
        make_table(client, self.name)

    def open(
        self,
        *,
        pools: Iterable[Pool] = (),
        parameter: str = "two",
        policy: Policy | None = None,
        client: Any = None,
        **options: Any,
    ) -> Store:
        table = Table(client or self.client, self.name, threading.Event().wait)
        default = pools_of(*(pools or [a_pool()]))
        options = {"now": lambda: datetime.now(UTC), **options}
        return self.stores(table, default_pools=default, parameter=parameter, policy=policy, **options)

    def rows(self) -> list[dict[str, Any]]:
        """All there is in the table; tests may scan."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        return [row for page in pages for row in page["Items"]]


class OneAtATime:
    """A client whose calls exclude each other: moto's tables are not made for threads."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._client, name)
        if name in {"exceptions", "meta"}:
            return called

        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return called(*args, **kwargs)

        return call


class Dynoxide:
    """The engine as a process on a free loopback port, its tables in memory."""

    def __init__(self) -> None:
        self._port = _free_port()
        # Of one session: each reads botocore's models again, which takes thirty times what a client does.
        self._session = boto3.session.Session()
        self._process = subprocess.Popen(
            [str(_binary()), "--port", str(self._port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "listening" in line:
                return
        raise RuntimeError(f"Dynoxide ended with code {self._process.wait()}")

    def client(self, **config: Any) -> Any:
        """A client of its own, with the retries that the Lambdas have, whose arguments are compared with the model."""
        usual = {"retries": {"mode": "standard", "total_max_attempts": 3}, "max_pool_connections": 32}
        client = self._session.client(
            "dynamodb",
            endpoint_url=f"http://127.0.0.1:{self._port}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(**(usual | config), parameter_validation=False),
        )
        client.meta.events.register_first("provide-client-params.dynamodb", _validate)
        return take_values_as_they_are(client)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=10)
        assert self._process.stdout is not None
        self._process.stdout.close()


def make_table(client: Any, name: str) -> None:
    """The table of `template.yaml`."""
    keys = {"pk": "HASH", "sk": "RANGE"}
    index = {"finishedIn": "HASH", "finishedAt": "RANGE"}
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in (*keys, *index)],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "finished",
                "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in index.items()],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def _validate(params: dict[str, Any], model: Any, **_: Any) -> None:
    report = ParamValidator().validate(params, model.input_shape)
    assert not report.has_errors(), report.generate_report()


def _binary() -> Path:
    found = sorted((ROOT / ".local" / "dynoxide" / "node_modules" / "@dynoxide").glob("*/dynoxide"))
    if not found:
        raise FileNotFoundError("no Dynoxide in .local/dynoxide: run `make .local/dynoxide/.stamp`")
    return found[0]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
