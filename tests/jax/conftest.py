"""Elastic JAX over a DynamoDB engine. This environment has JAX, and of ours what a container has: boto3 alone."""

from __future__ import annotations

import pytest
from tests.containers import EXAMPLES, client, containers, engine, groups, table

__all__ = ["client", "containers", "engine", "groups", "table"]


@pytest.fixture
def script():
    """The script that the containers run."""
    return EXAMPLES / "elastic_jax.py"
