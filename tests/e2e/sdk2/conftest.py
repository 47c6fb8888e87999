"""Runs only where the SageMaker SDK 2 is installed (.venv-sdk2); elsewhere there is nothing to collect."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "client"))

from client_sdk_fixtures import deployed, installed_sdk, moto, stage

__all__ = ["deployed", "moto", "stage"]

collect_ignore_glob = [] if installed_sdk() == "2" else ["test_*.py"]


def check_schemas_once():
    """Have jsonschema check each schema once.

    SDK 2 has the constant schema of its configuration checked whenever it looks something up there, which is most of
    the processor time of a test.
    """
    from jsonschema.validators import Draft202012Validator

    checked, check = [], Draft202012Validator.check_schema

    def check_new(schema, *arguments, **options):
        if not any(schema is known for known in checked):
            check(schema, *arguments, **options)
            checked.append(schema)

    Draft202012Validator.check_schema = check_new


if not collect_ignore_glob:
    check_schemas_once()
