"""Fixtures of the tests of AWS Batch's API: the queue as a scripted API, and a real Batch client."""

from collections.abc import Callable, Iterator

import boto3
import httpx
import pytest
from batch_client import QUEUE, Batch

from fake_api import FakeApi
from trainmaster import ApiClient
from trainmaster.client.batch.hook import route_batch, unroute_batch


@pytest.fixture
def fake() -> FakeApi:
    return FakeApi()


@pytest.fixture
def fake_client(fake: FakeApi, client_on: Callable[..., ApiClient]) -> ApiClient:
    return client_on(httpx.WSGITransport(fake))


@pytest.fixture
def batch(session: boto3.session.Session, fake_client: ApiClient) -> Iterator[Batch]:
    route_batch(session, fake_client, queues=[QUEUE])
    yield Batch(session)
    unroute_batch(session)
