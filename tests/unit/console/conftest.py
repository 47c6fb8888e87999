"""A console over the fake API, before and after a browser has signed in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from console_server import Running, serving

from fake_api import FakeApi


@pytest.fixture
def world() -> FakeApi:
    queue = FakeApi()
    queue.page_length = 100
    queue.add("job1", "running", 100)
    queue.add("job2", "pending", 5, position=1)
    return queue


@pytest.fixture
def stranger(world: FakeApi) -> Iterator[Running]:
    """A console to which no browser has signed in."""
    with serving(world) as running:
        yield running


@pytest.fixture
def console(stranger: Running) -> Running:
    """A console with a browser that has signed in."""
    stranger.sign_in()
    return stranger
