"""Elastic torch over a DynamoDB engine. This environment has torch, and of ours what a container has: boto3 alone."""

from __future__ import annotations

import itertools
import os
import platform

import pytest
from tests.contract.engines import Dynoxide, make_table

_tables = itertools.count(1)


@pytest.fixture(scope="session")
def engine():
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("Dynoxide is built for Linux on x86_64 only; CI proves the rest there")
    engine = Dynoxide()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def client(engine):
    client = engine.client()
    yield client
    client.close()


@pytest.fixture
def table(client):
    """The name of a new table."""
    name = f"torch-{os.getpid()}-{next(_tables)}"
    make_table(client, name)
    return name
