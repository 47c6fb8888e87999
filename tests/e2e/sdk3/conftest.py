"""Runs only where the SageMaker SDK 3 is installed (.venv-sdk3); elsewhere there is nothing to collect."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "client"))

from client_sdk_fixtures import check_schemas_once, deployed, installed_sdk, moto, pytest_unconfigure, stage

__all__ = ["deployed", "moto", "pytest_unconfigure", "stage"]

collect_ignore_glob = [] if installed_sdk() == "3" else ["test_*.py"]

if not collect_ignore_glob:
    check_schemas_once()
