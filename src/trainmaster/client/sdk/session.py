"""Provides `QueueSession` for the installed SageMaker SDK, version 2 or 3."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.client.sdk.v2 import QueueSession

__all__ = ["QueueSession"]

_INSTALL_HINT = "pip install 'trainmaster[sdk2]' for estimators, or 'trainmaster[sdk3]' for ModelTrainer."


class SdkMissing(ModuleNotFoundError):
    """No SageMaker SDK that QueueSession supports is installed."""


def module_for(installed: str | None) -> str:
    """Return the module with QueueSession for an installed version of `sagemaker`. Raises SdkMissing if None."""
    if installed is None:
        raise SdkMissing(
            f"QueueSession extends the SageMaker SDK, which is not installed: {_INSTALL_HINT} Without it, "
            "trainmaster.route_to_queue(boto3_session) works for plain boto3."
        )
    major = int(installed.split(".", 1)[0])
    if major not in (2, 3):
        raise SdkMissing(
            f"QueueSession works with the SageMaker SDK 2 and 3; sagemaker {installed} is installed: {_INSTALL_HINT}"
        )
    return f"trainmaster.client.sdk.v{major}"


def _installed() -> str | None:
    try:
        return version("sagemaker")
    except PackageNotFoundError:
        return None


def __getattr__(name: str) -> object:
    """Import `QueueSession` from the module for the installed SDK."""
    if name != "QueueSession":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(module_for(_installed())).QueueSession
