"""Fixtures of the command line's tests: a fake API, and a terminal that runs commands on it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from aws_clients import aws_session
from cli_terminal import Terminal
from fake_api import STAGE, FakeApi
from trainmaster.client.api.client import ApiClient
from trainmaster.client.api.retry import Retry


@pytest.fixture
def world() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(world: FakeApi) -> Iterator[ApiClient]:
    session = aws_session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", region_name="us-east-1")
    retry = Retry(max_attempts=3, sleep=lambda _: None, rng=random.Random(1))
    transport: Any = httpx.WSGITransport(app=world)
    with ApiClient(f"https://api{STAGE}", session=session, transport=transport, retry=retry, environ={}) as api:
        yield api


@pytest.fixture
def run(client: ApiClient) -> Terminal:
    return Terminal(client)
