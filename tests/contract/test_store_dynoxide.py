from __future__ import annotations

import pytest
from store_contract import StoreContract


class TestDynoxideStore(StoreContract):
    @pytest.fixture
    def engine(self, dynoxide_engine):
        return dynoxide_engine
