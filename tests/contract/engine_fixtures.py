"""Clients of the engines of the contract suite, as fixtures for its conftest files."""

from __future__ import annotations

import platform

import boto3
import pytest
from engines import Dynoxide, OneAtATime
from moto import mock_aws

RUNS_DYNOXIDE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
"""True where npm has the engine for the platform; elsewhere only memory and moto pass the contract."""


@pytest.fixture(scope="session")
def dynoxide():
    if not RUNS_DYNOXIDE:
        pytest.skip("Dynoxide is built for Linux on x86_64 only; CI proves the rest there")
    engine = Dynoxide()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def dynoxide_client(dynoxide):
    client = dynoxide.client()
    yield client
    client.close()


@pytest.fixture(scope="module")
def moto_client():
    with mock_aws():
        client = boto3.session.Session().client(
            "dynamodb", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        yield OneAtATime(client)
        client.close()
