"""Fixtures of the tests of the endpoint: one that serves, AWS as a script, and requests to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_proxy import proxied
from proxy_wire import Aws, Wire

from trainmaster import ApiClient
from trainmaster.proxy.app import Session
from trainmaster.proxy.upstream import Upstream


@pytest.fixture
def aws() -> Aws:
    return Aws()


@pytest.fixture
def wire(proxy_session: Session, api: ApiClient, aws: Aws) -> Iterator[Wire]:
    with proxied(proxy_session, api, upstream=Upstream(proxy_session, aws)) as proxy:
        yield Wire(proxy)
