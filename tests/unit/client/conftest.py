"""Fixtures of the clients' tests: a world in memory, an ApiClient on it, and boto3 sessions with dummy credentials."""

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import httpx
import pytest
from client_world import API, World, a_session, served, transport_to
from moto.server import ThreadedMotoServer

from trainmaster import ApiClient
from trainmaster.client.api.retry import Retry


@pytest.fixture(autouse=True)
def no_configuration_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINMASTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def session() -> boto3.session.Session:
    return a_session()


@pytest.fixture
def client_on(session: boto3.session.Session, slept: list[float]) -> Iterator[Callable[..., ApiClient]]:
    """Makes ApiClients that do not really sleep."""
    made: list[ApiClient] = []

    def make(transport: httpx.BaseTransport, **arguments: Any) -> ApiClient:
        retry = Retry(max_attempts=3, sleep=slept.append, rng=random.Random(1))
        made.append(ApiClient(**{"url": API, "session": session, "transport": transport, "retry": retry} | arguments))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def api(world: World, client_on: Callable[..., ApiClient]) -> ApiClient:
    return client_on(transport_to(world))


@pytest.fixture
def sagemaker_url(world: World) -> Iterator[str]:
    with served(world) as url:
        yield url


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
