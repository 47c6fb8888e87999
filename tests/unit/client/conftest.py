"""Fixtures of the clients' tests: a world in memory, an ApiClient on it, and boto3 sessions with dummy credentials."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import httpx
import pytest
from client_proxy import client_of, proxied
from client_world import API, REGION, World, a_session, served, transport_to
from moto.server import ThreadedMotoServer

from trainmaster import ApiClient, route_to_queue
from trainmaster.client.api.retry import Retry
from trainmaster.proxy.app import Session


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


@pytest.fixture(scope="session")
def proxy_session() -> Session:
    """The session of an endpoint of `trainmaster exec`, made once: it reads the services' models."""
    return Session("AKIDEXAMPLE", "secret", region_name=REGION)


@pytest.fixture
def make_routed(
    session: boto3.session.Session,
    proxy_session: Session,
    api: ApiClient,
    sagemaker_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str], Any]]:
    """Makes a SageMaker client whose jobs go to the queue: by the hook, or through the endpoint of `exec`."""
    with ExitStack() as stack:

        def make(way: str) -> Any:
            if way == "hook":
                route_to_queue(session, api)
                client: Any = session.client("sagemaker", endpoint_url=sagemaker_url)
            else:
                monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", sagemaker_url)
                client = client_of(stack.enter_context(proxied(proxy_session, api)), session=session)
            stack.callback(client.close)
            return client

        yield make
