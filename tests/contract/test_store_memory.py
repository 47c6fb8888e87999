from __future__ import annotations

import pytest
from store_contract import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def engine(self, memory_engine):
        return memory_engine
