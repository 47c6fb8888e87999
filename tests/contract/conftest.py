"""Engines for the contract suite, each with a table of its own for every test."""

from __future__ import annotations

import platform

import pytest
from engine_fixtures import BUILDS, dynoxide, dynoxide_client, moto_client  # noqa: F401 - fixtures
from engines import DynamoEngine, MemoryEngine

MANY_ROWS = {
    "test_a_long_history_is_found_whole",
    "test_a_long_history_keeps_its_times_when_the_entry_moves",
    "test_a_long_part_is_walked_page_by_page",
    "test_kinds_and_strangers_are_bounded_for_any_submitter",
    "test_lanes_whose_names_are_alike_do_not_mix",
    "test_ninety_changes_in_place_are_one",
}
"""Proofs that take moto seconds each, since it copies the table for every row of a transaction."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave the proofs of many rows in moto to the slow run on platforms where Dynoxide runs them."""
    if (platform.system(), platform.machine()) in BUILDS:
        for item in items:
            if item.path.name == "test_store_moto.py" and item.originalname in MANY_ROWS:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def dynoxide_engine(dynoxide_client):  # noqa: F811 - a fixture
    return DynamoEngine(dynoxide_client)


@pytest.fixture
def moto_engine(moto_client):  # noqa: F811 - a fixture
    engine = DynamoEngine(moto_client)
    yield engine
    moto_client.delete_table(TableName=engine.name)  # moto copies all tables for each transaction


@pytest.fixture
def memory_engine():
    return MemoryEngine()
