"""A scripted queue and SageMaker, moto for all else, and the programs of .venv-exec; without it, there are no tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "client"))

from client_sdk_fixtures import moto, only
from client_stage import Stage, World, environment, served
from client_world import REGION

__all__ = ["moto"]

PROGRAMS = ROOT / ".venv-exec"
collect_ignore_glob = [] if (PROGRAMS / "bin" / "aws").exists() else ["test_*.py"]
Run = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def stage(moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The stage; the environment of this process, and so of programs that it starts, leads there."""
    world = World()
    with served(world) as url:
        # SDKs other than Python's read the Region's name without "default".
        only(monkeypatch, environment(url, moto, tmp_path) | {"AWS_REGION": REGION})
        monkeypatch.setenv("PATH", os.pathsep.join([str(PROGRAMS / "bin"), os.environ["PATH"]]))
        yield Stage(world)


@pytest.fixture
def start(stage: Stage, tmp_path: Path) -> Iterator[Run]:
    """Starts `trainmaster exec` with a command, in a folder of its own."""
    started: list[subprocess.Popen[str]] = []

    def start_(*command: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "trainmaster", "exec", *options, "--", *command]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(line, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start_
    for process in started:
        process.kill()
        process.communicate()
