"""Engines for the contract suite, each with a table of its own for every test."""

from __future__ import annotations

import platform

import boto3
import pytest
from engines import DynamoEngine, Dynoxide, MemoryEngine, OneAtATime
from moto import mock_aws

BUILDS = {("Linux", "x86_64")}
"""Where npm has the engine; elsewhere memory and moto alone pass the contract."""
MANY_ROWS = {
    "test_a_long_history_is_found_whole",
    "test_a_long_history_keeps_its_times_when_the_entry_moves",
    "test_a_long_part_is_walked_page_by_page",
    "test_kinds_and_strangers_are_bounded_whoever_submits",
    "test_lanes_whose_names_are_alike_do_not_mix",
    "test_ninety_changes_in_place_are_one",
}
"""Proofs that take moto seconds each, since it copies the table for every row of a transaction."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Where Dynoxide proves them, moto does in the slow run only."""
    if (platform.system(), platform.machine()) in BUILDS:
        for item in items:
            if item.path.name == "test_store_moto.py" and item.originalname in MANY_ROWS:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def dynoxide():
    if (platform.system(), platform.machine()) not in BUILDS:
        pytest.skip("Dynoxide is built for Linux on x86_64 only; CI proves the rest there")
    engine = Dynoxide()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def dynoxide_client(dynoxide):
    client = dynoxide.client()
    yield client
    client.close()


@pytest.fixture
def dynoxide_engine(dynoxide_client):
    return DynamoEngine(dynoxide_client)


@pytest.fixture(scope="module")
def moto_client():
    with mock_aws():
        client = boto3.session.Session().client(
            "dynamodb", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        yield OneAtATime(client)
        client.close()


@pytest.fixture
def moto_engine(moto_client):
    engine = DynamoEngine(moto_client)
    yield engine
    moto_client.delete_table(TableName=engine.name)  # moto copies all tables for each transaction


@pytest.fixture
def memory_engine():
    return MemoryEngine()
