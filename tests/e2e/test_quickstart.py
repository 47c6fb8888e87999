"""docs/quickstart.md on a stack like `make stack`'s: its commands succeed, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from doc_blocks import ROOT, Block, blocks
from trainmaster.local.stack import LocalStack
from trainmaster.local.stack.__main__ import _LIMITS
from trainmaster.local.stack.address import clean_environment

HERE = "tests/e2e/test_quickstart.py"
PAGE = "docs/quickstart.md"
READS = {"pools", "ls", "why", "show", "logs"}
"""Commands that the reader can repeat until they show what the page shows."""
WAIT_SECONDS = 60
MASKS = {
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( UTC)?": "TIME",
    r"in \d+ (minutes?|seconds?)|in \d+ (min|s) to \d+ (min|s)|within \d+ min|\d+ (minutes?|seconds?) ago": "SPAN",
    r"\b(\d+[dhms])+\b|\b\d:\d\d:\d\d\b": "AGE",
    r"step \d+": "STEP",
    r"\[algo-\d\]": "HOST",
    r"-{3,}": "LINE",
}


def steps() -> list[tuple[str, str]]:
    """Return the commands of each block with the output that the page shows after it, or nothing."""
    page = [block for block in blocks() if block.page == PAGE]
    following = [*page[1:], Block(PAGE, 0, "", "", "", "")]
    shown = [each.text if each.language == "text" else "" for each in following]
    return [(block.text, text) for block, text in zip(page, shown, strict=True) if block.reason == HERE]


def masked(text: str) -> str:
    text = " ".join(text.split())  # a page breaks lines, also inside a time
    for pattern, name in MASKS.items():
        text = re.sub(pattern, name, text)
    return text


def matches(printed: str, shown: str) -> bool:
    """Return whether a step printed what the page shows, where a line of dots stands for any lines."""
    parts = re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)
    pattern = ".*".join(re.escape(masked(part)) for part in parts)
    return re.fullmatch(pattern, masked(printed)) is not None


def only_reads(text: str) -> bool:
    return all(words[1] in READS for words in map(str.split, text.strip().splitlines()))


@pytest.fixture
def shell(tmp_path):
    """Run a block in bash from the checkout, as the page's reader does after `source .local/stack/env`."""
    with LocalStack(label="quickstart", limits=_LIMITS) as address:
        environment = {**clean_environment(os.environ), **address.environment(), "TZ": "UTC", "COLUMNS": "120"}
        (tmp_path / "trainmaster").write_text(f'#!/bin/sh\nexec {sys.executable} -m trainmaster "$@"\n')
        (tmp_path / "trainmaster").chmod(0o755)
        environment["PATH"] = f"{tmp_path}:{environment['PATH']}"

        def run(text: str) -> str:
            command = ["bash", "-euo", "pipefail", "-c", text]
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        yield run


def test_every_step_prints_what_the_page_shows(shell):
    compared = 0
    for commands, shown in steps():
        deadline = time.monotonic() + WAIT_SECONDS
        printed = shell(commands)
        while shown and only_reads(commands) and not matches(printed, shown) and time.monotonic() < deadline:
            printed = shell(commands)
        if shown:
            assert matches(printed, shown), printed
            compared += 1
    assert compared == len(steps())
