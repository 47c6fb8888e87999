"""Clients of any program: plain boto3 ones, whose calls go through the endpoint of `trainmaster exec`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from client_world import REGION, a_session

from trainmaster import ApiClient
from trainmaster.proxy.app import Defaults, Proxy, Session
from trainmaster.proxy.upstream import Upstream

ONCE = Config(retries={"total_max_attempts": 1})
"""Settings of clients that do not repeat what has failed."""


@contextmanager
def proxied(
    session: Session, api: ApiClient, defaults: Defaults | None = None, upstream: Upstream | None = None
) -> Iterator[Proxy]:
    """An endpoint that serves."""
    proxy = Proxy(session, api, defaults, upstream)
    proxy.start(poll_seconds=0.005)
    try:
        yield proxy
    finally:
        proxy.close()


def client_of(proxy: Proxy, service: str = "sagemaker", session: boto3.session.Session | None = None) -> Any:
    """A client as a program has one: it knows the endpoint, and nothing of the queue."""
    name: Any = service
    config: Any = ONCE
    made = session or a_session()
    return made.client(name, endpoint_url=proxy.urls[service], region_name=REGION, config=config)
