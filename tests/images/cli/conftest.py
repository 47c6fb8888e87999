"""Fixtures of the command line's tests, with an API that takes image jobs."""

import pytest

from cli_fixtures import client, run
from image_fake_api import ImageFakeApi

__all__ = ["client", "run"]


@pytest.fixture
def world() -> ImageFakeApi:
    return ImageFakeApi()
