"""What all tests share. Its place here puts `tests/` on the import path: `from builders import a_job`."""

import logging

import pytest


@pytest.fixture
def quiet():
    """Thousands of warnings about injected trouble say nothing."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
