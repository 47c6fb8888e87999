"""One browser and one server for all tests of a file; where Playwright is missing, none of this folder is collected."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

if find_spec("playwright") is None:
    collect_ignore_glob = ["test_*.py"]  # `make test-browser` runs them, in an environment of its own
else:
    from console_browser import Server, launched, served
    from playwright.sync_api import Browser, sync_playwright

    @pytest.fixture(scope="session")
    def browser() -> Iterator[Browser]:
        with sync_playwright() as playwright:
            yield launched(playwright)

    @pytest.fixture(scope="module")
    def server() -> Iterator[Server]:
        with served() as running:
            yield running
