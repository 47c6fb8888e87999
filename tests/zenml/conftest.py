"""ZenML on a fake queue. This environment has ZenML with SageMaker SDK 2, and Trainmaster beside them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_api import FakeApi, served

sys.path.insert(0, str(Path(__file__).parents[2] / "packaging" / "trainmaster-zenml"))


@pytest.fixture(scope="session", autouse=True)
def _home(tmp_path_factory: Any) -> None:
    """Give ZenML a store of its own before it is imported."""
    os.environ["ZENML_CONFIG_PATH"] = str(tmp_path_factory.mktemp("zenml"))
    os.environ["ZENML_ANALYTICS_OPT_IN"] = "false"
    os.environ |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"


@pytest.fixture
def world() -> FakeApi:
    return FakeApi()


@pytest.fixture
def url(world: FakeApi) -> Iterator[str]:
    with served(world) as url:
        yield url
