"""The engines of the contract suite, with stores that know endpoints, each with a table of its own for every test."""

from __future__ import annotations

import pytest
from engine_fixtures import dynoxide, dynoxide_client, moto_client  # noqa: F401 - fixtures

from image_engines import DynamoImageEngine, MemoryImageEngine


@pytest.fixture
def dynoxide_engine(dynoxide_client):  # noqa: F811 - a fixture
    return DynamoImageEngine(dynoxide_client)


@pytest.fixture
def moto_engine(moto_client):  # noqa: F811 - a fixture
    engine = DynamoImageEngine(moto_client)
    yield engine
    moto_client.delete_table(TableName=engine.name)  # moto copies all tables for each transaction


@pytest.fixture
def memory_engine():
    return MemoryImageEngine()
