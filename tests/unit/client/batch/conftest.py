"""Fixtures of the tests of AWS Batch's API: the queue as a scripted API, and a real Batch client."""

from collections.abc import Callable, Iterator

import boto3
import httpx
import pytest
from batch_client import QUEUE, Batch
from client_proxy import client_of, proxied

from fake_api import FakeApi
from trainmaster import ApiClient
from trainmaster.client.batch.hook import route_batch, unroute_batch
from trainmaster.proxy.app import Defaults, Session
from trainmaster.proxy.upstream import Upstream


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


@pytest.fixture
def fake_client(fake: FakeApi, client_on: Callable[..., ApiClient]) -> ApiClient:
    return client_on(httpx.WSGITransport(fake))


@pytest.fixture
def hooked(session: boto3.session.Session, fake_client: ApiClient) -> Iterator[Batch]:
    route_batch(session, fake_client, queues=[QUEUE])
    yield Batch.of(session)
    unroute_batch(session)


@pytest.fixture(params=["hook", "proxy"])
def batch(request: pytest.FixtureRequest) -> Batch:
    """A client whose service jobs go to the queue: by the hook, or through the endpoint of `exec`."""
    found: Batch = request.getfixturevalue("hooked" if request.param == "hook" else "through_proxy")
    return found


@pytest.fixture
def through_proxy(session: boto3.session.Session, proxy_session: Session, fake_client: ApiClient) -> Iterator[Batch]:
    batch = Batch(None)
    upstream = Upstream(proxy_session, batch.send)
    with proxied(proxy_session, fake_client, Defaults(batch_queues={QUEUE: None}), upstream) as proxy:
        batch.client = client_of(proxy, "batch", session)
        yield batch
