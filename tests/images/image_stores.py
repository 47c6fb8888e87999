"""Stores that know endpoints: the queue's memory and that of image jobs in one object, as both are in one table."""

from __future__ import annotations

from typing import Any

from trainmaster.adapters.dynamodb.store import DynamoStore
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.images.adapters.endpoint_rows import DynamoEndpoints
from trainmaster.images.domain.endpoint_set import Caps, default_caps
from trainmaster.images.local.memory_endpoints import MemoryEndpoints
from trainmaster.local.memory.store import MemoryStore
from trainmaster.local.memory.table import MemoryTable

_BY_TABLE: dict[int, tuple[MemoryTable, dict[str, Any]]] = {}
"""The endpoints of each table, as several stores share it."""


class MemoryImageStore(MemoryStore):
    def __init__(self, *, caps: Caps = default_caps, table: MemoryTable | None = None, **settings: Any) -> None:
        table = table or MemoryTable()
        _, stored = _BY_TABLE.setdefault(id(table), (table, {}))
        endpoints = MemoryEndpoints(caps, stored)
        super().__init__(table=table, discover=endpoints.discover, **settings)
        self.known, self.remember = endpoints.known, endpoints.remember


class DynamoImageStore(DynamoStore):
    def __init__(self, table: Table, *, caps: Caps = default_caps, **settings: Any) -> None:
        endpoints = DynamoEndpoints(table, caps)
        super().__init__(table, discover=endpoints.discover, **settings)
        self.known, self.remember = endpoints.known, endpoints.remember
