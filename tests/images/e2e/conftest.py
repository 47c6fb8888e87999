"""Marks the tests of image jobs on a deployed stack."""

from pathlib import Path

import pytest

from deployed_stack import trainmaster

__all__ = ["trainmaster"]


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.stack)
