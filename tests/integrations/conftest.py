"""Real tools on a fake queue. This environment has the tools, and Trainmaster beside them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_fixtures import client, run, world
from fake_api import STAGE, FakeApi, served

__all__ = ["client", "run", "world"]
EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGING = Path(__file__).parents[2] / "packaging"
sys.path[:0] = [str(EXAMPLES), str(PACKAGING / "trainmaster-torchx")]


@pytest.fixture
def environ(world: FakeApi, tmp_path: Path, monkeypatch: Any) -> Iterator[dict[str, str]]:
    """The environment of programs that reach the queue over HTTP; this process has it, too."""
    with served(world) as url:
        variables = {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "TRAINMASTER_API_URL": url,
            "HOME": str(tmp_path),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert url.endswith(STAGE)
        yield {**os.environ, **variables}
