"""Engines of the contract suite for the stores of image jobs."""

from __future__ import annotations

import threading
from typing import Any

from engines import DynamoEngine, MemoryEngine

from image_stores import DynamoImageStore, MemoryImageStore
from trainmaster.adapters.clock import SystemClock
from trainmaster.adapters.dynamodb.table import Table
from trainmaster.images.adapters.runs import DynamoRuns
from trainmaster.images.local.memory_runs import MemoryRuns


class MemoryImageEngine(MemoryEngine):
    stores = MemoryImageStore

    def runs(self) -> MemoryRuns:
        """Image jobs' regions."""
        return MemoryRuns()


class DynamoImageEngine(DynamoEngine):
    stores = DynamoImageStore

    def runs(self, client: Any = None) -> DynamoRuns:
        """Image jobs' regions in that table."""
        return DynamoRuns(Table(client or self.client, self.name, threading.Event().wait), SystemClock())
