"""A browser on a console over a lively queue: the program of `world_server.py`, and Debian's Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "browser" / "world_server.py"
PYTHON = ROOT / ".venv" / "bin" / "python"
AXE = ROOT / ".local" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
WIDTH, HEIGHT = 1320, 900
REFUSED = re.compile(r"status of (400|403|409|422|502) ")
"""The browser's own message of a request that the API refused or that did not reach it; the page shows the reason."""


@dataclass
class Server:
    """The program, its address for the next browser, and the queue's time."""

    process: subprocess.Popen[str]
    url: str = ""
    now: str = ""

    def read(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        found = json.loads(line)
        self.url, self.now = found["url"], found["now"]

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.read()


@contextmanager
def served(*arguments: str, program: Path = PROGRAM) -> Iterator[Server]:
    """Start a program; it ends with the block."""
    command = [str(PYTHON), str(program), *arguments]
    folders = ["src", "tests", "tests/browser", *([str(program.parent)] if program != PROGRAM else [])]
    path = os.pathsep.join(str(ROOT / folder) for folder in folders)
    environ = os.environ | {"PYTHONPATH": path, "POWERTOOLS_LOG_LEVEL": "CRITICAL"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        server = Server(process)
        try:
            server.read()
            yield server
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)


@dataclass
class Example:
    """`make console` without its browser: the deployed local stack with jobs that end and arrive."""

    process: subprocess.Popen[str]

    def address(self) -> str:
        """The next address that signs a browser in."""
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line):
                return found[0]
        raise AssertionError("".join(["the example queue has ended:\n", *said]))

    def interrupt(self) -> str:
        """End it as Ctrl-C does, and return what it printed last."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        assert self.process.wait(60) == 0, said
        return said


@contextmanager
def example_queue() -> Iterator[Example]:
    """Start the example queue; it ends with the block."""
    command = [str(PYTHON), "-m", "trainmaster.local.example_queue", "--no-browser"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    ) as process:  # fmt: skip
        try:
            yield Example(process)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def launched(playwright: Playwright) -> Browser:
    """Start Chromium. Raises FileNotFoundError."""
    if not CHROMIUM:
        raise FileNotFoundError("There is no Chromium: install Debian's package `chromium`, or set CHROMIUM.")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def opened(browser: Browser, server: Server, hash_: str = "#/now", **options: Any) -> Page:
    """Sign a browser in, with its clock at the queue's time, and open a page."""
    size = {"width": WIDTH, "height": HEIGHT}
    context = browser.new_context(**({"viewport": size, "timezone_id": "UTC", "reduced_motion": "reduce"} | options))
    page = context.new_page()
    page.clock.install(time=server.now)
    server.tell("address")
    page.goto(server.url)
    page.wait_for_url("**/")
    page.wait_for_selector("h1")
    go(page, hash_)
    return page


def go(page: Page, hash_: str, timeout: float = 10_000) -> None:
    """Open a page of the console, and wait until it shows what the queue says."""
    page.evaluate("hash => { location.hash = hash }", hash_)
    page.wait_for_selector("main h1")
    page.wait_for_selector("main section", timeout=timeout)


def axe_violations(page: Page, within: str = "html") -> list[Any]:
    """Return what axe-core finds in a part of the page: rules, and the elements that break them."""
    page.evaluate(AXE.read_text())
    return page.evaluate(
        "async within => (await axe.run(within)).violations.map(each => [each.id, each.nodes.map(node => node.html)])",
        within,
    )
