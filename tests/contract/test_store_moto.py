from __future__ import annotations

import pytest
from store_contract import StoreContract


class TestMotoStore(StoreContract):
    @pytest.fixture
    def engine(self, moto_engine):
        return moto_engine
