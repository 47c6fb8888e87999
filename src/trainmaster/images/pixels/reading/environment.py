"""GDAL's environment for computations that read no image: coordinates, and tiles in memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import rasterio
from rasterio.env import hasenv
from rasterio.session import DummySession


def computing() -> AbstractContextManager[Any]:
    """Return GDAL's environment of this thread, or a new one without credentials; enter it around calls of rasterio.

    Outside an environment, rasterio makes one for each call; with AWS keys in the process's environment, as in Lambda,
    each of them builds a boto3 session, which takes 16 ms of CPU.
    """
    return nullcontext() if hasenv() else rasterio.Env(session=DummySession())
