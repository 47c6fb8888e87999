from __future__ import annotations

import pytest
from endpoints_contract import EndpointsContract


class TestMemoryEndpoints(EndpointsContract):
    @pytest.fixture
    def engine(self, memory_engine):
        return memory_engine


class TestMotoEndpoints(EndpointsContract):
    @pytest.fixture
    def engine(self, moto_engine):
        return moto_engine


class TestDynoxideEndpoints(EndpointsContract):
    @pytest.fixture
    def engine(self, dynoxide_engine):
        return dynoxide_engine
