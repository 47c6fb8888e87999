"""Runs only where the SageMaker SDK 3 is installed (.venv-sdk3); elsewhere there is nothing to collect."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

try:
    _installed = version("sagemaker")
except PackageNotFoundError:
    _installed = "none"

collect_ignore_glob = [] if _installed.startswith("3.") else ["test_*.py"]

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "client"))


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    from client_stage import moto_served

    with moto_served() as url:
        yield url


@pytest.fixture
def stage(moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    from client_stage import Stage, World, environment, served

    for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINMASTER_", "SAGEMAKER_"))]:
        monkeypatch.delenv(name)
    world = World()
    with served(world) as url:
        for name, value in environment(url, moto, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield Stage(world)


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's environment for a queue that is really deployed."""
    import client_deployed

    if not client_deployed.is_there():
        pytest.skip("no deployed queue was handed over: tests/e2e/test_sdks.py does")
    wanted = client_deployed.environment(tmp_path)
    for name in [name for name in os.environ if name.startswith(("AWS_", "TRAINMASTER_", "SAGEMAKER_"))]:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
