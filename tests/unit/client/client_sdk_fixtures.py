"""Fixtures of the suites of both SDKs; their conftests import them."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import boto3
import client_deployed
import pytest
from client_stage import Stage, World, environment, moto_served, served

EXIT_SECONDS = 300.0
"""Seconds after which a process that should have ended after its last test has not."""


def installed_sdk() -> str:
    """The major version of the SageMaker SDK; empty where none is installed."""
    try:
        return version("sagemaker").partition(".")[0]
    except PackageNotFoundError:
        return ""


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    with moto_served() as url:
        yield url


@pytest.fixture
def stage(moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The scripted queue and SageMaker, and moto for all else."""
    world = World()
    with served(world) as url:
        only(monkeypatch, environment(url, moto, tmp_path))
        yield Stage(world)


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's environment for a queue that is really deployed."""
    if not client_deployed.is_there():
        pytest.skip("no deployed queue was handed over: tests/e2e/test_sdks.py does")
    only(monkeypatch, client_deployed.environment())


def pytest_unconfigure() -> None:
    """Have a process that hangs after its last test, such as for a thread, end with the stacks of its threads."""
    faulthandler.dump_traceback_later(EXIT_SECONDS, exit=True)


def only(monkeypatch: pytest.MonkeyPatch, wanted: Mapping[str, str]) -> None:
    """Set an environment, without a default session of a test before: the SDK keeps clients of it."""
    boto3.DEFAULT_SESSION = None
    for name in [name for name in os.environ if name.startswith(("AWS_", "BOTOCORE_", "TRAINMASTER_", "SAGEMAKER_"))]:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


def check_schemas_once() -> None:
    """Have jsonschema check each schema once.

    Both SDKs have the constant schema of their configuration checked whenever they look something up there, which is
    most of the processor time of a test.
    """
    from jsonschema.validators import Draft202012Validator

    checked: list[Any] = []
    check = Draft202012Validator.check_schema

    def check_new(schema: Any, *arguments: Any, **options: Any) -> None:
        if not any(schema is known for known in checked):
            check(schema, *arguments, **options)
            checked.append(schema)

    Draft202012Validator.check_schema = check_new
