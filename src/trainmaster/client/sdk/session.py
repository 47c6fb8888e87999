"""Gives `QueueSession` for the SageMaker SDK that is installed, version 2 or 3.

It must not import the SDK before it knows which one it is.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.client.sdk.v2 import QueueSession

__all__ = ["QueueSession"]

_HOW = "pip install 'trainmaster[sdk2]' for estimators, or 'trainmaster[sdk3]' for ModelTrainer."


class SdkMissing(ImportError):
    """No SageMaker SDK that QueueSession could extend is installed."""


def module_for(installed: str | None) -> str:
    """The module that has QueueSession for an installed version of `sagemaker`. Raises SdkMissing for none."""
    if installed is None:
        raise SdkMissing(
            f"QueueSession extends the SageMaker SDK, which is not installed: {_HOW} Without it, "
            "trainmaster.route_to_queue(boto3_session) works for plain boto3."
        )
    major = int(installed.split(".", 1)[0])
    if major not in (2, 3):
        raise SdkMissing(
            f"QueueSession works with the SageMaker SDK 2 and 3; sagemaker {installed} is installed: {_HOW}"
        )
    return f"trainmaster.client.sdk.v{major}"


def _installed() -> str | None:
    try:
        return version("sagemaker")
    except PackageNotFoundError:
        return None


def __getattr__(name: str) -> object:
    """`QueueSession`, from the module for the installed SDK."""
    if name != "QueueSession":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(module_for(_installed())).QueueSession
