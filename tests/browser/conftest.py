"""One browser and one server for all tests of a file; where Playwright is missing, none of this folder is collected."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest


def pytest_configure() -> None:
    """Take SIGINT where a shell's background job ignores it: the programs that tests interrupt inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]  # `make test-browser` runs them, in an environment of its own
else:
    from console_browser import REFUSED, Example, Server, example_queue, launched, opened, served
    from playwright.sync_api import Browser, Page, sync_playwright

    @pytest.fixture(scope="session")
    def browser() -> Iterator[Browser]:
        with sync_playwright() as playwright:
            yield launched(playwright)

    @pytest.fixture(scope="module")
    def example() -> Iterator[Example]:
        with example_queue() as running:
            yield running

    @pytest.fixture(scope="module")
    def server() -> Iterator[Server]:
        with served() as running:
            yield running

    @pytest.fixture
    def open_page(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
        """Open pages in contexts of their own; whatever they write to their console fails the test."""
        pages, said = [], []

        def open_(hash_: str = "#/now", on: Server = server, **options: Any) -> Page:
            page = opened(browser, on, hash_, **options)
            page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: said.append(str(error)))
            pages.append(page)
            return page

        yield open_
        for page in pages:
            page.context.close()
        assert [each for each in said if not REFUSED.search(each)] == []
